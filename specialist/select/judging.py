"""Judging all candidates of one episode, here or in another process: little goes in, and little comes out."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from pathlib import Path

import orjson
import zstandard

from automem.errors import UserError
from automem.records import Phase
from automem.storable import storable
from automem.trace.episode import EpisodeTrace
from specialist.candidate import candidates
from specialist.select.engine import Engine
from specialist.select.similar import Lesson, lesson


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate and what became of it so far; a hundred thousand of them are kept at once.

    Attributes:
        step, phase: where it stands in its episode.
        score: None when it was not judged.
        good: the engine accepts it.
        points: code of a reason -> what it added to the score.
        text: the engine's reason.
        lesson: what it teaches, of a good one.
    """

    step: int
    phase: Phase
    score: float | None = None
    good: bool = False
    points: tuple[tuple[str, float], ...] = ()
    text: str = ""
    lesson: Lesson | None = None


async def judge(engine: Engine, run: str, episode: EpisodeTrace) -> list[Judged]:
    """Judge all candidates of an episode. Raises `UserError` when the engine does not judge each of them."""
    found = await asyncio.to_thread(lambda: list(candidates(run, episode)))
    verdicts = await engine.judge(episode, found)
    if len(verdicts) != len(found) or not all(math.isfinite(verdict.score) for verdict in verdicts):
        raise UserError(
            f"{episode.folder}: engine {engine.name} gave {len(verdicts)} verdicts on {len(found)} candidates, or a "
            "score that is no number"
        )
    # The same few verdicts come again and again; each is kept once.
    known: dict[object, object] = {}

    def once(value: object) -> object:
        return known.setdefault(value, value)

    return [
        Judged(
            step=candidate.place.step,
            phase=candidate.place.phase,
            score=verdict.score,
            good=verdict.accept,
            points=once(tuple((reason.code, reason.points) for reason in verdict.reasons)),  # type: ignore[arg-type]
            text=once(storable(verdict.text)),  # type: ignore[arg-type]
            lesson=lesson(candidate) if verdict.accept else None,
        )
        for candidate, verdict in zip(found, verdicts, strict=True)
    ]


def judge_apart(engine: Engine, run: str, folder: Path) -> list[Judged]:
    """The same in a process of its own, for an engine that is `local`."""
    return asyncio.run(judge(engine, run, EpisodeTrace(folder)))


def listed(folder: Path) -> list[Judged]:
    """All candidates of an episode that is not judged; which there are is known from the records in brief."""
    found = []
    for frame in EpisodeTrace(folder).briefs():
        data = zstandard.ZstdDecompressor().decompressobj().decompress(frame)
        for record in map(orjson.loads, data.splitlines()):
            if record["log"]:
                found.append(Judged(record["step"], "log"))
            if any(not op.get("by") for turn in record["plan"] for op in turn["ops"]):
                found.append(Judged(record["step"], "plan"))
    return found
