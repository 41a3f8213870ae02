"""Tools that ask how runs were played: figures, steps, memory, words, SQL. Nothing here changes anything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Protocol

from pydantic import Field, create_model
from rich.console import Console

import games
from automem import compare, compare_view, stats_view
from automem.errors import UserError
from automem.runs import Run
from automem.trace import EpisodeTrace, RunTrace, query, search, show, stats
from automem.vocabulary import one_line
from meta.dialogue.tool import Arguments, Paged, Tool, page_of, printed

_SECONDS = 30.0
"""How long a search or a query may take."""

_CELL = 500
"""Characters of one value in the rows of a query."""

StepNumber = Annotated[int, Field(ge=0, le=10**9)]


class Room(Protocol):
    """Knows runs by the names that the model uses."""

    def trace(self, name: str) -> RunTrace:
        """The run of this name. Raises `UserError` that says which there are."""
        ...


class OfRun(Paged):
    """A run."""

    run: str
    """Its name."""


class OfEpisodes(OfRun):
    """Some episodes of a run."""

    task: str | None = None
    """Only this task."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """Only this seed."""


class Steps(OfEpisodes):
    """Steps of an episode."""

    start: StepNumber = 0
    """First step."""
    count: Annotated[int, Field(ge=1, le=50)] = 5
    """How many steps."""
    full: bool = False
    """Whole prompts, replies and results instead of the beginning of each."""


class MemoryAt(OfEpisodes):
    """The memory folder at a step."""

    step: StepNumber
    """The step."""
    file: str | None = None
    """Only this memory file."""


class MemoryBetween(OfEpisodes):
    """The memory folder at two steps."""

    from_step: StepNumber
    """The earlier step."""
    to_step: StepNumber
    """The later step."""
    file: str | None = None
    """Only this memory file."""


class Search(OfEpisodes):
    """A search."""

    pattern: Annotated[str, Field(min_length=1, max_length=search.LONGEST)]
    """A text, upper or lower case alike."""
    regex: bool = False
    """The pattern is a regular expression."""
    where: tuple[str, ...] = ()
    """Only these kinds of text: observation, prompt, reply, operation, result, error, action, hook."""
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    """Hits at most."""


class Sql(OfRun):
    """A query."""

    query: Annotated[str, Field(min_length=1, max_length=20_000)]
    """One SELECT as DuckDB understands it."""
    rows: Annotated[int, Field(ge=1, le=1000)] = 100
    """Rows at most."""


class Compared(Paged):
    """Two runs."""

    a: str
    """A run's name."""
    b: str
    """The one that is held against it."""


def _episodes(room: Room, asked: OfEpisodes) -> tuple[EpisodeTrace, ...]:
    try:
        return room.trace(asked.run).select(asked.task, asked.seed)
    except games.UnknownTask as error:
        raise UserError(str(error)) from error


def _episode(room: Room, asked: OfEpisodes) -> EpisodeTrace:
    found = _episodes(room, asked)
    if len(found) > 1:
        listed = ", ".join(f"{episode.task} {episode.seed}" for episode in found[:50])
        raise UserError(f"{len(found)} episodes fit; choose one with task and seed: {listed}")
    return found[0]


def _check_steps(episode: EpisodeTrace, *steps: int) -> None:
    for step in steps:
        if step >= len(episode):
            there = f"the steps 0 to {len(episode) - 1}" if len(episode) else "no step that can be read"
            raise UserError(f"there is no step {step}: this episode has {there}")


def _seen(trace: RunTrace) -> Run:
    """The run as if it had planned no other episodes than those that may be read."""
    shown = {(episode.task, episode.seed) for episode in trace.episodes}
    tasks = tuple(
        planned.model_copy(update={"seeds": tuple(s for s in planned.seeds if (planned.task, s) in shown)})
        for planned in trace.run.config.tasks
    )
    return Run(trace.run.folder, trace.run.config.model_copy(update={"tasks": tasks}))


def _tables(found: Sequence[Any]) -> str:
    def shown(console: Console) -> None:
        for part in found:
            console.print(part)

    return printed(shown)


def run_stats(room: Room, asked: OfRun) -> str:
    """Figures of a run."""
    trace = room.trace(asked.run)
    found = stats.of_run(_seen(trace), trace.episodes)
    return page_of(_tables(list(stats_view.of_run(found))), asked.page)


def episode_stats(room: Room, asked: OfEpisodes) -> str:
    """Figures of an episode."""
    return page_of(_tables(list(stats_view.of_episode(stats.of_episode(_episode(room, asked))))), asked.page)


