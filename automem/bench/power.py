"""How many seeds show a difference between two agents, from the spread seen so far.

A difference shows when a two-sided test at 5 % finds it. How often a test does, its power, is worked out for what an
agent is like now: for graded outcomes from the standard deviation of what one seed adds to the difference (Student's
t); for outcomes of 0 and 1 from how often two agents end differently on a seed (McNemar's exact test) or, without
shared seeds, from how often they win (Fisher's exact test).

The spread is itself measured on few seeds, mostly too few. So each answer comes twice: for the spread as seen, and for
the largest that the same seeds leave open, its upper 80 % limit. What lies between the two is not known yet.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, chdtri, nctdtr, ndtr, ndtri, stdtrit
from scipy.stats import binom, hypergeom

from automem.statistics import CONFIDENCE, TIE, mean
from games import game_of

LIMIT = 0.8
"""How surely the spread is at most `Spread.upper`."""

MOST = 100_000
"""Seeds a task beyond which no number is given."""

_EXACT = 1000
"""Episodes an agent up to which Fisher's test is counted out; above, a formula is as good."""

_UNLIKELY = 1e-12

_HALVINGS = 13  # to a hundredth of a point

_TAIL = (1 - CONFIDENCE) / 2

Progressions = Mapping[str, Mapping[int, float]]
"""task -> seed -> progression in [0, 1]"""


@dataclass(frozen=True, slots=True)
class Spread:
    """How much chance there is in the difference between two agents.

    Attributes:
        kind: "graded", or "won or lost" where every episode ended at 0 or 1. A graded game in which no episode brought
            any progress looks the same; what it needs is then for the worst that it may turn out to be.
        paired: whether both agents played the same seeds, so that how hard a seed is drops out.
        tasks: that the difference is a mean over; all are to be played on as many seeds.
        from_seeds: of the task that was played on fewest; pairs, or episodes of the agent that has fewer.
        value: graded: standard deviation of a difference that rests on one seed of each task (unpaired: one of each
            agent), in progression. Won or lost: share of pairs in which only one agent won; unpaired, the share of
            episodes won by either. None where it cannot be told: of graded outcomes, fewer than two seeds or no spread.
        upper: the upper 80 % limit of `value`; unpaired won or lost: of those limits, the one nearest to a half.
        freedom: graded: degrees of freedom that one more seed of each task adds.
    """

    kind: Literal["graded", "won or lost"]
    paired: bool
    tasks: int
    from_seeds: int
    value: float | None
    upper: float | None
    freedom: float = 1.0


