"""Statistics of a selection (``statistics.json``): by phase, by episode, by what became of candidates, and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from automem.episode import write_json
from automem.errors import UserError
from automem.records import Phase
from specialist.recipe import DataRecipe
from specialist.select.decisions import Decision
from specialist.select.episodes import Considered

STATISTICS = "statistics.json"
FORMAT: Literal[1] = 1


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class OfPhase(_Strict):
    """Candidates of LOG, or of PLAN."""

    candidates: int = 0
    accepted: int = 0
    why: dict[str, int] = {}
    """What became of them -> how many, the most frequent first."""


class OfEpisode(_Strict):
    """Candidates of an episode, and what it came to; None while it is not finished."""

    run: str
    task: str
    seed: int
    episode_return: float | None
    progression: float | None
    looked_at: bool
    """Its candidates were judged."""
    candidates: int = 0
    accepted: int = 0


class OfReason(_Strict):
    """A reason that engines give: on how many candidates it weighed, and how heavily."""

    accepted: int = 0
    rejected: int = 0
    points_accepted: float = 0.0
    """Sum over the accepted ones."""
    points_rejected: float = 0.0


class Statistics(_Strict):
    """All of ``statistics.json``."""

    format: Literal[1] = FORMAT
    engine: str
    version: str
    """Of the engine's criteria."""
    recipe: DataRecipe
    runs: tuple[str, ...]
    candidates: int
    accepted: int
    phases: dict[Phase, OfPhase]
    episodes: tuple[OfEpisode, ...]
    reasons: dict[str, OfReason]
    """By code."""

    def shortage(self) -> str | None:
        """In words, that there are fewer good candidates than the recipe needs; None when there are enough."""
        if self.accepted >= self.recipe.minimum:
            return None
        why: Counter[str] = Counter()
        for phase in self.phases.values():
            why.update(phase.why)
        del why["accepted"]
        listed = "; ".join(f"{reason}: {number}" for reason, number in why.most_common(4)) or "there was none"
        against = sorted((r.points_rejected, code) for code, r in self.reasons.items() if r.points_rejected < 0)
        weighed = ", ".join(f"{code} on {self.reasons[code].rejected}" for _, code in against[:3])
        return (
            f"{self.accepted} of {self.candidates} candidates were accepted, and the recipe needs "
            f"{self.recipe.minimum}. Of the others: {listed}."
            + (f" What weighed most against them: {weighed}." if weighed else "")
            + " Collect more episodes, or ask for less (data.minimum, data.best_episodes, data.similar)"
        )


def count(
    engine: tuple[str, str], recipe: DataRecipe, considered: Sequence[Considered], decisions: Iterable[Decision]
) -> Statistics:
    """Count decisions.

    Args:
        engine: name and version.
        considered: all episodes.
        decisions: of all of their candidates.
    """
    seen: dict[Phase, Counter[str]] = {"log": Counter(), "plan": Counter()}
    episodes: Counter[tuple[tuple[str, str, int], bool]] = Counter()
    weighed: dict[str, dict[bool, list[float]]] = defaultdict(lambda: {True: [], False: []})
    for decision in decisions:
        seen[decision.place.phase][decision.why] += 1
        episodes[decision.place.episode, decision.accepted] += 1
        for code, points in decision.points.items():
            weighed[code][decision.accepted].append(points)
    return Statistics(
        engine=engine[0],
        version=engine[1],
        recipe=recipe,
        runs=tuple(sorted({one.run for one in considered})),
        candidates=sum(why.total() for why in seen.values()),
        accepted=sum(why["accepted"] for why in seen.values()),
        phases={phase: _phase(why) for phase, why in seen.items()},
        episodes=tuple(_episode(one, episodes) for one in considered),
        reasons={code: _reason(points) for code, points in sorted(weighed.items())},
    )


def write(folder: Path, statistics: Statistics) -> None:
    """Write them; a folder that has them is a whole selection. Raises `UserError`."""
    write_json(folder / STATISTICS, statistics.model_dump(mode="json"))


def read(folder: Path) -> Statistics:
    """Read them. Raises `UserError` when there are none."""
    try:
        return Statistics.model_validate_json((folder / STATISTICS).read_bytes())
    except (OSError, ValidationError) as error:
        raise UserError(f"{folder}: no selection of this version of AutoMem: {error}") from error


def _phase(why: Counter[str]) -> OfPhase:
    return OfPhase(candidates=why.total(), accepted=why["accepted"], why=dict(why.most_common()))


def _episode(one: Considered, counted: Counter[tuple[tuple[str, str, int], bool]]) -> OfEpisode:
    accepted = counted[one.key, True]
    return OfEpisode(
        run=one.run,
        task=one.trace.task,
        seed=one.trace.seed,
        episode_return=None if one.result is None else one.result.episode_return,
        progression=None if one.result is None else one.result.progression,
        looked_at=not one.refusal,
        candidates=accepted + counted[one.key, False],
        accepted=accepted,
    )


def _reason(points: dict[bool, list[float]]) -> OfReason:
    return OfReason(
        accepted=len(points[True]),
        rejected=len(points[False]),
        points_accepted=round(sum(points[True]), 3),
        points_rejected=round(sum(points[False]), 3),
    )
