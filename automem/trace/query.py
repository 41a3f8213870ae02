"""SQL over traces: one SELECT, over views, read-only, with limits on everything.

The traces are read where they are; a damaged one, or one that is being written, is read up to where it is
whole. The query runs in a process of its own (`automem.trace.query_process`), which can be stopped at any time.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from automem.errors import UserError
from automem.metrics import Counts, rates
from automem.runs import Run
from automem.trace import views
from automem.trace.episode import EpisodeTrace, run_of
from automem.trace.frames import LARGEST
from automem.trace.run import RunTrace

ROWS = 1000
SECONDS = 60.0

BYTES = 4 * 2**30
"""Memory that a query may take, with the address space of its threads."""

THREADS = min(8, os.cpu_count() or 1)

CHARACTERS = 8 * 2**20
"""Characters of a whole answer."""

CELL = 20_000
"""Characters of one text in an answer."""

LINES = (16 * 2**20, LARGEST)
"""Bytes that a line of a trace may have, at first and if one proves to be longer."""

PIECE = 8 * 2**20
"""Bytes of a trace that are worth a thread."""

_CHILD = Path(__file__).with_name("query_process.py")

Asked: TypeAlias = RunTrace | EpisodeTrace | Run | str | Path

Named: TypeAlias = tuple[str, EpisodeTrace]
"""An episode and the name of its run."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows of a query.

    Attributes:
        columns, types: names and SQL types.
        rows: values as JSON has them: texts, numbers, lists, and dictionaries for structs and maps; a date, say,
            is a text.
        more: there were more rows than were asked for, or than fit.
        damage: traces that were read only in part, in words.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool
    damage: tuple[str, ...]


def sql(asked: Asked | Sequence[Asked], query: str, *, rows: int = ROWS, seconds: float = SECONDS) -> Answer:
    """Answer a SELECT over the views ``episodes``, ``steps``, ``turns``, ``ops`` and ``hook_events`` (`schema`).

    Args:
        asked: a run or an episode, by name, folder or object; or several.
        query: one SELECT, as DuckDB understands it.
        rows: rows of the answer at most.
        seconds: how long it may take.

    Raises `UserError` for a query that is wrong or forbidden, or takes too long or too much memory.
    """
    if rows < 1:
        raise UserError(f"{rows} rows: ask for at least one")
    episodes = [episode for one in _each(asked) for episode in one]
    until = time.monotonic() + seconds
    # TRY would hide that a text is missing; that a long one is named merely makes it likely that it is needed.
    brief = (views.LONG | {"try"}).isdisjoint(re.findall(r"\w+", query.lower()))
    longest = LINES[0]
    while True:
        with tempfile.TemporaryDirectory(prefix="automem-sql-") as folder:
            pieces = _in_brief(episodes, Path(folder)) if brief else _whole(episodes, Path(folder))
            request = _request(query, rows, episodes, pieces, brief, longest)
            answer = _run(request, until - time.monotonic(), seconds)
        if answer.get("full") and brief:
            brief = False
        elif answer.get("longer") and longest < LINES[1]:
            longest = LINES[1]
        else:
            break
    if "error" in answer:
        raise UserError(f"the query was not run: {answer['error']}")
    damage = tuple(str(episode.damage) for _, episode in episodes if episode.damage is not None)
    found = tuple(tuple(row) for row in answer["rows"])
    return Answer(tuple(answer["columns"]), tuple(answer["types"]), found, answer["more"], damage)


def _request(
    query: str, rows: int, episodes: list[Named], pieces: list[list[Path]], brief: bool, longest: int
) -> dict[str, Any]:
    files = [
        (str(path.resolve()), run, episode.task, episode.seed)
        for (run, episode), paths in zip(episodes, pieces, strict=True)
        for path in paths
    ]
    return {
        "query": query,
        "rows": rows,
        "bytes": BYTES,
        "threads": THREADS if longest == LINES[0] else 1,
        "characters": CHARACTERS,
        "cell": CELL,
        "not_brief": views.NOT_BRIEF,
        "traces": [path for path, *_ in files],
        "files": files,
        "episodes_table": views.episodes_table(),
        "episodes": [_row(run, episode) for run, episode in episodes],
        "views": views.over([path for path, *_ in files], brief, longest),
    }


def schema() -> str:
    """The views and their columns in words."""
    lines = []
    for view in views.ALL:
        lines.append(f"{view.name}: each row is {view.meaning}")
        width = max(len(column.name) for column in view.columns)
        kinds = max(len(column.type) for column in view.columns)
        lines += [f"  {c.name:{width}}  {c.type:{kinds}}  {c.meaning}" for c in view.columns]
        lines.append("")
    return "\n".join(lines[:-1])


