"""The error budget of a loop: how it is shared among all candidates that may be tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PART = 1 / 3
"""Of what is left, what one revision may use. The first revisions matter most: reviewers propose first what promises
most, and a gain that is found early is a parent early. The last ones still get a fraction of the first one's share,
which costs them some seeds only, because seeds grow with the logarithm."""


@dataclass(frozen=True)
class ErrorBudget:
    """Bounds the chance that a loop accepts any candidate that is no better than its parent.

    A revision may use a third of what is left, or an even part of it where fewer revisions are to come, and each of its
    candidates is tested with an even share of that. When the revision is over, the shares of those that were judged
    and not accepted are spent. All others return: of candidates that the checker refused, of those that were not
    made because another was accepted, and of the accepted one.

    Why `total` holds. Take the candidates that are no better, up to the first of them that is accepted. Each keeps
    the share it was tested with; what returns was held by no one, or by a candidate that is better, whose acceptance
    is no error. So their shares never sum to more than `total`, and neither do their chances of being accepted.
    This is the fallback procedure (Wiens 2003; Wiens and Dmitrienko 2005), which holds whichever of the candidates are
    better, with the order of the tests left to the loop (Tian and Ramdas 2021, Online control of the familywise error
    rate). Where nothing is better, shares do not depend on how anything played until it is too late; so then
    chances add up also when all candidates are held against the same episodes of one parent.

    Attributes:
        total: the chance, for the whole loop.
        revisions: that the loop makes at most.
        candidates: that one revision may bring before the gate, continuations counted.
    """

    total: float = 0.05
    revisions: int = 6
    candidates: int = 6

    def alpha_of(self, revision: int, past: Sequence[Sequence[str]]) -> float:
        """The share of each candidate of a revision.

        A pure function of what happened, so a loop that goes on after a kill tests with the same shares.

        Args:
            revision: from 1.
            past: for each earlier revision, the outcomes (`meta.evidence.Outcome`) of those candidates that the gate
                has looked at, however they ended: who was looked at could have been accepted.

        Raises ValueError when `revision` or `past` does not fit the loop.
        """
        if not 1 <= revision <= self.revisions or len(past) != revision - 1:
            raise ValueError(f"revision {revision} of {self.revisions}, after outcomes of {len(past)}")
        remaining = self.total
        for number, outcomes in enumerate(past, start=1):
            if len(outcomes) > self.candidates:
                raise ValueError(f"revision {number} has {len(outcomes)} candidates; {self.candidates} may be judged")
            remaining -= sum(outcome != "accepted" for outcome in outcomes) * self._share(remaining, number)
        return self._share(remaining, revision)

    def _share(self, remaining: float, revision: int) -> float:
        return remaining * max(PART, 1 / (self.revisions - revision + 1)) / self.candidates
