"""Which accepted version a revision is made from."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from automem.scaffold import Scaffold
from meta.evidence import Attempt
from meta.settings import SearchSettings


@dataclass(frozen=True, slots=True)
class Accepted:
    """A version that may be a parent.

    Attributes:
        scaffold: it.
        gain: sum of the mean differences with which it and its ancestors were accepted, none counted below 0:
            progression over the root.
        tried: revisions that were made from it so far.
    """

    scaffold: Scaffold
    gain: float
    tried: int


def kept(attempts: Sequence[Attempt]) -> Attempt | None:
    """Of a revision's attempts the one that goes on: of several accepted side by side, that with the best bound."""

    def rank(attempt: Attempt) -> tuple[float, float]:
        look = attempt.looks[-1]
        return (look.mean if look.lower is None else look.lower, look.mean)

    return max((attempt for attempt in attempts if attempt.outcome == "accepted"), key=rank, default=None)


def best(accepted: Sequence[Accepted]) -> Accepted:
    """The version with the greatest gain; of equal ones the latest."""
    return max(enumerate(accepted), key=lambda item: (item[1].gain, item[0]))[1]


def choose(accepted: Sequence[Accepted], revision: int, settings: SearchSettings) -> Accepted:
    """The parent of a revision; the same for the same arguments.

    ``archive`` draws with weights: a version's gain over the worst one, plus the spread of gains over the number of
    revisions made from it already, so that good versions and untried ones are drawn more often.
    """
    if settings.parents == "best" or len(accepted) == 1:
        return best(accepted)
    worst = min(version.gain for version in accepted)
    spread = max(version.gain for version in accepted) - worst or 1.0
    weights = [version.gain - worst + spread / (1 + version.tried) for version in accepted]
    return random.Random(f"{settings.seed}:{revision}").choices(accepted, weights)[0]
