"""``automem loop1``: the outer loop that rewrites scaffolds. Thin: it checks, calls, and prints."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated, Any

import typer
from rich.console import Console

from automem.cli_options import (
    ApiBase,
    MaxTokens,
    ModelName,
    Resume,
    RunName,
    ScaffoldName,
    Steps,
    Temperature,
    UnsafeHooks,
    named_options,
    played_model,
    refuse_named,
    sandbox_limits,
    stopped,
)

console = Console()

GATE, SEARCH, REVIEWER, BUDGET = "The gate", "The search", "The reviewer", "Budgets"


def loop1(
    game: Annotated[str, typer.Argument(metavar="GAME", help="crafter, minihack, nethack, or one task.")],
    scaffold: ScaffoldName = None,
    model: ModelName = "smollm2",
    api_base: ApiBase = "",
    temperature: Temperature = 0.0,
    max_tokens: MaxTokens = 0,
    steps: Steps = None,
    workers: Annotated[int, typer.Option("--workers", min=0, help="Episodes at once, all candidates together.")] = 0,
    run: RunName = None,
    resume: Resume = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what the budget buys.")] = False,
    unsafe_hooks: UnsafeHooks = False,
    reviewer: Annotated[
        str, typer.Option("--reviewer", help="rules, llm or command.", rich_help_panel=REVIEWER)
    ] = "rules",
    meta_model: Annotated[
        str, typer.Option("--meta-model", help="provider/model of llm.", rich_help_panel=REVIEWER)
    ] = "",
    meta_api_base: Annotated[
        str, typer.Option("--meta-api-base", help="URL of its server.", rich_help_panel=REVIEWER)
    ] = "",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--reviewer-option",
            metavar="NAME=VALUE",
            help="What else the reviewer takes, e.g. command='codex exec'; may be repeated.",
            rich_help_panel=REVIEWER,
        ),
    ] = None,
    review_turns: Annotated[
        int | None,
        typer.Option("--review-turns", min=1, help="Calls of one review; 60 by default.", rich_help_panel=REVIEWER),
    ] = None,
    review_tokens: Annotated[
        int | None,
        typer.Option(
            "--review-tokens", min=1, help="Tokens of one review; 2 million by default.", rich_help_panel=REVIEWER
        ),
    ] = None,
    review_usd: Annotated[
        float | None, typer.Option("--review-usd", help="Dollars of one review.", rich_help_panel=REVIEWER)
    ] = None,
    review_minutes: Annotated[
        float | None,
        typer.Option("--review-minutes", help="Minutes of one review; 30 by default.", rich_help_panel=REVIEWER),
    ] = None,
    iterations: Annotated[
        int, typer.Option("--iterations", min=1, help="Revisions, one after another.", rich_help_panel=SEARCH)
    ] = 6,
    attempts: Annotated[
        int, typer.Option("--attempts", min=1, help="Fresh attempts at a revision.", rich_help_panel=SEARCH)
    ] = 2,
    continuations: Annotated[
        int,
        typer.Option("--continuations", min=0, help="How often a failed attempt goes on.", rich_help_panel=SEARCH),
    ] = 1,
    parents: Annotated[
        str, typer.Option("--parents", help="best, or archive: by score and novelty.", rich_help_panel=SEARCH)
    ] = "best",
    side_by_side: Annotated[
        int, typer.Option("--side-by-side", min=1, help="Attempts worked on at once.", rich_help_panel=SEARCH)
    ] = 1,
    shown: Annotated[
        int, typer.Option("--shown", min=1, help="Gate seeds whose episodes reviewers read.", rich_help_panel=SEARCH)
    ] = 8,
    gate: Annotated[str, typer.Option("--gate", help="sequential, or paper.", rich_help_panel=GATE)] = "sequential",
    gate_seeds: Annotated[
        str | None,
        typer.Option("--gate-seeds", help="Seeds of the gate; 10000 and on by default.", rich_help_panel=GATE),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option("--most-seeds", min=2, help="Seeds of one candidate at most.", rich_help_panel=GATE),
    ] = None,
    batch: Annotated[
        int | None, typer.Option("--batch", min=1, help="Seeds between two looks.", rich_help_panel=GATE)
    ] = None,
    smallest_gain: Annotated[
        float | None,
        typer.Option(
            "--smallest-gain", help="Gain in progression worth having, 0 to 1; 0.02 by default.", rich_help_panel=GATE
        ),
    ] = None,
    margin: Annotated[
        float,
        typer.Option("--margin", help="How much worse a leaner memory may play, 0 to 1.", rich_help_panel=GATE),
    ] = 0.0,
    error: Annotated[
        float | None,
        typer.Option(
            "--error", help="Chance that a loop accepts without effect; 0.05 by default.", rich_help_panel=GATE
        ),
    ] = None,
    held_out: Annotated[
        str | None,
        typer.Option("--held-out", help="Held-out seeds; 20000..20039 by default.", rich_help_panel=GATE),
    ] = None,
    replicates: Annotated[
        int, typer.Option("--replicates", min=1, help="Episodes of each task and seed.", rich_help_panel=GATE)
    ] = 1,
    usd: Annotated[float | None, typer.Option("--usd", help="Dollars of the loop.", rich_help_panel=BUDGET)] = None,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", help="Minutes of the loop, from its start or --resume.", rich_help_panel=BUDGET),
    ] = None,
    episodes: Annotated[
        int | None, typer.Option("--episodes", min=1, help="Episodes of the loop.", rich_help_panel=BUDGET)
    ] = None,
) -> None:
    """Let a reviewer rewrite a scaffold, and keep what plays better on the same seeds."""
    from pydantic import ValidationError

    from automem.errors import UserError
    from automem.evaluate import default_workers, make_model
    from meta import forecast
    from meta import loop as loops
    from meta.progress import LoopProgress
    from meta.settings import GateSettings, LoopBudget, ReviewerSettings, SearchSettings
    from meta.storage import PAGE

    judged = {"most": most, "batch": batch, "smallest_gain": smallest_gain, "error": error}
    if gate == "paper":
        idle = {"--batch": batch, "--smallest-gain": smallest_gain, "--error": error}
        refuse_named("the gate paper plays all its seeds, and accepts whatever rose", idle)
        judged |= {"most": most or 10, "batch": most or 10}
    of_reviewer = {
        "api_base": meta_api_base or None,
        "options": named_options("--reviewer-option", option) or None,
        "turns": review_turns,
        "tokens": review_tokens,
        "usd": review_usd,
        "minutes": review_minutes,
    }
    # What is not named is left to the settings, and with --resume to what the loop has.
    named: dict[str, Any] = {name: value for name, value in of_reviewer.items() if value is not None}
    try:
        request = loops.LoopRequest(
            game=game,
            model=played_model(model, api_base, temperature, max_tokens),
            scaffold=scaffold,
            gate_seeds=gate_seeds,
            held_out=held_out,
            steps=steps,
            replicates=replicates,
            name=run,
            resume=resume,
            gate=GateSettings.model_validate(
                {"kind": gate, "margin": margin, **{name: value for name, value in judged.items() if value is not None}}
            ),
            search=SearchSettings(
                iterations=iterations,
                attempts=attempts,
                continuations=continuations,
                parents=parents,  # type: ignore[arg-type]
                side_by_side=side_by_side,
                shown=shown,
            ),
            reviewer=ReviewerSettings(kind=reviewer, model=meta_model, **named),
            budget=LoopBudget(usd=usd, minutes=minutes, episodes=episodes),
            sandbox=sandbox_limits(unsafe_hooks),
        )
    except ValidationError as wrong:
        raise UserError("; ".join(_wrong(e) for e in wrong.errors())) from wrong
    planned = loops.plan(request)
    workers = workers or default_workers(model)
    forecast.show(forecast.of(planned.config), planned.config, console)
    if dry_run:
        return
    player = make_model(request.model, processes=min(workers, os.cpu_count() or 1))
    try:
        loop, result = asyncio.run(loops.run(planned, resume, player, LoopProgress(console), workers))
    except KeyboardInterrupt:
        from meta import storage

        raise stopped(planned.config.name, storage.exists(planned.config.name)) from None
    from meta.page import write as write_page  # charts and tables: only where they are drawn

    page = loop.folder / PAGE
    write_page(loop, page)
    say(result, loop.config.name, str(page))


def say(result: dict[str, Any], name: str, page: str) -> None:
    """What the loop came to, in a few lines."""
    from automem.vocabulary import one_line

    tried = f"{result['revisions']} revisions, {result['attempts']} attempts were tried"
    lines = [f"{tried}; {result['judged']} came before the gate"]
    if result["stopped"]:
        lines[0] += f"; stopped: {result['stopped']}"
    lines += [
        f"{one['ref']} was accepted, but is not taken; on held-out seeds: {one_line(one['why'], 600)}"
        for one in result["unfit"]
    ]
    if result["held_out"] is None and result["unfit"]:
        lines.append("the version that the loop began with stays the best")
    elif result["held_out"] is None:
        lines.append("nothing was accepted: the version that the loop began with stays the best")
    else:
        lines += [
            f"best: {result['best']['ref']}",
            f"gate seeds:     {_gain(result['gate']['overall'])}",
            f"held-out seeds: {_gain(result['held_out']['overall'])}",
        ]
        if result["gap"]["flagged"]:
            lines.append("held-out seeds gain less than chance explains: the version fits the gate's seeds")
        elif not result["gap"]["confirmed"]:
            lines.append("held-out seeds do not confirm the gain: their interval holds 0")
        lines.append(f"automem scaffold adopt {name} puts it under scaffolds/")
    lines.append(f"page: {page}")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _gain(found: dict[str, Any]) -> str:
    from meta.points import bounded

    lower, upper = found["interval"] or (None, None)
    return (
        f"{100 * found['mean_a']:.1f} -> {100 * found['mean_b']:.1f} %, {bounded(found['difference'], lower, upper)}, "
        f"{found['pairs']} pairs ({found['won']} won, {found['tied']} tied, {found['lost']} lost)"
    )


def _wrong(error: Any) -> str:
    """A setting that cannot be, what was given, and what may be."""
    name = ".".join(map(str, error["loc"]))
    told = str(error["msg"]).removeprefix("Value error, ")
    return f"{name} = {error['input']!r}: {told}" if name else told
