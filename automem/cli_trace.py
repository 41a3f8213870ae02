"""``automem trace …``: questions about runs on the command line. Thin: it checks, calls, and prints."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from automem.completion import complete_run, complete_task
from automem.errors import UserError
from automem.width import wide

if TYPE_CHECKING:
    from rich.table import Table

    from automem.trace import EpisodeTrace, RunTrace

trace_app = typer.Typer(
    help="Traces: what happened in a run, step by step, in figures, and in SQL.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

console = Console()
errors = Console(stderr=True)


def complete_where(incomplete: str) -> list[str]:
    """Kinds of text for shell completion."""
    from automem.trace.search import EVERYWHERE

    return [kind for kind in EVERYWHERE if kind.startswith(incomplete)]


Run = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run, its folder, or the folder of an episode.", autocompletion=complete_run),
]
Task = Annotated[
    str | None, typer.Option("--task", metavar="TASK", help="Only this task.", autocompletion=complete_task)
]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="Only this seed.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


@trace_app.command("stats", epilog="Example: [bold]automem trace stats first[/bold]", no_args_is_help=True)
def stats(
    run: Run,
    task: Task = None,
    seed: Seed = None,
    files: Annotated[bool, typer.Option("--files", help="Lines and bytes of each memory file over the steps.")] = False,
    every: Annotated[
        int | None, typer.Option("--every", metavar="STEPS", min=1, help="With --files: sizes every so many steps.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show figures: progression, achievements, behaviour, operations; of a run or, with --seed, of an episode."""
    from automem import stats_view
    from automem.trace import EpisodeTrace
    from automem.trace import stats as figures

    if every is not None and not files:
        raise UserError("--every says at which steps sizes are shown; add --files")
    asked = _run(run)
    if seed is None and not isinstance(asked, EpisodeTrace):
        episodes = asked.episodes if task is None else asked.select(task)
        if files:
            _files(episodes, every, as_json)
            return
        whole = figures.of_run(asked.run, episodes)
        if as_json:
            _json(stats_view.plain_run(whole))
            return
        _print(stats_view.of_run(whole))
        return
    episode = _episode(asked, task, seed)
    if files:
        _files([episode], every, as_json)
        return
    one = figures.of_episode(episode)
    if as_json:
        _json(stats_view.plain_episode(one))
        return
    _print(stats_view.of_episode(one))
    if one.finished:
        _tell_damage(episode)


def _files(episodes: Sequence[EpisodeTrace], every: int | None, as_json: bool) -> None:
    """Sizes of memory files: of each episode as JSON, of each task as tables."""
    from automem import growth, stats_view

    found = []
    for episode in episodes:
        try:
            found.append((episode, growth.growth(episode)))
        except UserError as error:
            if len(episodes) == 1:
                raise
            _warn(str(error))
    if as_json:
        _json([{"task": e.task, "seed": e.seed, "files": stats_view.plain_files(sizes)} for e, sizes in found])
    else:
        for task in dict.fromkeys(episode.task for episode, _ in found):
            of_task = [(episode, sizes) for episode, sizes in found if episode.task == task]
            name = task if len(of_task) > 1 else f"{task}, seed {of_task[0][0].seed}"
            _print(stats_view.of_files(name, growth.means([sizes for _, sizes in of_task], every)))
    for episode, _ in found:
        _tell_damage(episode)


def _print(parts: Iterable[Table | Text]) -> None:
    for part in parts:
        wide(console).print(part, soft_wrap=isinstance(part, Text))


@trace_app.command(
    "steps", epilog="Example: [bold]automem trace steps first --seed 42 --from 10 --to 20[/bold]", no_args_is_help=True
)
def steps(
    run: Run,
    task: Task = None,
    seed: Seed = None,
    start: Annotated[int, typer.Option("--from", metavar="STEP", min=0, help="The first step.")] = 0,
    last: Annotated[int | None, typer.Option("--to", metavar="STEP", min=0, help="The last step.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Whole observations, prompts, replies and results.")] = False,
) -> None:
    """Show steps: observation, LOG, PLAN, operations and their results, hooks, action, progress."""
    from automem.trace import show

    episode = _episode(_run(run), task, seed)
    stop = start + 10 if last is None else last + 1
    if stop <= start:
        raise UserError(f"--from {start} --to {last}: the last step is before the first")
    for line in show.steps(episode.steps(start, stop), full):
        console.print(line, soft_wrap=True)
    if stop > len(episode):
        _tell_damage(episode)


@trace_app.command(
    "memory",
    epilog="Example: [bold]automem trace memory first --seed 42 --step 57 --diff 40[/bold]",
    no_args_is_help=True,
)
def memory(
    run: Run,
    step: Annotated[int, typer.Option("--step", metavar="STEP", help="The step, when its PLAN began.")],
    task: Task = None,
    seed: Seed = None,
    file: Annotated[str | None, typer.Option("--file", metavar="FILE", help="Only this file, as it is.")] = None,
    diff: Annotated[
        int | None, typer.Option("--diff", metavar="STEP", help="What changed between that step and --step.")
    ] = None,
) -> None:
    """Show the memory folder as it was at a step, or what changed in it between two."""
    from automem.memory.files import clean
    from automem.trace import show

    episode = _episode(_run(run), task, seed)
    if diff is not None:
        changes = episode.memory_diff(diff, step)
        for name in [file] if file is not None else changes:
            if name in changes:
                for line in show.file_diff(name, changes[name]):
                    console.print(line, soft_wrap=True)
        if not changes or (file is not None and file not in changes):
            console.print(Text(f"{file or 'memory'} did not change from step {diff} to step {step}"), soft_wrap=True)
        return
    found = episode.memory(step)
    if file is not None:
        if file not in found:
            raise UserError(f"there was no memory file {file!r} at step {step}; there were {_names(found)}")
        sys.stdout.write(clean(found[file]))
        return
    for name, text in found.items():
        lines = text.count("\n")
        console.print(Text(f"--- {name}: {lines} lines, {len(text.encode())} bytes", style="bold"), soft_wrap=True)
        console.print(Text(clean(text)), soft_wrap=True, end="")