def _each(asked: Asked | Sequence[Asked]) -> Iterator[list[Named]]:
    """The episodes of everything that was named, with their run's name."""
    several = [asked] if isinstance(asked, RunTrace | EpisodeTrace | Run | str | Path) else asked
    for one in several:
        if isinstance(one, EpisodeTrace):
            run = run_of(one.folder)
            yield [("" if run is None else run.config.name, one)]
        else:
            runs = one if isinstance(one, RunTrace) else RunTrace(one)
            yield [(runs.run.config.name, episode) for episode in runs.episodes]


def _threads(episodes: list[Named]) -> int:
    """In how many pieces an episode should come, so that all processors have something to unpack."""
    return max(1, THREADS // max(1, len(episodes)))


def _in_brief(episodes: list[Named], folder: Path) -> list[list[Path]]:
    """For each episode the files that hold its readable steps in brief."""
    found = []
    for number, (_, episode) in enumerate(episodes):
        frames = episode.briefs()
        most = -(-len(frames) // _threads(episodes)) or 1
        parts = [frames[first : first + most] for first in range(0, len(frames), most)]
        paths = [folder / f"{number}-{piece}.jsonl.zst" for piece in range(len(parts))]
        for path, part in zip(paths, parts, strict=True):
            path.write_bytes(b"".join(part))
        found.append(paths)
    return found


def _whole(episodes: list[Named], folder: Path) -> list[list[Path]]:
    """For each episode the files that hold its readable steps.

    Usually that is the trace itself. A damaged or unfinished one is copied as far as it is whole; and a few
    large ones are copied in pieces, which several threads can unpack at once.
    """
    found: list[list[Path]] = []
    for number, (_, episode) in enumerate(episodes):
        pieces = min(_threads(episodes), episode.size // PIECE)
        if not episode.size:
            found.append([])
        elif episode.result is not None and episode.damage is None and pieces < 2:
            found.append([episode.path])
        else:
            ends = episode.cuts(max(1, pieces))
            paths = [folder / f"{number}-{piece}.jsonl.zst" for piece in range(len(ends))]
            for path, (start, end) in zip(paths, pairwise([0, *ends]), strict=True):
                _copy(episode.path, path, start, end)
            found.append(paths)
    return found


def _copy(source: Path, target: Path, start: int, end: int) -> None:
    with source.open("rb") as read, target.open("wb") as written:
        read.seek(start)
        left = end - start
        while left > 0 and (data := read.read(min(left, PIECE))):
            written.write(data)
            left -= len(data)


def _row(run: str, episode: EpisodeTrace) -> list[Any]:
    """An episode as the table holds it, in the order of its columns."""
    result = episode.result
    values: dict[str, Any] = {"run": run, "task": episode.task, "seed": episode.seed, "finished": result is not None}
    values["damaged"] = episode.damage is not None
    if result is not None:
        names = ("model", "scaffold", "steps_limit", "progression", "episode_return", "terminated", "truncated")
        values |= {name: getattr(result, name) for name in names}
        values |= {"achievements": dict(result.achievements), "reached_at": dict(result.reached_at)}
        values |= {field.name: getattr(result.counts, field.name) for field in fields(Counts)}
        values |= rates(result.counts)
    elif len(episode):
        last = episode.step(len(episode) - 1)
        values |= {"progression": last.progression, "achievements": dict(last.achievements)}
        values |= {"terminated": last.terminated, "truncated": last.truncated, "steps": len(episode)}
    else:
        values["steps"] = 0
    return [values.get(column.name) for column in views.EPISODES.columns]


def _run(request: dict[str, Any], left: float, seconds: float) -> dict[str, Any]:
    """The answer of the process, of which only so many of the seconds are left."""
    child = subprocess.Popen(
        [sys.executable, "-I", str(_CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.defpath, "LANG": "C.UTF-8", "MALLOC_ARENA_MAX": "4"},
        start_new_session=True,
    )
    try:
        said, _ = child.communicate(json.dumps(request).encode(), timeout=max(0.1, left))
    except subprocess.TimeoutExpired as error:
        raise UserError(f"the query was stopped after {seconds:g} s; ask for less, or of fewer episodes") from error
    finally:
        child.kill()
        child.wait()
    if child.returncode or not said:
        raise UserError("the query needed too much memory or ended its process; ask for less, or of fewer episodes")
    answer = json.loads(said)
    if answer.get("memory"):
        raise UserError("the query needed too much memory; ask for less, or of fewer episodes")
    return answer
