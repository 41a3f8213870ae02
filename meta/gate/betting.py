"""Confidence bounds of a mean, valid at every moment at once, by betting against it.

Someone who thinks that the mean of numbers in [-1, 1] is at most m is offered a fair game: a stake on each next number
pays 1 + c (x - m) / (1 + m), with c in [0, 1]. If they are right, what the player owns is on average at most 1 at
any time, so the chance that it ever reaches 1 / alpha is at most alpha (Ville 1939). Every m for which it has been
reached is given up; the largest of them is the lower bound. Nothing else is assumed: no spread, no shape, no number
of looks. The upper bound is the lower bound of the negated numbers.

The player spreads the first unit over a few bets c and never moves it between them: a universal portfolio (Cover 1991;
Orabona and Jun 2021, arXiv 2110.14099; constant bets on a grid: Waudby-Smith and Ramdas 2024, arXiv 2010.09686).
What is owned falls as m rises, for each bet and therefore for all, so bounds are found by halving.

Most of it lies on c = 1. The best bet is about mean / (variance + mean²); for gains worth having and spreads as
games show them (5 points at a spread of 15: 2) that is above 1, the most that numbers which might be -1 allow. The
rest is for wide spreads: tasks that are won or lost.

How many numbers it takes has a floor that no valid method gets under. Numbers that are always g might as well come from
a source that gives -1 once in (1 + g) / g of them, whose mean is 0; so at least log(1 / alpha) / log(1 + g) are needed
to say that the mean is above 0.

The package `ville` has such bounds, with bets that follow a running variance which begins at the widest possible. They
bet too little on the few dozen seeds that a gate can pay for: `benchmarks/gate_methods.py` compares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

BETS = np.array([1.0, 0.5, 0.25, 0.1])
"""Shares of what is owned that are put at stake, c above."""

SHARES = np.array([0.7, 0.15, 0.1, 0.05])
"""How the first unit is spread over `BETS`."""

_HALVINGS = 60

Array = NDArray[np.float64]


def log_wealth(values: Array, mean: ArrayLike) -> Array:
    """What is owned after each number, by someone who bets that the true mean is above `mean`.

    Args:
        values: in [-1, 1], shape (..., n).
        mean: above -1 and at most 1; broadcasts against ``values[..., 0]``.

    Returns: logarithms, shape (..., n); -inf where all is lost.
    """
    against = np.asarray(mean, dtype=float)[..., None, None]
    with np.errstate(divide="ignore"):
        steps = np.log1p(np.maximum(BETS * (values[..., None] - against) / (1 + against), -1))
        return mixed(np.cumsum(steps, axis=-2))


def mixed(logs: Array) -> Array:
    """Log of what is owned in all when a unit on each of `BETS` has become ``exp(logs[..., bet])``."""
    total: Array = np.logaddexp.reduce(logs + np.log(SHARES), axis=-1)
    return total


def refuted(values: Array, mean: ArrayLike, alpha: ArrayLike) -> NDArray[np.bool_]:
    """Whether "the true mean is at most `mean`" has been given up by now, at error `alpha`.

    Shapes as in `log_wealth`; `alpha` broadcasts as `mean` does. Returns shape ``values[..., 0]``.
    """
    reached: NDArray[np.bool_] = log_wealth(values, mean).max(axis=-1) >= -np.log(alpha)
    return reached


def lower(values: Sequence[float] | Array, alpha: float) -> float:
    """Lower bound of the true mean: with chance 1 - `alpha` it holds after every number, this one included.

    Args:
        values: at least one, in [-1, 1], in the order in which they came; each with the same mean given those before.
        alpha: above 0 and below 1.
    """
    taken = np.asarray(values, dtype=float)
    low, high = -1.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if refuted(taken, middle, alpha):
            low = middle
        else:
            high = middle
    return low


def upper(values: Sequence[float] | Array, alpha: float) -> float:
    """Upper bound of the true mean; as `lower`, with an error of its own."""
    return -lower(-np.asarray(values, dtype=float), alpha)


def needed(values: Array, more: int, alpha: ArrayLike) -> Array:
    """The mean that `more` further numbers need, if all were equal, to lift the lower bound to 0.

    Args:
        values: so far, shape (..., n).
        more: at least 0.
        alpha: of the lower bound; broadcasts against ``values[..., 0]``.

    Returns: in [0, 1], shape ``values[..., 0]``; inf where nothing can do it any more.
    """
    with np.errstate(divide="ignore"):
        owned = np.log1p(np.maximum(BETS * values[..., None], -1)).sum(axis=-2)
    goal = -np.log(alpha) + np.zeros(values.shape[:-1])
    low, high = np.zeros_like(goal), np.ones_like(goal)
    beyond = mixed(owned + more * np.log1p(BETS)) < goal
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = mixed(owned + more * np.log1p(BETS * middle[..., None])) >= goal
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(beyond, math.inf, high)
