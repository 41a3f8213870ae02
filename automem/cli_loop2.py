"""``automem loop2``: the outer loop that trains memory specialists. Thin: it checks, calls, and prints."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer
from rich.console import Console

from automem.cli_options import (
    ApiBase,
    MaxTokens,
    Resume,
    RunName,
    ScaffoldName,
    Steps,
    UnsafeHooks,
    named_options,
    played_model,
    refuse_named,
    sandbox_limits,
    stopped,
)

console = Console()

DATA, TRAINING, SEARCH, GATE = "What is learnt", "Training", "The search", "The gate"


def loop2(
    game: Annotated[str, typer.Argument(metavar="GAME", help="crafter, minihack, nethack, or one task.")],
    recipe: Annotated[str, typer.Option("--recipe", help="A preset, or a TOML file; by default the game's.")] = "",
    model: Annotated[
        str, typer.Option("--model", help="Base model of the specialist: smollm2, a folder, or a Hugging Face name.")
    ] = "smollm2",
    gameplay: Annotated[
        str, typer.Option("--gameplay", help="Commits every action: scripted, smollm2, or provider/model.")
    ] = "",
    server: Annotated[
        str, typer.Option("--server", help="hosted_vllm/NAME of the base model, where a server of yours has it.")
    ] = "",
    api_base: ApiBase = "",
    merged: Annotated[
        bool,
        typer.Option(
            "--merged",
            help="Specialists play as merged copies: no adapter to reckon at every token, but a server each.",
        ),
    ] = False,
    max_tokens: MaxTokens = 0,
    scaffold: ScaffoldName = None,
    steps: Steps = None,
    workers: Annotated[int, typer.Option("--workers", min=0, help="Episodes at once.")] = 0,
    run: RunName = None,
    resume: Resume = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what will be done, and what it takes.")] = False,
    unsafe_hooks: UnsafeHooks = False,
    teacher: Annotated[
        str,
        typer.Option("--teacher", help="Whose memory work is learnt; the gameplay model's.", rich_help_panel=DATA),
    ] = "",
    consult_turns: Annotated[
        int | None,
        typer.Option(
            "--consult-turns", min=1, help="Replies of PLAN in which it reads; 1 by default.", rich_help_panel=DATA
        ),
    ] = None,
    collect_seeds: Annotated[
        str | None,
        typer.Option("--collect-seeds", help="Training seeds; 30000 and on by default.", rich_help_panel=DATA),
    ] = None,
    collect_steps: Annotated[
        int | None, typer.Option("--collect-steps", min=1, help="Step limit while collecting.", rich_help_panel=DATA)
    ] = None,
    traces: Annotated[
        list[str] | None,
        typer.Option("--traces", metavar="RUN", help="Learn from this run instead; repeatable.", rich_help_panel=DATA),
    ] = None,
    engine: Annotated[str, typer.Option("--engine", help="Selects: rules, or llm.", rich_help_panel=DATA)] = "rules",
    engine_option: Annotated[
        list[str] | None,
        typer.Option("--engine-option", metavar="NAME=VALUE", help="May be repeated.", rich_help_panel=DATA),
    ] = None,
    decider_option: Annotated[
        list[str] | None,
        typer.Option("--decider-option", metavar="NAME=VALUE", help="May be repeated.", rich_help_panel=SEARCH),
    ] = None,
    meta_model: Annotated[
        str, typer.Option("--meta-model", help="provider/model of llm engine and decider.", rich_help_panel=SEARCH)
    ] = "",
    meta_api_base: Annotated[
        str, typer.Option("--meta-api-base", help="URL of its server.", rich_help_panel=SEARCH)
    ] = "",
    decider: Annotated[
        str, typer.Option("--decider", help="Proposes recipes: halving, or llm.", rich_help_panel=SEARCH)
    ] = "halving",
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, help="Proposals, one after another.", rich_help_panel=SEARCH)
    ] = 1,
    width: Annotated[int, typer.Option("--width", min=1, help="Recipes of a round.", rich_help_panel=SEARCH)] = 1,
    keep: Annotated[
        int, typer.Option("--keep", min=2, help="Halving goes on with one in so many.", rich_help_panel=SEARCH)
    ] = 3,
    device: Annotated[str, typer.Option("--device", help="auto, cpu or gpu.", rich_help_panel=TRAINING)] = "auto",
    processes: Annotated[
        int, typer.Option("--processes", min=0, help="That train together; 0: all GPUs.", rich_help_panel=TRAINING)
    ] = 0,
    no_gate: Annotated[
        bool, typer.Option("--no-gate", help="Judge by held-out loss, play held-out seeds.", rich_help_panel=GATE)
    ] = False,
    gate_seeds: Annotated[
        str | None, typer.Option("--gate-seeds", help="40000 and on by default.", rich_help_panel=GATE)
    ] = None,
    most: Annotated[
        int | None, typer.Option("--most-seeds", min=2, help="Of one specialist at most.", rich_help_panel=GATE)
    ] = None,
    batch: Annotated[
        int | None, typer.Option("--batch", min=1, help="Seeds between two looks.", rich_help_panel=GATE)
    ] = None,
    smallest_gain: Annotated[
        float | None,
        typer.Option("--smallest-gain", help="Gain worth having, 0 to 1; 0.02 by default.", rich_help_panel=GATE),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            "--margin", help="Accept who plays no worse than by this, 0 to 1; 0 by default.", rich_help_panel=GATE
        ),
    ] = None,
    held_out: Annotated[
        str | None, typer.Option("--held-out", help="Seeds; 50000..50039 by default.", rich_help_panel=GATE)
    ] = None,
) -> None:
    """Train a memory specialist on good memory decisions, play with it, and choose the next recipe."""
    from pydantic import ValidationError

    from automem.errors import UserError
    from automem.evaluate import default_workers
    from automem.runs import PlayedModel
    from games.suites import parse_seeds
    from meta.settings import GateSettings, first_problem
    from specialist import recipe as recipes
    from specialist.search import forecast, storage
    from specialist.search import run as searches
    from specialist.search.progress import SearchProgress
    from specialist.search.settings import BaseSettings, DeciderSettings, EngineSettings, TrainSettings

    gameplay = gameplay or server or model

    def asked(name: str) -> PlayedModel:
        """A model that plays; the base model need not be one that LiteLLM knows, where we serve it."""
        if name == model and not server:
            return PlayedModel(name=name, max_tokens=max_tokens)
        return played_model(name, api_base, 0.0, max_tokens)

    if traces:
        collecting = {
            "--teacher": teacher or None,
            "--consult-turns": consult_turns,
            "--collect-seeds": collect_seeds,
            "--collect-steps": collect_steps,
        }
        refuse_named("with --traces nothing is collected", collecting)
    if no_gate:
        several = gate_seeds if gate_seeds and len(parse_seeds(gate_seeds)) > 1 else None
        judging = {
            "--most-seeds": most,
            "--batch": batch,
            "--smallest-gain": smallest_gain,
            "--margin": margin,
            "--gate-seeds": several,
        }
        refuse_named("with --no-gate no gate seeds are played", judging)
    judged = {"most": most, "batch": batch, "smallest_gain": smallest_gain, "margin": margin}
    judged = {name: value for name, value in judged.items() if value is not None}
    if most is not None and batch is None:
        judged["batch"] = min(most, GateSettings.model_fields["batch"].default)
    try:
        request = searches.SearchRequest(
            game=game,
            base=BaseSettings(
                name=model,
                server=server,
                api_base=api_base if server else "",  # what we serve ourselves has no address beforehand
                merged=merged,
                max_tokens=max_tokens,
            ),
            gameplay=asked(gameplay),
            teacher=asked(teacher) if teacher else None,
            recipe=recipes.load(recipe or game),
            scaffold=scaffold,
            collect_seeds=collect_seeds,
            collect_steps=collect_steps,
            traces=tuple(traces or ()),
            consult_turns=consult_turns or 1,
            gate_seeds=gate_seeds,
            held_out=held_out,
            steps=steps,
            name=run,
            resume=resume,
            engine=EngineSettings(
                kind=engine,
                model=meta_model,
                api_base=meta_api_base,
                options=named_options("--engine-option", engine_option),
            ),
            decider=DeciderSettings(
                kind=decider,
                rounds=rounds,
                width=width,
                keep=keep,
                model=meta_model,
                api_base=meta_api_base,
                options=named_options("--decider-option", decider_option),
            ),
            training=TrainSettings(device=device, processes=processes),  # type: ignore[arg-type]
            gate=None if no_gate else GateSettings.model_validate(judged),
            sandbox=sandbox_limits(unsafe_hooks),
        )
    except ValidationError as wrong:
        raise UserError(first_problem(wrong)) from wrong
    planned = searches.plan(request)
    workers = workers or default_workers(planned.config.gameplay.name)
    forecast.show(planned.config, console)
    if dry_run:
        return
    try:
        search, result = asyncio.run(searches.run(planned, resume, SearchProgress(console), workers))
    except KeyboardInterrupt:
        raise stopped(planned.config.name, storage.exists(planned.config.name)) from None
    from specialist.page.page import write as write_page  # charts and tables: only where they are drawn

    page = search.folder / storage.PAGE
    write_page(search, page)
    say(result, str(search.folder), str(page))


def say(result: dict[str, Any], folder: str, page: str) -> None:
    """What the search came to, in a few lines."""
    from meta.points import bounded

    lines = [f"{result['trainings']} training runs"]
    if result["best"] is None:
        lines.append("none of them gave an adapter")
    else:
        best, found = result["best"], result["held_out"]["progression"]
        verdict = "accepted by the gate" if result["accepted"] else best["outcome"]
        lines.append(f"best: {best['number']}, {verdict}")
        lower, upper = found["difference"]["interval"] or (None, None)
        lines.append(
            f"held-out seeds: {100 * found['before']['mean']:.1f} -> {100 * found['after']['mean']:.1f} %, "
            f"{bounded(found['difference']['mean'], lower, upper)}, {result['held_out']['pairs']} pairs"
        )
        lines += list(_behaviour(result["held_out"]["behaviour"]))
        lines.append(f"play with it: automem eval GAME --model MODEL --specialist {folder}/{best['folder']}")
    lines.append(f"page: {page}")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _behaviour(found: dict[str, Any]) -> list[str]:
    from automem.metric_names import figure, metric, unit

    lines = []
    for name in ("valid_turn_share", "duplicate_write_share", "empty_search_share", "added_bytes_per_step"):
        before, after = (figure(name, found[name].get(f"pooled_{which}")) for which in ("before", "after"))
        lines.append(f"  {metric(name).label}: {before} -> {after} {unit(name)}")
    return lines
