"""Which of the good candidates are taken: the recipe's quotas, and no near-duplicates.

Best scores first. Candidates of the same score take turns by episode, and within an episode they come in an order
that is as good as random and always the same, so that neither an episode nor its first steps fill the quota.
LOG and PLAN take turns as `log_share` says, so that neither takes the other's room in its episodes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from automem.records import Phase
from specialist.candidate import Place
from specialist.recipe import DataRecipe
from specialist.select.judging import Judged
from specialist.select.similar import Taken

ACCEPTED, NOT_GOOD, TWIN, FULL_EPISODE, ENOUGH = (
    "accepted",
    "not good enough",
    "near-duplicate",
    "episode has its share",
    "enough examples",
)
"""What may become of a candidate, beside what is refused with its whole episode (`specialist.select.episodes`)."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a candidate.

    Attributes:
        why: one of the few kinds that statistics are kept by.
        reason: in words.
    """

    why: str
    reason: str

    @property
    def accepted(self) -> bool:
        """It is taken."""
        return self.why == ACCEPTED


@dataclass(frozen=True, slots=True)
class Waiting:
    """A good candidate, and where it stands."""

    place: Place
    judged: Judged


def choose(good: Sequence[Waiting], recipe: DataRecipe) -> dict[Place, Fate]:
    """What becomes of each good candidate. The order in which they are given does not matter."""
    return _Choice(recipe).of(good)


class _Choice:
    def __init__(self, recipe: DataRecipe) -> None:
        self._recipe = recipe
        log = round(recipe.examples * recipe.log_share)
        self._wanted: Mapping[Phase, int] = {"log": log, "plan": recipe.examples - log}
        self._taken: Mapping[Phase, Taken] = {"log": Taken(recipe.similar), "plan": Taken(recipe.similar)}
        self._count: Counter[Phase] = Counter()
        self._episodes: Counter[tuple[str, str, int]] = Counter()
        self._fates: dict[Place, Fate] = {}

    def of(self, good: Sequence[Waiting]) -> dict[Place, Fate]:
        queues = {phase: iter(in_turns([w for w in good if w.place.phase == phase])) for phase in self._wanted}
        while queues:
            phase = min(queues, key=self._share)
            if not self._next(queues[phase]):
                del queues[phase]
        return self._fates

    def _share(self, phase: Phase) -> tuple[float, str]:
        """How much of what is wanted of this phase is there; whoever has less comes next."""
        wanted = self._wanted[phase]
        return (self._count[phase] / wanted if wanted else 1.0, phase)

    def _next(self, queue: Iterator[Waiting]) -> bool:
        """Decide on candidates up to the first that is taken. False when none was."""
        for waiting in queue:
            fate = self._fates[waiting.place] = self._decide(waiting)
            if fate.accepted:
                return True
        return False

    def _decide(self, waiting: Waiting) -> Fate:
        place, lesson = waiting.place, waiting.judged.lesson
        assert lesson is not None
        if self._count[place.phase] >= self._wanted[place.phase]:
            return Fate(ENOUGH, f"enough {place.phase.upper()} examples")
        if self._episodes[place.episode] >= self._recipe.per_episode:
            return Fate(FULL_EPISODE, f"episode has its {self._recipe.per_episode}")
        twin = self._taken[place.phase].twin(lesson)
        if twin is not None:
            return Fate(TWIN, f"near-duplicate of {twin}")
        self._taken[place.phase].add(lesson, str(place))
        self._count[place.phase] += 1
        self._episodes[place.episode] += 1
        return Fate(ACCEPTED, waiting.judged.text)


def in_turns(good: Sequence[Waiting]) -> list[Waiting]:
    """Best scores first; of the same score one of each episode, then the next one of each."""
    ordered = sorted(good, key=lambda w: (-_score(w), _lot(w.place.within), str(w.place)))
    seen: Counter[tuple[float, tuple[str, str, int]]] = Counter()
    keyed = []
    for waiting in ordered:
        score, episode = _score(waiting), waiting.place.episode
        keyed.append(((-score, seen[score, episode], _lot(str(episode[1:])), episode), waiting))
        seen[score, episode] += 1
    return [waiting for _, waiting in sorted(keyed, key=lambda one: one[0])]


def _score(waiting: Waiting) -> float:
    assert waiting.judged.score is not None
    return waiting.judged.score


def _lot(text: str) -> bytes:
    """A draw that falls out the same every time."""
    return hashlib.blake2b(text.encode(), digest_size=8).digest()
