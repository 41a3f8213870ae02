"""What every gate offers: paired differences in progression in, a decision about a revision out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Decision = Literal["continue", "accepted", "rejected", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Look:
    """One judgement of a gate.

    Attributes:
        seeds: how many have been played by both versions.
        mean: of the paired differences in progression, candidate minus parent, in [-1, 1].
        lower, upper: confidence bounds of the true mean, valid at every look at once; None where the gate has none.
        decision: what follows; "continue": play more seeds.
        why: in a sentence, for people.
    """

    seeds: int
    mean: float
    lower: float | None
    upper: float | None
    decision: Decision
    why: str


class Gate(Protocol):
    """Decides whether a candidate is better than its parent.

    Attributes:
        batch: seeds that are played between two looks.
        most: seeds that are played at most.
    """

    @property
    def batch(self) -> int: ...

    @property
    def most(self) -> int: ...

    def judge(self, differences: Sequence[float], alpha: float) -> Look:
        """Judge by what has been played so far.

        Args:
            differences: one for each seed, in the order in which they were played: the candidate's progression minus
                the parent's, averaged over the tasks and replicates of the seed; each in [-1, 1].
            alpha: the chance of accepting a candidate that is no better, at all looks together.

        Returns: the look; never "continue" when there are `most` differences.
        """
        ...
