"""Candidates to read, as the model wrote them: accepted and rejected ones, over all scores and not the best only."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from automem import runs
from automem.errors import UserError
from automem.records import Turn
from automem.trace.episode import EpisodeTrace
from specialist.candidate import Candidate, Place, candidates_of
from specialist.select import decisions as recorded
from specialist.select.decisions import Decision
from specialist.select.quotas import ACCEPTED

ACCEPTED_OF_PHASE = 4
"""Accepted candidates of each phase that are shown."""

REJECTED_OF_KIND = 3
"""Rejected candidates that are shown, of each way to be rejected."""

LONGEST = 4_000
"""Characters of a reply that are shown."""

SEEN = 1_200
"""Characters of an observation that are shown."""

T = TypeVar("T")

Key = tuple[bool, str]
"""Accepted, and the phase; or rejected, and what became of it."""


def chosen(folder: Path) -> dict[Key, list[Decision]]:
    """Decisions to show, the accepted ones first. Raises `UserError` when they cannot be read."""
    lots: dict[Key, list[tuple[float, bytes, int]]] = defaultdict(list)
    for i, decision in enumerate(recorded.read(folder)):
        lots[_key(decision)].append((decision.score or 0.0, _lot(decision.place), i))
    picked = {
        key: even(sorted(found), ACCEPTED_OF_PHASE if key[0] else REJECTED_OF_KIND) for key, found in lots.items()
    }
    numbers = {i: key for key, found in picked.items() for *_, i in found}
    shown: dict[Key, list[Decision]] = {key: [] for key in sorted(lots, key=lambda key: (not key[0], key[1]))}
    for i, decision in enumerate(recorded.read(folder)):
        if i in numbers:
            shown[numbers[i]].append(decision)
    for of_key in shown.values():
        of_key.sort(key=lambda decision: (-(decision.score or 0.0), decision.place.step))
    return shown


def even(ordered: Sequence[T], most: int) -> list[T]:
    """At most so many of them, evenly spread over their order, both ends among them."""
    if len(ordered) <= most:
        return list(ordered)
    if most == 1:
        return [ordered[len(ordered) // 2]]
    return [ordered[round(i * (len(ordered) - 1) / (most - 1))] for i in range(most)]


def readings(folder: Path, traces: Path) -> list[dict[str, Any]]:
    """Groups of candidates to read.

    Args:
        folder: of a selection.
        traces: the folder of runs that hold them.
    """
    return [
        {"accepted": key[0], "title": _title(key), "examples": [_reading(one, traces) for one in found]}
        for key, found in chosen(folder).items()
    ]


def _key(decision: Decision) -> Key:
    return decision.accepted, decision.place.phase if decision.why == ACCEPTED else decision.why


def _lot(place: Place) -> bytes:
    """Among candidates of the same score, a draw that falls out the same every time."""
    return hashlib.blake2b(str(place).encode(), digest_size=8).digest()


def _title(key: Key) -> str:
    return f"Accepted, {key[1].upper()}" if key[0] else f"Rejected: {key[1]}"


def _reading(decision: Decision, traces: Path) -> dict[str, Any]:
    place = decision.place
    found = _candidate(place, traces)
    return {
        "place": str(place),
        "phase": place.phase.upper(),
        "score": decision.score,
        "reason": "" if _is_points(decision) else decision.reason,
        "points": _points(decision),
        "turns": [] if isinstance(found, str) else [_turn(turn) for turn in found.turns],
        "seen": "" if isinstance(found, str) else found.record.observation,
        "gone": found if isinstance(found, str) else "",
    }


def _points(decision: Decision) -> list[tuple[str, float]]:
    """What counts for it and against it, the heaviest first."""
    return sorted(decision.points.items(), key=lambda one: -abs(one[1]))


def _is_points(decision: Decision) -> bool:
    """Whether its reason is nothing but its points once more."""
    return decision.reason == ", ".join(f"{code} {points:+g}" for code, points in decision.points.items())


def _candidate(place: Place, traces: Path) -> Candidate | str:
    """The candidate, or why it cannot be shown."""
    try:
        run = runs.load(str(traces / place.run))
        episode = EpisodeTrace(run.folder / "episodes" / place.task / f"seed-{place.seed}")
        found = (one for one in candidates_of(place.run, episode, place.step) if one.place.phase == place.phase)
        return next(found, "its trace holds no such phase any more")
    except UserError:
        return "its trace cannot be read any more"


def _turn(turn: Turn) -> dict[str, Any]:
    return {"text": turn.text, "errors": turn.errors, "refused": _refused(turn.ops)}


def _refused(ops: Iterable[Any]) -> list[str]:
    return [f"{op.label}: {op.result}" for op in ops if not op.ok and not op.by]
