"""Intervals of mean progressions: against exact figures, and whether they hold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from automem.bench.intervals import Interval, of_game, of_suite, of_task
from automem.statistics import estimate

SHARES = st.floats(0, 1, allow_nan=False)


def clopper_pearson(wins: float, episodes: float) -> Interval:
    low = float(stats.beta.ppf(0.025, wins, episodes - wins + 1)) if wins else 0.0
    high = float(stats.beta.ppf(0.975, wins + 1, episodes - wins)) if wins < episodes else 1.0
    return low, high


def found(interval: Interval | None) -> Interval:
    assert interval is not None
    return interval


@pytest.mark.parametrize(("wins", "episodes"), [(0, 1), (1, 1), (0, 5), (2, 5), (5, 5), (1, 40), (17, 40), (90, 800)])
def test_of_wins_and_losses_it_is_clopper_and_pearsons(wins: int, episodes: int) -> None:
    outcomes = [1.0] * wins + [0.0] * (episodes - wins)
    assert of_task(outcomes) == pytest.approx(clopper_pearson(wins, episodes), abs=1e-9)


def test_graded_outcomes_by_drawing_the_weights() -> None:
    values = [0.0, 0.0154, 0.0154, 0.3, 0.9]
    weights = np.random.default_rng(1).dirichlet(np.ones(6), 400_000)
    low, high = np.quantile(weights @ np.array([*values, 0.0]), 0.025), np.quantile(weights @ [*values, 1.0], 0.975)
    assert of_task(values) == pytest.approx((low, high), abs=0.003)


def test_episodes_that_all_ended_alike_are_no_certainty() -> None:
    assert found(of_task([0.0] * 5)) == pytest.approx((0, 1 - 0.025 ** (1 / 5)))
    low, high = found(of_task([0.25] * 10))
    assert low < 0.19 and high > 0.4


def test_nothing_played_has_no_interval_and_one_episode_a_wide_one() -> None:
    assert of_task([]) is None and of_game([]) is None and of_game([[], []]) is None and of_suite([[], [[]]]) is None
    assert of_task([0.4]) == pytest.approx((0.025 * 0.4, 1 - 0.025 * 0.6))


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan, math.inf])
def test_only_progressions(wrong: float) -> None:
    for ask in (lambda: of_task([0.5, wrong]), lambda: of_game([[0.5], [0.1, wrong]]), lambda: of_suite([[[wrong]]])):
        with pytest.raises(ValueError, match=r"\[0, 1\]"):
            ask()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(SHARES, min_size=1, max_size=8), min_size=1, max_size=4))
def test_the_mean_is_between_the_ends_which_are_progressions(tasks: list[list[float]]) -> None:
    means = [float(np.mean(task)) for task in tasks]
    games = [(of_task(tasks[0]), means[0]), (of_game(tasks), float(np.mean(means)))]
    games.append((of_suite([[task] for task in tasks]), float(np.mean(means))))
    for interval, mean in games:
        low, high = found(interval)
        assert 0 <= low <= mean + 1e-9 and mean - 1e-9 <= high <= 1 and high - low > 0.01


@settings(max_examples=50, deadline=None)
@given(st.lists(SHARES, min_size=1, max_size=9), st.randoms())
def test_the_order_of_episodes_does_not_matter_and_better_ones_raise_both_ends(
    values: list[float], random: Random
) -> None:
    interval = found(of_task(values))
    shuffled = list(values)
    random.shuffle(shuffled)
    assert of_task(shuffled) == interval
    mirrored = found(of_task([1 - v for v in values]))
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx(interval, abs=1e-9)
    raised = found(of_task([1.0, *sorted(values)[1:]]))
    assert raised[0] >= interval[0] - 1e-9 and raised[1] >= interval[1] - 1e-9


def student(values: Sequence[float]) -> Interval:
    return estimate(values).interval or (0.0, 1.0)


def coverage(method: Callable[[Sequence[float]], Interval], values: Sequence[float], chances: Sequence[float]) -> float:
    """How often an interval from five episodes holds, by going through all that five can be."""
    mean = float(np.dot(values, chances))
    held = 0.0
    for drawn in itertools.combinations_with_replacement(range(len(values)), 5):
        counts = [drawn.count(i) for i in range(len(values))]
        low, high = method([values[i] for i in drawn])
        held += float(stats.multinomial.pmf(counts, 5, chances)) * (low - 1e-9 <= mean <= high + 1e-9)
    return held


NETHACK = ([0.0, 0.0154, 0.0175, 0.0977], [0.5, 0.3, 0.15, 0.05])


def test_it_holds_for_outcomes_of_any_kind_and_students_does_not() -> None:
    rng = np.random.default_rng(2)
    kinds = [NETHACK, *((np.sort(rng.beta(0.3, 0.6, 3)), rng.dirichlet(np.full(3, 0.5))) for _ in range(60))]
    assert min(coverage(lambda v: found(of_task(v)), *kind) for kind in kinds) >= 0.95
    assert coverage(student, *NETHACK) < 0.9


def test_a_game_weighs_its_tasks_alike() -> None:
    # As many episodes each: pooled.
    assert of_game([[0, 1, 0], [1, 1, 1]]) == pytest.approx(clopper_pearson(4, 6))
    # Other numbers: 1/4 and 1 are a mean of 5/8, of two tasks with at least two episodes.
    assert of_game([[0, 1, 0, 0], [1, 1], []]) == pytest.approx(clopper_pearson(2.5, 4))


@pytest.mark.parametrize("episodes", [[5] * 8, [5] * 7 + [4], [5, 5, 5, 5, 5, 5, 20, 20]])
@pytest.mark.parametrize("chances", [[0.1] * 8, [0, 0, 0, 0.05, 0.1, 0.3, 0.6, 0.9]])
def test_a_games_interval_holds(episodes: list[int], chances: list[float]) -> None:
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(300):
        tasks = [(rng.random(n) < p).astype(float).tolist() for n, p in zip(episodes, chances, strict=True)]
        low, high = found(of_game(tasks))
        held += low <= np.mean(chances) <= high
    assert held / 300 >= 0.94


def test_a_suite_adds_the_squares_of_its_games_distances() -> None:
    crafter, nethack = [0.2, 0.3, 0.3], [0.0, 0.0154]
    (a, b), (c, d) = found(of_task(crafter)), found(of_task(nethack))
    middle = (np.mean(crafter) + np.mean(nethack)) / 2
    below, above = math.hypot(np.mean(crafter) - a, np.mean(nethack) - c), math.hypot(b - np.mean(crafter), d - 0.0077)
    assert of_suite([[crafter], [nethack], []]) == pytest.approx((middle - below / 2, middle + above / 2))


def test_one_game_alone_is_that_game() -> None:
    game = [[0.0, 1.0], [1.0, 1.0]]
    assert of_suite([game]) == pytest.approx(of_game(game))


def test_the_overall_interval_holds_for_few_episodes_of_all_games() -> None:
    rng = np.random.default_rng(4)
    values, chances = NETHACK
    mean = (float(np.dot(values, chances)) + 0.15 + 0.9 * 16.2 / 22 + 0.1 * 0.5 / 22) / 3
    held = 0
    for _ in range(300):
        minihack = (rng.random((8, 5)) < 0.15).astype(float).tolist()
        crafter = np.where(rng.random(10) < 0.1, rng.binomial(1, 0.5, 10), rng.binomial(18, 0.9, 10)) / 22
        low, high = found(of_suite([minihack, [crafter.tolist()], [rng.choice(values, 5, p=chances).tolist()]]))
        held += low <= mean <= high
    assert held / 300 >= 0.94
