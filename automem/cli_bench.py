"""``automem bench``: agents on a suite. Thin: it checks, calls, and prints."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer
from rich.console import Console

from automem.cli_options import (
    EXIT_INCOMPLETE,
    ApiBase,
    ConsultTurns,
    Episodes,
    MaxTokens,
    Merged,
    ModelName,
    Resume,
    Seeds,
    SpecialistApiBase,
    SpecialistBase,
    SpecialistName,
    Steps,
    Temperature,
    UnsafeHooks,
    Workers,
    again,
    chosen_specialist,
    played_model,
    sandbox_limits,
    stopped,
)
from automem.completion import complete_run, complete_target
from automem.visible import visible_lines

console = Console()
errors = Console(stderr=True)


def bench(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="What to play.", autocompletion=complete_target)],
    agents: Annotated[
        str,
        typer.Option(
            "--agents",
            help="Who plays, with commas between: random, naive, cot, memory, scripted, specialist, those of "
            "packages; scaffolds after a colon, e.g. memory:crafter/v1+nethack/v1.",
        ),
    ] = "random,naive,memory,scripted",
    model: ModelName = "smollm2",
    seeds: Seeds = None,
    episodes: Episodes = None,
    steps: Steps = None,
    workers: Workers = 0,
    retries: Annotated[
        int, typer.Option("--retries", min=0, max=10, help="How often failed episodes are tried again.")
    ] = 2,
    run: Annotated[
        str | None, typer.Option("--run", help="Name of the bench, in runs/.", autocompletion=complete_run)
    ] = None,
    resume: Resume = False,
    power: Annotated[
        float | None,
        typer.Option(
            "--power",
            metavar="POINTS",
            help="Play nothing: say how many seeds a difference of so many points of progression needs.",
        ),
    ] = None,
    api_base: ApiBase = "",
    temperature: Temperature = 0.0,
    max_tokens: MaxTokens = 0,
    unsafe_hooks: UnsafeHooks = False,
    specialist: SpecialistName = None,
    specialist_base: SpecialistBase = "",
    specialist_api_base: SpecialistApiBase = "",
    merged: Merged = False,
    consult_turns: ConsultTurns = 0,
) -> None:
    """Play agents on the same episodes of a suite, and put what they reach beside published figures."""
    from automem.bench import entrants, play, storage
    from automem.bench.play import BenchRequest
    from automem.evaluate import Request
    from automem.progress import Progress

    if power is not None:
        from automem.bench.power_view import show

        show(suite, power, run, console)
        return
    chosen = chosen_specialist(specialist, specialist_base, specialist_api_base, merged, consult_turns, max_tokens)
    common = Request(
        target=suite,
        model=played_model(model, api_base, temperature, max_tokens),
        seeds=seeds,
        episodes=episodes,
        steps=steps,
        name=run,
        resume=resume,
        sandbox=sandbox_limits(unsafe_hooks),
        specialist=None if chosen is None else chosen.played,
    )
    planned = play.plan(BenchRequest(entrants.parse(agents), common))
    name = planned.config.name

    def beside(asked: Any, player: Any) -> Any:
        from specialist.play import make

        assert chosen is not None
        return make(chosen, asked, player)

    def failed(label: str, error: str) -> None:
        errors.print(visible_lines(f"{label}: {error}"), markup=False, highlight=False, soft_wrap=True, style="red")

    try:
        made, results = asyncio.run(play.play(planned, lambda: Progress(console), failed, workers, beside, retries))
    except KeyboardInterrupt:
        raise stopped(name, storage.exists(name)) from None
    _tell(made, results)


def _tell(made: Any, results: dict[str, Any]) -> None:
    """The scoreboard, where the rest is, and what is missing. Exits with 1 when something is."""
    from automem.bench import pages, storage
    from automem.bench.view import scoreboard

    pages.write(made, results)
    console.print(scoreboard(results))
    for name in (storage.SCOREBOARD, storage.TABLES, storage.RESULTS):
        console.print(str(made.folder / name), markup=False, highlight=False, soft_wrap=True)
    if not results["complete"]:
        missing = sum(agent["overall"]["planned"] - agent["overall"]["episodes"] for agent in results["agents"])
        lacking = f"{missing} episodes are not finished and missing from the means" if missing else "Nobody could play"
        errors.print(
            f"{lacking}. Once the cause is mended, go on with: {again(made.config.name)}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(EXIT_INCOMPLETE)
