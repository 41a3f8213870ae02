"""SQL over traces: one SELECT, over views, read-only, with limits on everything.

The traces are read where they are; a damaged one, or one that is being written, is read up to where it is
whole. The query runs in a process of its own (`automem.trace.query_process`), which can be stopped at any time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

from automem.errors import UserError
from automem.metrics import Counts, rates
from automem.runs import Run
from automem.trace import views
from automem.trace.episode import EpisodeTrace, run_of
from automem.trace.run import RunTrace

ROWS = 1000
SECONDS = 60.0

BYTES = 4 * 2**30
"""Memory that a query may take."""

CHARACTERS = 8 * 2**20
"""Characters of a whole answer."""

CELL = 20_000
"""Characters of one text in an answer."""

PIECE = 8 * 2**20
"""Bytes of a trace that are worth a thread."""

_CHILD = Path(__file__).with_name("query_process.py")

Asked: TypeAlias = RunTrace | EpisodeTrace | Run | str | Path


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
    with _readable([episode for _, episode in episodes]) as pieces:
        files = [
            (path, run, episode.task, episode.seed)
            for (run, episode), paths in zip(episodes, pieces, strict=True)
            for path in paths
        ]
        request = {
            "query": query,
            "rows": rows,
            "bytes": BYTES,
            "characters": CHARACTERS,
            "cell": CELL,
            "traces": [path for path, *_ in files],
            "files": files,
            "episodes_table": views.episodes_table(),
            "episodes": [_row(run, episode) for run, episode in episodes],
            "views": views.over([path for path, *_ in files]),
        }
        answer = _run(request, seconds)
    damage = tuple(str(episode.damage) for _, episode in episodes if episode.damage is not None)
    found = tuple(tuple(row) for row in answer["rows"])
    return Answer(tuple(answer["columns"]), tuple(answer["types"]), found, answer["more"], damage)


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


def _each(asked: Asked | Sequence[Asked]) -> Iterator[list[tuple[str, EpisodeTrace]]]:
    """The episodes of everything that was named, with their run's name."""
    several = [asked] if isinstance(asked, RunTrace | EpisodeTrace | Run | str | Path) else asked
    for one in several:
        if isinstance(one, EpisodeTrace):
            run = run_of(one.folder)
            yield [("" if run is None else run.config.name, one)]
        else:
            runs = one if isinstance(one, RunTrace) else RunTrace(one)
            yield [(runs.run.config.name, episode) for episode in runs.episodes]


@contextmanager
def _readable(episodes: list[EpisodeTrace]) -> Iterator[list[list[str]]]:
    """For each episode the files that hold its readable steps.

    Usually that is the trace itself. A damaged or unfinished one is copied as far as it is whole; and a few
    large ones are copied in pieces, which several threads can unpack at once.
    """
    threads = min(8, os.cpu_count() or 1)
    with tempfile.TemporaryDirectory(prefix="automem-sql-") as folder:
        found: list[list[str]] = []
        for number, episode in enumerate(episodes):
            size = episode.size
            split = min(size // PIECE, threads // len(episodes)) if len(episodes) < threads else 0
            if not size:
                found.append([])
            elif episode.result is not None and episode.damage is None and split < 2:
                found.append([str(episode.path.resolve())])
            else:
                ends = episode.cuts(max(1, split))
                paths = [str(Path(folder, f"{number}-{piece}.jsonl.zst").resolve()) for piece in range(len(ends))]
                for path, (start, end) in zip(paths, zip([0, *ends], ends, strict=False), strict=True):
                    _copy(episode.path, path, start, end)
                found.append(paths)
        yield found


def _copy(source: Path, target: str, start: int, end: int) -> None:
    with source.open("rb") as read, Path(target).open("wb") as written:
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


def _run(request: dict[str, Any], seconds: float) -> dict[str, Any]:
    child = subprocess.Popen(
        [sys.executable, "-I", str(_CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.defpath, "LANG": "C.UTF-8"},
        start_new_session=True,
    )
    try:
        said, _ = child.communicate(json.dumps(request).encode(), timeout=seconds)
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
    if "error" in answer:
        raise UserError(f"the query was not run: {answer['error']}")
    return answer