@dataclass(frozen=True, slots=True)
class Need:
    """Seeds of each task, for each agent, that a difference needs; None: not known, or more than `MOST`.

    Attributes:
        seeds: for the spread as seen.
        seeds_at_upper_spread: for its upper 80 % limit.
    """

    seeds: int | None
    seeds_at_upper_spread: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: a task or a game.

    Attributes:
        name: of the task, or of a game with several.
        spread: as seen.
        need: for the size asked for.
        planned: seeds of each task that are planned.
        shows: the smallest difference that these show, in progression; None where none does, or it is not known.
        shows_at_upper_spread: the same, if the spread is as large as its limit.
    """

    name: str
    spread: Spread
    need: Need
    planned: int
    shows: float | None
    shows_at_upper_spread: float | None


def rows(
    a: Progressions, b: Progressions | None, size: float, planned: Mapping[str, int], power: float = 0.8
) -> list[Row]:
    """For each task that was played, and each game with several, how many seeds a difference of `size` needs.

    Args:
        a: what an agent reached.
        b: what the other did. None: another agent is imagined, with the same spread on seeds of its own.
        size: of the difference, in progression: 0.05 is five points.
        planned: seeds of each task in the suite; a game's is that of the task that has fewest.
        power: how surely the difference is to be found.

    Returns: game by game, in the order of `a`, first its tasks. A task that only one agent played is left out.
    """
    games: dict[str, list[str]] = {}
    for task in a:
        if a[task] and (b is None or b.get(task)):
            games.setdefault(game_of(task), []).append(task)
    found = []
    for game, tasks in games.items():
        parts = [[task] for task in tasks] + ([tasks] if len(tasks) > 1 else [])
        for part in parts:
            name = part[0] if len(part) == 1 else f"{game}, {len(part)} tasks"
            spread = seen([a[t] for t in part], None if b is None else [b[t] for t in part])
            seeds = min(planned.get(task, 0) for task in part)
            shown = [smallest(spread, seeds, power, at_limit) for at_limit in (False, True)]
            found.append(Row(name, spread, needed(spread, size, power), seeds, *shown))
    return found


def seen(a: Sequence[Mapping[int, float]], b: Sequence[Mapping[int, float]] | None = None) -> Spread:
    """The spread between two agents over the same tasks.

    Pairs are used where each task has at least two seeds that both played, else every episode.

    Args:
        a: for each task, seed -> progression.
        b: the same of the other agent; None: one that is like `a`, on other seeds.
    """
    if b is None:
        return unpaired([list(task.values()) for task in a])
    shared = [sorted(x.keys() & y.keys()) for x, y in zip(a, b, strict=True)]
    if min(len(seeds) for seeds in shared) < 2:
        return unpaired([list(task.values()) for task in a], [list(task.values()) for task in b])
    return paired([[(x[s], y[s]) for s in seeds] for x, y, seeds in zip(a, b, shared, strict=True)])


def paired(tasks: Sequence[Sequence[tuple[float, float]]]) -> Spread:
    """The spread of paired differences.

    Args:
        tasks: for each, at least one pair of progressions that two agents reached on a seed.
    """
    count = [len(pairs) for pairs in tasks]
    if _won_or_lost(value for pairs in tasks for pair in pairs for value in pair):
        # Pooled over tasks: wins and losses may be added up, if nothing differs between agents in any of them.
        differ, every = sum(abs(x - y) > TIE for pairs in tasks for x, y in pairs), sum(count)
        upper = float(betaincinv(differ + 1, every - differ, LIMIT)) if differ < every else 1.0
        return Spread("won or lost", True, len(tasks), min(count), differ / every, upper)
    variances = [(_variance([y - x for x, y in pairs]), len(pairs) - 1) for pairs in tasks]
    return _graded(variances, len(tasks), True, min(count))


def unpaired(*agents: Sequence[Sequence[float]]) -> Spread:
    """The spread between two agents that played seeds of their own.

    Args:
        agents: one or two; for each task, at least one progression. One alone stands for two that are like it, but
            tells no more than it has played.
    """
    count = [min(len(task) for task in played) for played in zip(*agents, strict=True)]
    every = [value for agent in agents for task in agent for value in task]
    if _won_or_lost(every):
        # The variance of a mean over unequal tasks is at most that of as many equal ones with the mean chance.
        wins, episodes = sum(every), len(every)
        low = float(betaincinv(wins, episodes - wins + 1, 1 - LIMIT)) if wins else 0.0
        high = float(betaincinv(wins + 1, episodes - wins, LIMIT)) if wins < episodes else 1.0
        return Spread("won or lost", False, len(count), min(count), wins / episodes, min(max(0.5, low), high))
    variances = [(_variance(task), len(task) - 1) for agent in agents for task in agent]
    return _graded(variances, len(count), False, min(count), times=2 // len(agents))


def _graded(variances: Sequence[tuple[float, int]], tasks: int, paired: bool, seeds: int, times: int = 1) -> Spread:
    """From variances and their degrees of freedom; their sum has those of Welch and Satterthwaite (1946).

    The limit is that of normal outcomes, by chi-square. `times` is how many agents each variance stands for.
    """
    total = math.fsum(variance for variance, _ in variances)
    if seeds < 2 or total <= TIE**2:
        return Spread("graded", paired, tasks, seeds, None, None)
    squares = [(variance / total) ** 2 for variance, _ in variances]
    freedom = 1 / math.fsum(part / (free or 1) for part, (_, free) in zip(squares, variances, strict=True))
    upper = total * freedom / float(chdtri(freedom, LIMIT))
    value, limit = (math.sqrt(times * variance) / tasks for variance in (total, upper))
    return Spread("graded", paired, tasks, seeds, value, limit, times / math.fsum(squares))


def _variance(values: Sequence[float]) -> float:
    middle = mean(values)
    return math.fsum((v - middle) ** 2 for v in values) / (len(values) - 1) if len(values) > 1 else 0.0


def _won_or_lost(values: Iterable[float]) -> bool:
    return all(min(abs(v), abs(v - 1)) <= TIE for v in values)


def needed(spread: Spread, size: float, power: float = 0.8) -> Need:
    """How many seeds of each task show a difference of `size`, in progression, with chance `power`.

    The least number that does. For wins and losses power does not rise evenly, and a few seeds more can have a
    little less; that is within a point or two.

    Raises ValueError for a size outside (0, 1] or a power outside (0.05, 1).
    """
    if not 0 < size <= 1:
        raise ValueError(f"a difference is above 0 and at most 1 (0.05 is five points), not {size}")
    if not 1 - CONFIDENCE < power < 1:
        raise ValueError(f"power is above 0.05 and below 1, not {power}")
    return Need(*(_least(spread, value, size, power) for value in (spread.value, spread.upper)))


def smallest(spread: Spread, seeds: int, power: float = 0.8, at_limit: bool = False) -> float | None:
    """The smallest difference, in progression, that `seeds` of each task show with chance `power`.

    Args:
        spread: as seen.
        seeds: of each task, for each agent.
        power: as in `needed`.
        at_limit: take the spread to be `Spread.upper`.

    Returns: None where not even a difference of 1 shows, or the spread is not known.
    """
    value = spread.upper if at_limit else spread.value
    if value is None or seeds < 1 or _power(spread, value, 1.0, seeds) < power:
        return None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _power(spread, value, middle, seeds) < power:
            low = middle
        else:
            high = middle
    return high


def _least(spread: Spread, value: float | None, size: float, power: float) -> int | None:
    if value is None:
        return None

    def enough(seeds: int) -> bool:
        return _power(spread, value, size, seeds) >= power

    high = 1
    while not enough(high):
        if high == MOST:
            return None
        high = min(2 * high, MOST)
    low = high // 2  # not enough, or 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _power(spread: Spread, value: float, size: float, seeds: int) -> float:
    """How often a difference of `size` is found by `seeds` of each task."""
    if spread.kind == "graded":
        return student(value, size, seeds, (seeds - 1) * spread.freedom)
    test = mcnemar if spread.paired else fisher
    return test(value, size, seeds * spread.tasks)


def student(deviation: float, size: float, seeds: int, freedom: float) -> float:
    """Power of Student's t test for a mean of `seeds` differences, or of stratified ones.

    Args:
        deviation: of one of them.
        size: their true mean.
        seeds: how many.
        freedom: degrees of freedom of the variance.
    """
    if freedom < 1:
        return 0.0
    far, shift = float(stdtrit(freedom, 1 - _TAIL)), size / deviation * math.sqrt(seeds)
    below, wrong = np.nan_to_num(nctdtr(freedom, shift, [far, -far]))  # a chance too small to be worked out is NaN
    return float(1 - below + wrong)


def mcnemar(differ: float, size: float, pairs: int) -> float:
    """Power of McNemar's exact test, which asks of the pairs won by one agent only how many each won.

    Args:
        differ: share of such pairs. They are at least as many as the difference that they make.
        size: share of pairs won by one only, minus that won by the other only.
        pairs: how many, all told.
    """
    differ = max(differ, size)
    every, chance = _likely(pairs, differ)
    won = (differ + size) / (2 * differ)
    # More wins than that among so many pairs are too many for equal agents.
    limit = binom.isf(_TAIL, every, 0.5)
    found = binom.sf(limit, every, won) + binom.sf(limit, every, 1 - won)
    return float(chance @ found)


def fisher(share: float, size: float, episodes: int) -> float:
    """Power of Fisher's exact test between agents that won other seeds.

    Each tail has half of the error. Above `_EXACT` episodes it is the normal approximation with Yates's correction
    (Casagrande, Pike and Smith 1978).

    Args:
        share: of episodes won, both agents together.
        size: share won by one minus that won by the other; they are put as evenly around `share` as [0, 1] allows.
        episodes: of each agent.
    """
    low = min(max(share - size / 2, 0.0), 1.0 - size)
    high = low + size
    if episodes > _EXACT:
        middle = (low + high) / 2
        effective = episodes * size - 1  # with the correction
        null, true = math.sqrt(2 * middle * (1 - middle)), math.sqrt(low * (1 - low) + high * (1 - high))
        if not true:
            return 1.0
        far = effective / math.sqrt(episodes) - null * float(ndtri(1 - _TAIL))
        return float(ndtr(far / true))
    of_high, of_low = _likely(episodes, high), _likely(episodes, low)
    fewest, most = min(of_high[0][0], of_low[0][0]), max(of_high[0][-1], of_low[0][-1])
    # Of so many wins in all, more than that are too many for one of two equal agents.
    limit = hypergeom.isf(_TAIL, 2 * episodes, np.arange(2 * fewest, 2 * most + 1), episodes)
    found = 0.0
    for (wins, chance), (others, chance_others) in ((of_high, of_low), (of_low, of_high)):
        better = wins[:, None] > limit[wins[:, None] + others[None, :] - 2 * fewest]
        found += float(chance @ better @ chance_others)
    return found


def _likely(episodes: int, share: float) -> tuple[NDArray[np.int_], NDArray[np.float64]]:
    """Numbers of wins that are not out of the question, ascending, and the chance of each."""
    wins = np.arange(episodes + 1)
    chance = binom.pmf(wins, episodes, share)
    return wins[chance > _UNLIKELY], chance[chance > _UNLIKELY]
