"""The default gate: plays seeds until it knows, and says so at any look without fooling itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from automem.errors import UserError
from automem.statistics import TIE, mean
from meta.gate import betting
from meta.gate.look import Decision, Look


class Verdicts(NamedTuple):
    """What holds by now, for each row of differences; all arrays of booleans of one shape.

    Attributes:
        better: the lower bound of the gain is above 0.
        small: the upper bound is below the smallest gain worth having.
        hopeless: the seeds that are left cannot bring the lower bound above 0.
    """

    better: NDArray[np.bool_]
    small: NDArray[np.bool_]
    hopeless: NDArray[np.bool_]


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
    """

    batch: int = 8
    most: int = 80
    smallest_gain: float = 0.02
    futility: float = 0.05

    def __post_init__(self) -> None:
        if not 1 <= self.batch <= self.most:
            raise UserError(
                f"gate: batch must be at least 1 and at most `most`; batch is {self.batch}, most is {self.most}"
            )
        if not 0 <= self.smallest_gain < 1:
            raise UserError(f"gate: smallest_gain is a share of 1 (0.02 is two points), not {self.smallest_gain}")
        if not 0 < self.futility < 1:
            raise UserError(f"gate: futility must be above 0 and below 1, not {self.futility}")

    def judge(self, differences: Sequence[float], alpha: float) -> Look:
        """As `meta.gate.Gate`. Raises ValueError for no difference, one outside [-1, 1], or an alpha outside (0, 1)."""
        values = _checked(differences)
        if not 0 < alpha < 1:
            raise ValueError(f"alpha must be above 0 and below 1, not {alpha}")
        verdicts = self.verdicts(values, alpha)
        seeds, left = len(values), max(0, self.most - len(values))
        lower, upper = betting.lower(values, alpha), betting.upper(values, self.futility)
        decision: Decision
        if verdicts.better:
            decision, why = "accepted", f"the gain is above 0: its lower bound is {_points(lower)}"
        elif verdicts.small:
            decision = "rejected"
            worth = _points(self.smallest_gain)
            why = f"the upper bound of the gain, {_points(upper)}, is below what is worth having, {worth}"
        elif not left:
            decision = "inconclusive"
            why = f"the gain lies between {_points(lower)} and {_points(upper)}, and no seeds are left"
        elif verdicts.hopeless:
            decision, why = "inconclusive", self._given_up(values, left, alpha, upper)
        else:
            decision, why = "continue", f"the gain lies between {_points(lower)} and {_points(upper)}"
        return Look(seeds, mean(differences), lower, upper, decision, f"After {seeds} seeds {why}.")

    def verdicts(self, values: NDArray[np.float64], alpha: ArrayLike) -> Verdicts:
        """Judge many candidates that have played the same number of seeds.

        Args:
            values: differences in [-1, 1], shape (..., seeds).
            alpha: broadcasts against ``values[..., 0]``.
        """
        needed = betting.needed(values, max(0, self.most - values.shape[-1]), alpha)
        within = np.minimum(needed, 1 - TIE)  # no mean of 1 can be bet against
        return Verdicts(
            better=betting.refuted(values, 0.0, alpha),
            small=betting.refuted(-values, -self.smallest_gain, self.futility),
            hopeless=(needed > within) | betting.refuted(-values, -within, self.futility),
        )

    def _given_up(self, values: NDArray[np.float64], left: int, alpha: float, upper: float) -> str:
        needed = float(betting.needed(values, left, alpha))
        wanted = f"would have to average {_points(needed)}" if needed <= 1 else "could not do it"
        return (
            f"it is given up: to bring the lower bound above 0, the other {left} {wanted}, "
            f"and the upper bound of the gain is {_points(upper)}"
        )


def _checked(differences: Sequence[float]) -> NDArray[np.float64]:
    values = np.asarray(differences, dtype=float)
    if not values.size or not np.all(np.abs(values) <= 1 + TIE):
        raise ValueError(f"a gate judges at least one difference, each in [-1, 1], not {list(differences)}")
    return np.clip(values, -1, 1)  # means of progressions may miss the end by a rounding


def _points(gain: float) -> str:
    return f"{100 * gain:+.1f} points"