def steps(room: Room, asked: Steps) -> str:
    """What happened in some steps."""
    episode = _episode(room, asked)
    _check_steps(episode, asked.start)
    lines = show.steps(episode.steps(asked.start, asked.start + asked.count), asked.full)
    return page_of("\n".join(line.plain for line in lines), asked.page)


def memory_at(room: Room, asked: MemoryAt) -> str:
    """Memory files at a step."""
    episode = _episode(room, asked)
    _check_steps(episode, asked.step)
    files = episode.memory(asked.step)
    if asked.file is not None:
        if asked.file not in files:
            raise UserError(f"there is no {asked.file!r} at step {asked.step}; there are: {', '.join(files) or 'none'}")
        files = {asked.file: files[asked.file]}
    listed = [f"--- {name}, {len(text)} characters ---\n{text.rstrip()}" for name, text in files.items()]
    return page_of("\n".join(listed) or "The memory folder is empty.", asked.page)


def memory_diff(room: Room, asked: MemoryBetween) -> str:
    """How memory files changed."""
    episode = _episode(room, asked)
    _check_steps(episode, asked.from_step, asked.to_step)
    found = episode.memory_diff(asked.from_step, asked.to_step)
    lines = [
        line.plain for name, diff in found.items() if asked.file in (None, name) for line in show.file_diff(name, diff)
    ]
    return page_of("\n".join(lines) or "Nothing changed.", asked.page)


def search_text(room: Room, asked: Search) -> str:
    """Where a text stands."""
    found = search.search(
        _episodes(room, asked),
        asked.pattern,
        regex=asked.regex,
        where=asked.where or search.EVERYWHERE,
        limit=asked.limit,
        seconds=_SECONDS,
    )
    lines = [show.hit(hit, True).plain for hit in found.hits]
    lines.append(f"{len(found.hits)} hits{', and there may be more' if found.more else ''}")
    return page_of("\n".join(lines), asked.page)


def sql(room: Room, asked: Sql) -> str:
    """Rows of a query."""
    answer = query.sql(room.trace(asked.run), asked.query, rows=asked.rows, seconds=_SECONDS)
    lines = ["\t".join(one_line(name, 100) for name in answer.columns)]
    lines += ["\t".join(map(_cell, row)) for row in answer.rows]
    lines.append(f"{len(answer.rows)} rows{', and there are more' if answer.more else ''}")
    return page_of("\n".join(lines), asked.page)


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _CELL)


def compare_runs(room: Room, asked: Compared) -> str:
    """One run against another, seed by seed."""
    found = compare.compare(_seen(room.trace(asked.a)), _seen(room.trace(asked.b)))
    return page_of(printed(lambda console: compare_view.show(found, console)), asked.page)


def tools(run: str, names: str) -> tuple[Tool, ...]:
    """The tools, in the order in which they are offered.

    Args:
        run: the run that is asked when the model names none.
        names: what the model is told about names of runs.
    """

    def of(arguments: type[Arguments], field: str = "run") -> type[Arguments]:
        named: Any = {field: (str, Field(default=run, description=names))}
        return create_model(arguments.__name__, __base__=arguments, **named)

    return (
        Tool("run_stats", "Figures of a run: its episodes with their scores, and behaviour.", of(OfRun), run_stats),
        Tool(
            "episode_stats",
            "Figures of one episode: achievements and the steps that reached them, behaviour, operations.",
            of(OfEpisodes),
            episode_stats,
        ),
        Tool(
            "read_steps",
            "What happened in steps of one episode: observation, every turn of LOG and PLAN with its operations and "
            "their results, the action and what came of it.",
            of(Steps),
            steps,
        ),
        Tool("memory_at", "The memory files of one episode as they stood at a step.", of(MemoryAt), memory_at),
        Tool("memory_diff", "What changed in memory files between two steps.", of(MemoryBetween), memory_diff),
        Tool(
            "search", "Where in a run's steps a text stands, with step, phase and an excerpt.", of(Search), search_text
        ),
        Tool(
            "sql",
            "A SELECT over the views episodes, steps, turns, ops and hook_events of a run; "
            'manual("sql") lists columns.',
            of(Sql),
            sql,
        ),
        Tool(
            "compare_runs",
            "Two runs on the seeds that both played: progression, behaviour, achievements gained and lost.",
            of(Compared, "a"),
            compare_runs,
        ),
    )
