"""95 % intervals of mean progressions that hold for few episodes, whatever an agent's results are like.

Student's t takes means for normal. Of five episodes that are won or lost they are not, nor are they where most episodes
end alike and a rare one goes far, or where a good player sometimes dies at once. There an interval by t misses the
truth in every third case, or in three of four, and it has no width at all when all episodes came out the same. What is
used instead assumes only that a progression is in [0, 1].

Such an interval has a price. Five episodes without any progress leave open that one in two would win: the interval is
[0, 52.2 %], and for NetHack's small figures none that is valid for all distributions ends much lower. Where outcomes
do lie close together it is far wider than Student's: a random player's ten episodes of Crafter give it 32 points, and
Student's 6. `benchmarks/interval_coverage.py` measures both.

To compare two agents that played the same seeds, take the interval of their paired differences (`automem.compare`):
it is about what differs, and two intervals of this module that overlap say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.optimize import brentq
from scipy.special import betaincinv

from automem.statistics import CONFIDENCE, TIE, mean

Interval = tuple[float, float]

_TAIL = (1 - CONFIDENCE) / 2


def of_task(progressions: Sequence[float]) -> Interval | None:
    """The interval of a task's mean progression, from episodes with seeds of their own.

    It is Gaffke's (2005; Learned-Miller and Thomas 2019, arXiv 1905.06208), each end with an error of 2.5 %. The upper
    one asks what could have been missed: it adds an outcome of 1 to those seen, weighs all of them at random (weights
    uniform on the simplex) and takes the 97.5 % quantile of the weighted mean. The lower one is its mirror image.

    For outcomes of 0 and 1 that is the interval of Clopper and Pearson (1934), which is exact. That it holds for all
    others is a conjecture with much evidence and no exception known to us. In the simulations of
    `benchmarks/interval_coverage.py` it held in at least 98 % of the cases for every kind of progression. Student's t
    fell to 23 % for wins and losses, 50 % for NetHack and 67 % for Crafter; with Clopper and Pearson's interval put in
    where all outcomes are equal, still to 51 and 67 %. Betting intervals (Waudby-Smith and Ramdas 2024), which are
    proven, held, too, and were wider each time; they also depend on the order of the episodes.

    Args:
        progressions: each in [0, 1], in any order.

    Returns: ends in [0, 1]; the mean is between them. None for no episode. One episode has an interval, a wide one.

    Raises ValueError for a number outside [0, 1].
    """
    if not len(progressions):
        return None
    values = _checked(progressions)
    return 1.0 - _upper(np.round(1.0 - values, 12)), _upper(values)


def of_game(tasks: Sequence[Sequence[float]]) -> Interval | None:
    """The interval of a game's progression, the mean of its tasks' means.

    With as many episodes of each task, all are taken together, as if the game were one task. For episodes that are won
    or lost that is Clopper and Pearson's interval of the pooled wins; it holds, and errs to the wide side, when tasks
    are not equally hard (Hoeffding 1956; Bancal and Sekatski 2022, arXiv 2212.12558). For graded outcomes it is
    measured, not proven.

    With unequal numbers, tasks still weigh alike, and pooling would not. Then it is Clopper and Pearson's interval for
    the same share of wins, whole or not, among as many episodes as there would be if each task had those of the task
    that has the fewest. That is measured, not proven, too; it ignores what the other tasks have more, and takes graded
    outcomes for wins and losses, which spread most.

    Args:
        tasks: progressions of each task's episodes, in [0, 1]. Tasks without any are left out, so this is the
            interval of the mean over those that were played.

    Returns: ends in [0, 1]; None where nothing was played.

    Raises ValueError for a number outside [0, 1].
    """
    played = [_checked(task) for task in tasks if len(task)]
    if not played:
        return None
    fewest = min(len(task) for task in played)
    if all(len(task) == fewest for task in played):
        return of_task(np.concatenate(played).tolist())
    return _of_wins(mean([mean(task.tolist()) for task in played]), len(played) * fewest)


def of_suite(games: Sequence[Sequence[Sequence[float]]]) -> Interval | None:
    """The interval of a suite's progression, the mean of its games' (each the mean of its tasks' means).

    Squares of the distances from each game's mean to the end of its interval are added, as if they were standard
    errors, each end by itself (Newcombe 1998; Zou and Donner 2008, "MOVER"). That takes games for independent. It is
    an approximation. For the episodes of suite `balrog` it held in 99 % of the simulations. The worst cases found by
    search are games whose every episode is won or lost, with one small chance for all: 96.1 % for 40, 10 and 5
    episodes, 94.7 % for 5, 5 and 5, and 92.2 % for two games of 5.

    Args:
        games: for each game, what `of_game` takes. Games in which nothing was played are left out.

    Returns: ends in [0, 1]; None where nothing was played.

    Raises ValueError for a number outside [0, 1].
    """
    played = [[task for task in game if len(task)] for game in games]
    return _joined([(mean([mean(task) for task in game]), of_game(game)) for game in played if game])


def _joined(parts: Sequence[tuple[float, Interval | None]]) -> Interval | None:
    """The interval of the mean of independent means, from theirs, by square-and-add."""
    known = [(middle, interval) for middle, interval in parts if interval is not None]
    if not known:
        return None
    middle = mean([part for part, _ in known])
    below = math.hypot(*(part - low for part, (low, _) in known)) / len(known)
    above = math.hypot(*(high - part for part, (_, high) in known)) / len(known)
    return max(0.0, middle - below), min(1.0, middle + above)


def _of_wins(share: float, episodes: int) -> Interval:
    """Clopper and Pearson's interval for a share of wins among episodes; the wins need not be a whole number."""
    wins = share * episodes
    low = float(betaincinv(wins, episodes - wins + 1, _TAIL)) if wins > 0 else 0.0
    high = float(betaincinv(wins + 1, episodes - wins, 1 - _TAIL)) if wins < episodes else 1.0
    return low, high


def _checked(progressions: Sequence[float]) -> NDArray[np.float64]:
    values = np.asarray(progressions, dtype=float)
    if not np.all((values >= -TIE) & (values <= 1 + TIE)):  # a NaN fails, too
        raise ValueError(f"progressions are in [0, 1]: {list(progressions)}")
    return np.round(np.clip(values, 0.0, 1.0), 12)  # knots that all but coincide are one to the spline


def _upper(values: NDArray[np.float64]) -> float:
    """The 1 - `_TAIL` quantile of the mean of `values` and 1, with weights uniform on the simplex.

    The density of such a mean is the B-spline whose knots are the values (Curry and Schoenberg 1966), so its
    distribution function is a spline of one degree more.
    """
    knots = np.sort(np.append(values, 1.0))
    low, degree = float(knots[0]), len(values)
    if low == 1.0:
        return 1.0
    # The function rises from 0 to 1 between the outer knots; repeated often enough, these are where it has its ends.
    before, after = (degree + 1 - int(np.sum(knots == end)) for end in (low, 1.0))
    padded = np.concatenate([np.full(before, low), knots, np.full(after, 1.0)])
    distribution = BSpline(padded, np.repeat([0.0, 1.0], [before, after]), degree)
    return float(brentq(lambda x: float(distribution(x)) - (1 - _TAIL), low, 1.0))