@trace_app.command(
    "search", epilog="Example: [bold]automem trace search first diamond --in reply[/bold]", no_args_is_help=True
)
def search(
    run: Run,
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="What to look for, upper or lower case alike.")],
    regex: Annotated[bool, typer.Option("--regex", help="PATTERN is a regular expression.")] = False,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--in",
            metavar="KIND",
            help="observation, prompt, reply, operation, result, error, action or hook; can be repeated.",
            autocompletion=complete_where,
        ),
    ] = None,
    task: Task = None,
    seed: Seed = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Hits at most.")] = 50,
) -> None:
    """Find a text in observations, prompts, replies, operations and results."""
    from automem.trace import EpisodeTrace, show
    from automem.trace import search as searching

    asked = _run(run)
    episodes = (asked,) if isinstance(asked, EpisodeTrace) else asked.select(task, seed)
    found = searching.search(
        episodes, pattern, regex=regex, where=where or searching.EVERYWHERE, limit=limit, seconds=3600
    )
    for hit in found.hits:
        console.print(show.hit(hit, len(episodes) > 1), soft_wrap=True)
    for damage in found.damage:
        _warn(str(damage))
    for episode in episodes if not found.more else ():
        _tell_lost(episode)
    if not found.hits:
        errors.print(Text(f"nothing matches {pattern!r}"), soft_wrap=True)
        raise typer.Exit(1)
    if found.more:
        errors.print(Text(f"the first {limit} hits; --limit shows more"), soft_wrap=True)


@trace_app.command(
    "sql",
    epilog='Example: [bold]automem trace sql first "select name, count(*) from ops group by name"[/bold]',
    no_args_is_help=True,
)
def sql(
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="A run, or the folder of an episode.", autocompletion=complete_run),
    ] = None,
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="One SELECT, as DuckDB understands it.")] = None,
    schema: Annotated[bool, typer.Option("--schema", help="List the views and their columns.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a row.")] = False,
    rows: Annotated[int, typer.Option("--rows", metavar="N", min=1, help="Rows at most.")] = 1000,
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", min=0.1, help="How long it may take.")] = 60.0,
) -> None:
    """Answer a SELECT over episodes, steps, turns, ops and hook_events. Reads only."""
    from automem.trace import EpisodeTrace, show
    from automem.trace import query as asking

    if schema:
        sys.stdout.write(asking.schema() + "\n")
        return
    if run is None or query is None:
        raise UserError('name a run and a query, as in: automem trace sql RUN "select count(*) from steps"')
    if as_csv and as_json:
        raise UserError("--csv or --json, not both")
    asked = _run(run)
    answer = asking.sql(asked, query, rows=rows, seconds=seconds)
    if as_csv:
        show.write_csv(answer, sys.stdout)
    elif as_json:
        show.write_json(answer, sys.stdout)
    else:
        wide(console).print(show.rows(answer))
    if answer.more:
        errors.print(Text(f"the first {len(answer.rows)} rows; --rows shows more"), soft_wrap=True)
    for damage in answer.damage:
        _warn(damage)
    for episode in (asked,) if isinstance(asked, EpisodeTrace) else asked.episodes:
        _tell_lost(episode)


def _run(name: str) -> RunTrace | EpisodeTrace:
    """What was named: a run, or the folder of one episode."""
    from automem.episode import STEPS
    from automem.trace import EpisodeTrace, RunTrace

    if (Path(name) / STEPS).is_file():
        return EpisodeTrace(name)
    return RunTrace(name)


def _episode(asked: RunTrace | EpisodeTrace, task: str | None, seed: int | None) -> EpisodeTrace:
    from automem.trace import EpisodeTrace

    return asked if isinstance(asked, EpisodeTrace) else asked.episode(task, seed)


def _names(found: dict[str, str]) -> str:
    return ", ".join(found) or "none"


def _tell_damage(episode: EpisodeTrace) -> None:
    """Why its trace cannot be read to the end, or ends before the episode did."""
    if episode.damage is not None:
        _warn(str(episode.damage))
    else:
        _tell_lost(episode)


def _tell_lost(episode: EpisodeTrace) -> None:
    """Of a trace that is whole as far as it goes: that it ends before the episode did."""
    with suppress(UserError):  # of a damaged episode.json: it says nothing about the trace
        played = 0 if episode.result is None else episode.result.steps
        if episode.damage is None and len(episode) < played:
            _warn(f"{episode.path}: holds {len(episode)} of the {played} steps that were played")


def _warn(text: str) -> None:
    errors.print(Text(f"! {text}", style="yellow"), soft_wrap=True)


def _json(value: object) -> None:
    import orjson

    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")
