"""What was decided, on disk: a line for every candidate, and statistics of them.

``decisions.jsonl.zst`` holds one JSON object a line, in the order of the traces::

    run, task, seed, step, phase    where the candidate stands; called as in the views of `automem trace sql`
    accepted                        it becomes an example
    score                           the engine's; null when its episode was not looked at
    why                             what became of it, in a few words that are the same for all of a kind
    reason                          the same for this one
    points                          code of a reason -> what it added to the score

DuckDB reads it as it is, and by those names joins it with what `automem trace sql` says of the runs, for instance
to learn which operations the rejected ones ran::

    SELECT why, name, count(*) FROM 'decisions.jsonl.zst' JOIN ops USING (run, task, seed, step, phase) GROUP BY ALL
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import zstandard

from automem.errors import UserError
from specialist.candidate import Place

DECISIONS = "decisions.jsonl.zst"
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Decision:
    """A line of the file; see the module for the fields."""

    place: Place
    accepted: bool
    score: float | None
    why: str
    reason: str
    points: dict[str, float]

    def line(self) -> bytes:
        """As it is written."""
        place = self.place
        said = {
            "run": place.run,
            "task": place.task,
            "seed": place.seed,
            "step": place.step,
            "phase": place.phase,
            "accepted": self.accepted,
            "score": self.score,
            "why": self.why,
            "reason": self.reason,
            "points": self.points,
        }
        return orjson.dumps(said, option=orjson.OPT_APPEND_NEWLINE)


def write(folder: Path, decisions: Iterable[Decision]) -> Iterator[Decision]:
    """Write decisions as they come by, and pass them on. The file is there when all of them have come."""
    scratch = folder / f".{DECISIONS}.part"
    with scratch.open("wb") as file, zstandard.ZstdCompressor(level=3).stream_writer(file) as packed:
        for decision in decisions:
            packed.write(decision.line())
            yield decision
    scratch.replace(folder / DECISIONS)


def read(folder: Path) -> Iterator[Decision]:
    """All decisions of a folder, in order. Raises `UserError` when they cannot be read."""
    path = folder / DECISIONS
    try:
        for line in _lines(path):
            yield _decision(orjson.loads(line))
    except (OSError, zstandard.ZstdError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: no decisions of a selection: {error}; select again") from error


def _lines(path: Path) -> Iterator[bytes]:
    left = b""
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as unpacked:
        while data := unpacked.read(_PIECE):
            *lines, left = (left + data).split(b"\n")
            yield from lines
    if left:
        raise ValueError("the last line is torn off")


def _decision(data: dict[str, Any]) -> Decision:
    place = Place(*(data[name] for name in ("run", "task", "seed", "step", "phase")))
    return Decision(place, *(data[name] for name in ("accepted", "score", "why", "reason", "points")))
