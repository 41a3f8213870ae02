"""The command line. Thin: it checks, calls, and prints; every command's work is a function elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

import games
from automem.cli_bench import bench
from automem.cli_compare import compare
from automem.cli_export import export
from automem.cli_loop1 import loop1, say
from automem.cli_loop2 import loop2
from automem.cli_options import (
    EXIT_INCOMPLETE,
    AgentName,
    ApiBase,
    ConsultTurns,
    Episodes,
    MaxTokens,
    Merged,
    ModelName,
    Resume,
    RunName,
    ScaffoldName,
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
from automem.cli_report import report
from automem.cli_rerun import rerun
from automem.cli_scaffold import scaffold_app
from automem.cli_serve import serve
from automem.cli_trace import trace_app
from automem.completion import complete_target, complete_task
from automem.errors import UserError
from games import suites

if TYPE_CHECKING:
    from automem.evaluate import Request, Watcher
    from specialist.play import Chosen

app = typer.Typer(
    name="automem",
    help="Measure and improve the memory of long-running LLM agents.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
games_app = typer.Typer(
    help="The games: which there are, and the level files that some of them need.", no_args_is_help=True
)
app.add_typer(games_app, name="games")
app.add_typer(scaffold_app, name="scaffold")
app.add_typer(trace_app, name="trace")
app.command(epilog="Example: [bold]automem report first second --out report.html[/bold]", no_args_is_help=True)(report)
app.command(epilog="Example: [bold]automem export --format balrog first[/bold]", no_args_is_help=True)(export)
app.command(epilog="Example: [bold]automem rerun first[/bold]", no_args_is_help=True)(rerun)
app.command(
    epilog="Example: [bold]automem loop1 crafter --model scripted --reviewer rules --steps 1000[/bold]",
    no_args_is_help=True,
)(loop1)
app.command(
    epilog="Example: [bold]automem loop2 crafter --model smollm2 --gameplay scripted --recipe crafter-cpu[/bold]",
    no_args_is_help=True,
)(loop2)
app.command(
    epilog="Example: [bold]automem bench balrog --agents random,naive,memory --model smollm2 --steps 20[/bold]",
    no_args_is_help=True,
)(bench)
app.command(epilog="Example: [bold]automem compare first second[/bold]", no_args_is_help=True)(compare)
app.command(epilog="Example: [bold]automem serve --model smollm2[/bold]")(serve)

console = Console()
errors = Console(stderr=True)

EXIT_USER = 2
"""Something a person can mend: a wrong name, a full disk, a server that is not there."""


@app.command(
    epilog="Example: [bold]automem play Crafter --model smollm2 --steps 20 --watch[/bold]", no_args_is_help=True
)
def play(
    task: Annotated[str, typer.Argument(help="A task; see: automem games list", autocompletion=complete_task)],
    scaffold: ScaffoldName = None,
    model: ModelName = "smollm2",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the game.")] = 42,
    steps: Steps = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show the game, memory operations and memory files.")] = False,
    delay: Annotated[float, typer.Option("--delay", min=0.0, help="With --watch: seconds to rest on each step.")] = 0.0,
    run: RunName = None,
    resume: Resume = False,
    api_base: ApiBase = "",
    temperature: Temperature = 0.0,
    max_tokens: MaxTokens = 0,
    unsafe_hooks: UnsafeHooks = False,
    specialist: SpecialistName = None,
    specialist_base: SpecialistBase = "",
    specialist_api_base: SpecialistApiBase = "",
    merged: Merged = False,
    consult_turns: ConsultTurns = 0,
    agent: AgentName = "memory",
) -> None:
    """Play one episode and keep it as a run."""
    from automem.evaluate import Request
    from automem.watch import Steps as StepLines
    from automem.watch import Watch

    chosen = chosen_specialist(specialist, specialist_base, specialist_api_base, merged, consult_turns, max_tokens)
    request = Request(
        target=games.canonical(task),
        model=played_model(model, api_base, temperature, max_tokens),
        scaffolds=() if scaffold is None else (scaffold,),
        seeds=str(seed),
        steps=steps,
        name=run,
        resume=resume,
        sandbox=sandbox_limits(unsafe_hooks),
        specialist=None if chosen is None else chosen.played,
        agent=agent,
    )
    view = Watch(console, delay) if watch and console.is_terminal else StepLines(console)
    _evaluate(request, view, 1, chosen)


@app.command(
    "eval",
    epilog="Example: [bold]automem eval crafter --model scripted --seeds 42..51 --steps 1000 --run first[/bold]",
    no_args_is_help=True,
)
def evaluate_(
    target: Annotated[str, typer.Argument(metavar="SUITE|TASK", help="What to play.", autocompletion=complete_target)],
    scaffold: ScaffoldName = None,
    model: ModelName = "smollm2",
    seeds: Seeds = None,
    episodes: Episodes = None,
    steps: Steps = None,
    workers: Workers = 0,
    run: RunName = None,
    resume: Resume = False,
    api_base: ApiBase = "",
    temperature: Temperature = 0.0,
    max_tokens: MaxTokens = 0,
    unsafe_hooks: UnsafeHooks = False,
    specialist: SpecialistName = None,
    specialist_base: SpecialistBase = "",
    specialist_api_base: SpecialistApiBase = "",
    merged: Merged = False,
    consult_turns: ConsultTurns = 0,
    agent: AgentName = "memory",
) -> None:
    """Play a suite or a task over many seeds and summarise it."""
    from automem.evaluate import Request
    from automem.progress import Progress

    chosen = chosen_specialist(specialist, specialist_base, specialist_api_base, merged, consult_turns, max_tokens)
    request = Request(
        target=target,
        model=played_model(model, api_base, temperature, max_tokens),
        scaffolds=() if scaffold is None else (scaffold,),
        seeds=seeds,
        episodes=episodes,
        steps=steps,
        name=run,
        resume=resume,
        sandbox=sandbox_limits(unsafe_hooks),
        specialist=None if chosen is None else chosen.played,
        agent=agent,
    )
    _evaluate(request, Progress(console), workers, chosen)


@app.command(epilog="Example: [bold]automem demo[/bold]")
def demo() -> None:
    """Play each game with `scripted`, then a few steps with `smollm2`; let loop 1 revise a scaffold; open its page."""
    from automem.demo import play_demo
    from meta.demo import short_loop

    async def both() -> tuple[str, dict[str, Any], Path]:
        await play_demo(console)
        console.rule("loop 1: rules rewrite the scaffold of Crafter, and what plays better is kept")
        return await short_loop(console)

    name, result, page = asyncio.run(both())
    say(result, name, str(page))
    if console.is_terminal:
        typer.launch(str(page))


@app.command(epilog="Example: [bold]automem runs[/bold]")
def runs() -> None:
    """List the loops, the searches and the runs, the latest first."""
    from automem import runs as stored
    from automem import tables
    from automem.bench import storage as benches
    from meta import storage
    from specialist.search import storage as search_storage

    loops, searches = storage.all_loops(), search_storage.all_searches()
    if lines := [bench.line() for bench in benches.all_benches()]:
        console.print(tables.loops(lines, "benches", "bench", "created", "suite", "agents", "episodes", "result"))
    if loops:
        columns = ("loop", "created", "game", "model", "reviewer", "attempts", "result")
        console.print(tables.loops((loop.line() for loop in loops), "loop 1", *columns))
    if searches:
        columns = ("search", "created", "game", "specialist", "decider", "trained", "result")
        console.print(tables.loops((search.line() for search in searches), "loop 2", *columns))
    found = stored.all_runs()
    if not found and not loops and not searches:
        console.print(f"no runs in {stored.runs_folder()}/ yet; automem eval crafter --model scripted makes one")
        return
    if found:
        console.print(tables.runs(found))


@app.command(epilog="Example: [bold]automem doctor[/bold]")
def doctor() -> None:
    """Say what is installed, what can run here, what is missing and how to get it."""
    from rich.table import Table

    from automem.doctor import checks

    marks = {"ok": "[green]ok[/green]", "warn": "[yellow]warn[/yellow]", "missing": "[red]missing[/red]"}
    table = Table(show_edge=False, pad_edge=False)
    for name in ("", "what", "found", "how to get it"):
        table.add_column(name, overflow="fold")
    for check in checks():
        table.add_row(marks[check.status], check.name, check.what, check.how or "")
    console.print(table)


@games_app.command("list", epilog="Example: [bold]automem games list[/bold]")
def games_list() -> None:
    """List tasks and suites."""
    from rich.table import Table

    tasks = Table(title="tasks", title_justify="left")
    for name in ("task", "game"):
        tasks.add_column(name)
    for task in games.tasks():
        tasks.add_row(task, games.game_of(task))
    console.print(tasks)
    table = Table(title="suites", title_justify="left")
    for name in ("suite", "episodes", "what"):
        table.add_column(name)
    for name in suites.names():
        suite = suites.load(name)
        table.add_row(name, str(suite.episodes), suite.describe)
    console.print(table)


@games_app.command("fetch", epilog="Example: [bold]automem games fetch[/bold]")
def games_fetch(
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Where to put them; the user's cache by default.")
    ] = None,
) -> None:
    """Fetch the official Boxoban levels once."""
    from rich.progress import DownloadColumn, Progress

    from games import boxoban

    with Progress(*Progress.get_default_columns(), DownloadColumn(), console=console) as shown:
        bar = shown.add_task("fetching", total=None)
        destination = boxoban.fetch(folder, lambda got, of: shown.update(bar, completed=got, total=of or None))
    console.print(f"official Boxoban levels are in {destination}")


def _evaluate(request: Request, view: Watcher, workers: int, chosen: Chosen | None) -> None:
    """Check, play, print the summary. Exits with 1 when episodes failed, with 130 after Ctrl-C."""
    from automem import evaluate as evaluation
    from automem import tables

    planned = evaluation.plan(request)
    asked = planned.config.model
    workers = workers or evaluation.default_workers(asked.name)
    model = evaluation.make_model(asked, processes=min(workers, os.cpu_count() or 1))
    beside = None
    if chosen is not None:
        from specialist import play

        model, beside = play.make(chosen, asked, model)
    try:
        run, summary = asyncio.run(evaluation.run(planned, request.resume, model, view, workers, beside))
    except KeyboardInterrupt:
        raise stopped(planned.config.name, True) from None
    console.print(tables.summary(summary))
    totals = summary["overall"]["behaviour"]["totals"]
    if totals["hook_errors"]:
        errors.print(
            f"hooks of the scaffold failed in {totals['hook_errors']} calls and counted as no answer; "
            "automem scaffold check says where, and the traces say when",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    cost = totals["cost"]
    if cost:
        console.print(f"cost: {cost:.4f} USD", highlight=False)
    console.print(f"run folder: {run.folder}", highlight=False, markup=False, soft_wrap=True)
    if not summary["complete"]:
        errors.print(
            f"{len(summary['failed'])} episodes are not finished and missing from the means. Once the cause is mended, "
            f"go on with: {again(run.config.name)}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(EXIT_INCOMPLETE)


def main() -> None:
    """Entry point of the `automem` command."""
    from games.boxoban import BoxobanError

    try:
        app()
    except (UserError, games.UnknownTask, suites.UnknownSuite, suites.BadSeeds, BoxobanError) as error:
        _fail(str(error))
    except BrokenPipeError:
        # The reader of our output went away (automem runs | head); what was written to disk is whole.
        with contextlib.suppress(OSError):
            sys.stdout.close()
        sys.exit(EXIT_INCOMPLETE)
    except OSError as error:
        if not error.strerror:
            raise
        _fail(f"{error.filename or 'the system'}: {error.strerror}")


def _fail(message: str) -> None:
    """One message, from wherever it came, and exit code 2."""
    from rich.text import Text

    from automem.memory.files import clean

    errors.print(Text("automem: ", style="bold red").append(clean(message), style="default"), soft_wrap=True)
    sys.exit(EXIT_USER)


if __name__ == "__main__":
    main()
