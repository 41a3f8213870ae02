"""The default gate: plays seeds until it knows, and says so at any look without fooling itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from automem.errors import UserError
from automem.statistics import TIE, mean
from meta.gate import betting
from meta.gate.look import Decision, Look
from meta.points import points


@dataclass(frozen=True)
class Sequential:
    """Accepts what is better for sure, and gives up early what is not worth more seeds.

    The bounds of the true mean difference are those of `meta.gate.betting`: valid at every look, for any spread and
    shape. Only the lower one decides what is accepted, so only it takes from a loop's error budget. Giving up,
    for whatever reason, can never accept anything; therefore the upper bound has an error of its own, and the
    rule for giving up may look ahead freely.

    A candidate is given up when the seeds that are left would have to average more than the upper bound to bring the
    lower bound above 0. That costs power where the rest would have been luckier than the bound
    (`benchmarks/gate_errors.py` counts it in) and saves most of the seeds of a candidate that is no better.

    Attributes:
        batch: seeds between two looks.
        most: seeds at most.
        smallest_gain: in progression, 0 to 1; a candidate that surely gains less is rejected.
        futility: error of the upper bound.
        margin: in progression, 0 to 1. Above 0, a candidate need not be better, but no worse than by this; what it
            does gain is then not asked for.
    """

    batch: int = 8
    most: int = 160
    smallest_gain: float = 0.02
    futility: float = 0.05
    margin: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.batch <= self.most:
            raise UserError(
                f"gate: batch must be at least 1 and at most `most`; batch is {self.batch}, most is {self.most}"
            )
        if not 0 <= self.smallest_gain < 1:
            raise UserError(f"gate: smallest_gain is a share of 1 (0.02 is two points), not {self.smallest_gain}")
        if not 0 <= self.margin < 1:
            raise UserError(f"gate: margin is a share of 1 (0.02 is two points), not {self.margin}")
        if not 0 < self.futility < 1:
            raise UserError(f"gate: futility must be above 0 and below 1, not {self.futility}")

    def judge(self, differences: Sequence[float], alpha: float) -> Look:
        """As `meta.gate.Gate`. Raises ValueError for no difference, one outside [-1, 1], or an alpha outside (0, 1)."""
        values = _checked(differences)
        if not 0 < alpha < 1:
            raise ValueError(f"alpha must be above 0 and below 1, not {alpha}")
        decision = self.decision(values, alpha)
        lower, upper = betting.lower(values, alpha), betting.upper(values, self.futility)
        why = f"After {len(values)} seeds {self._why(decision, values, alpha, lower, upper)}."
        return Look(len(values), mean(differences), lower, upper, decision, why)

    def decision(self, values: NDArray[np.float64], alpha: float) -> Decision:
        """What `judge` decides, without the bounds.

        Args:
            values: differences in [-1, 1], shape (seeds,).
            alpha: as there.
        """
        return self._decision(values, *self._wealth(values), alpha)

    def course(self, values: NDArray[np.float64], alpha: float) -> tuple[Decision, int]:
        """The decision that look after look comes to, and the seeds it takes; for simulations.

        Args:
            values: the differences of `most` seeds.
            alpha: as in `judge`.
        """
        against_none, against_worth = self._wealth(values)
        for played in range(self.batch, self.most, self.batch):
            decision = self._decision(values[:played], against_none[:played], against_worth[:played], alpha)
            if decision != "continue":
                return decision, played
        return self._decision(values, against_none, against_worth, alpha), self.most

    def _wealth(self, values: NDArray[np.float64]) -> tuple[betting.Array, betting.Array]:
        """Of betting against "no more than must be", and against "enough"."""
        return betting.log_wealth(values, -self.margin), betting.log_wealth(-values, -self._enough)

    @property
    def _enough(self) -> float:
        """A candidate that surely gains less is rejected."""
        return -self.margin if self.margin else self.smallest_gain

    def _decision(
        self, values: NDArray[np.float64], against_none: betting.Array, against_worth: betting.Array, alpha: float
    ) -> Decision:
        if betting.reached(against_none, alpha):
            return "accepted"
        if betting.reached(against_worth, self.futility):
            return "rejected"
        if self._alike(values):
            return "inconclusive"
        needed = betting.needed(against_none, self._left(values), alpha) - self.margin
        hopeless = needed >= 1 or betting.refuted(-values, -needed, self.futility)
        return "inconclusive" if hopeless else "continue"

    def _alike(self, values: NDArray[np.float64]) -> bool:
        """Whether nothing has differed in two batches: what the candidate changes does not matter to this player."""
        return not self.margin and len(values) >= 2 * self.batch and not np.any(np.abs(values) > TIE)

    def _left(self, values: NDArray[np.float64]) -> int:
        return max(0, self.most - len(values))

    def _why(self, decision: Decision, values: NDArray[np.float64], alpha: float, lower: float, upper: float) -> str:
        """The reason of a decision, to follow "after so many seeds"."""
        between = f"the gain lies between {points(lower)} and {points(upper)}"
        least = points(-self.margin) if self.margin else "0"
        if decision == "accepted":
            return f"the gain is above {least}: its lower bound is {points(lower)}"
        if decision == "rejected":
            asked = "what is allowed" if self.margin else "what is worth having"
            return f"the upper bound of the gain, {points(upper)}, is below {asked}, {points(self._enough)}"
        if self._alike(values):
            return "it is given up: not one of them was played to another end than by the parent"
        left = self._left(values)
        if decision == "continue":
            return between
        if not left:
            return f"{between}, and no seeds are left"
        needed = betting.needed(betting.log_wealth(values, -self.margin), left, alpha) - self.margin
        wanted = f"would have to average {points(needed)}" if needed <= 1 else "could not do it"
        return (
            f"it is given up: to bring the lower bound above {least}, the other {left} {wanted}, "
            f"and the upper bound of the gain is {points(upper)}"
        )


def _checked(differences: Sequence[float]) -> NDArray[np.float64]:
    values = np.asarray(differences, dtype=float)
    if not values.size or not np.all(np.abs(values) <= 1 + TIE):
        raise ValueError(f"a gate judges at least one difference, each in [-1, 1], not {list(differences)}")
    return np.clip(values, -1, 1)  # means of progressions may miss the end by a rounding
