"""Confidence bounds of a mean, valid at every moment at once, by betting against it.

Someone who thinks that the mean of numbers in [-1, 1] is at most m is offered a game in which each next number x
multiplies what one owns by 1 + b (x - m), where b is chosen before x is seen. If they are right, what the player owns
is on average at most 1 at any time, so the chance that it ever reaches 1 / alpha is at most alpha (Ville 1939). Every m
for which it has been reached is given up; the largest of them is the lower bound. Nothing else is assumed: no
spread, no shape, no number of looks. The upper bound is the lower bound of the negated numbers.

The game is `ville.BettingTest` (Waudby-Smith and Ramdas 2024, arXiv 2010.09686), which bets by the spread seen so far.
What is owned falls as m rises, so bounds are found by halving.

It takes the largest bets that it may until it has seen much spread. They are what is needed: the best b is about
mean / (variance + mean²), for a gain of 5 points at a spread of 15 it is 2, and numbers that might be -1 allow no
more than 1. With ville's own limit of half of that a gate needs almost twice the seeds
(`benchmarks/gate_bets.py`); with all of it a single -1 would take all that is owned.

How many numbers it takes has a floor that no valid method gets under. Numbers that are always g might as well come from
a source that gives -1 once in (1 + g) / g of them, whose mean is 0; so at least log(1 / alpha) / log(1 + g) are needed
to say that the mean is above 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from ville import BettingTest

LARGEST = 0.95
"""Of what is owned, the most that one number may take."""

TUNED = 0.002
"""The error that bets are chosen for. One for all, so that bounds of a smaller error are never closer."""

_HALVINGS = 40

Array = NDArray[np.float64]


def log_wealth(values: Array, mean: float, largest: float = LARGEST) -> Array:
    """What is owned after each number, by someone who bets that the true mean is above `mean`.

    Args:
        values: in [-1, 1], shape (n,).
        mean: inside (-1, 1).
        largest: as `LARGEST`.

    Returns: natural logarithms, shape (n,).
    """
    game = BettingTest(mean, bounds=(-1.0, 1.0), alternative="greater", alpha=TUNED, c=largest)
    return np.asarray(game.update(values).log_e_values_)


def reached(wealth: Array, alpha: float) -> bool:
    """Whether what was owned (as `log_wealth` returns it) has ever come to 1 / `alpha`."""
    return bool(wealth.max() >= -math.log(alpha))


def refuted(values: Array, mean: float, alpha: float) -> bool:
    """Whether "the true mean is at most `mean`" has been given up by now, at error `alpha`."""
    return reached(log_wealth(values, mean), alpha)


def lower(values: Array, alpha: float) -> float:
    """Lower bound of the true mean: with chance 1 - `alpha` it holds after every number, this one included.

    Args:
        values: at least one, in [-1, 1], in the order in which they came; each with the same mean given those before.
        alpha: above 0 and below 1.
    """
    low, high = -1.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if refuted(values, middle, alpha):
            low = middle
        else:
            high = middle
    return low


def upper(values: Array, alpha: float) -> float:
    """Upper bound of the true mean; as `lower`, with an error of its own."""
    return -lower(-values, alpha)


def needed(wealth: Array, more: int, alpha: float) -> float:
    """What `more` further numbers must at least average, were they all equal, to lift the lower bound to 0.

    That is with the largest bets throughout. Returns inf where even numbers of 1 would not do it.

    Args:
        wealth: `log_wealth` of the numbers so far, against a mean of 0.
        more: how many may come.
        alpha: of the lower bound.
    """
    missing = max(0.0, -math.log(alpha) - float(wealth[-1]))
    if missing > more * math.log1p(LARGEST):
        return math.inf
    return math.expm1(missing / more) / LARGEST if more else 0.0
