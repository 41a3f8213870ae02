"""Bounds of a mean: where they lie, that they hold at every look, and how many numbers they take."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meta.gate import betting

alphas = st.sampled_from([0.2, 0.05, 0.01, 0.0014, 1e-4])
numbers = st.one_of(
    st.floats(-1, 1), st.integers(-22, 22).map(lambda steps: steps / 22), st.sampled_from([-1.0, 0.0, 0.125, 1.0])
)
courses = st.lists(numbers, min_size=1, max_size=40).map(np.array)


def running(values: np.ndarray) -> np.ndarray:
    return np.cumsum(values) / np.arange(1, len(values) + 1)


@given(courses, alphas)
@settings(deadline=None, max_examples=30)
def test_a_bound_never_goes_beyond_all_means_seen(values: np.ndarray, alpha: float) -> None:
    assert -1 <= betting.lower(values, alpha) <= running(values).max() + 1e-9
    assert 1 >= betting.upper(values, alpha) >= running(values).min() - 1e-9


@given(courses, alphas, alphas)
@settings(deadline=None, max_examples=30)
def test_a_smaller_error_never_brings_bounds_closer(values: np.ndarray, one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert betting.lower(values, small) <= betting.lower(values, large)
    assert betting.upper(values, small) >= betting.upper(values, large)


@given(courses, courses, alphas)
@settings(deadline=None, max_examples=30)
def test_what_was_excluded_stays_excluded(values: np.ndarray, more: np.ndarray, alpha: float) -> None:
    longer = np.concatenate([values, more])
    assert betting.lower(longer, alpha) >= betting.lower(values, alpha)
    assert betting.upper(longer, alpha) <= betting.upper(values, alpha)


@given(courses, st.floats(-0.9, 0.9), alphas)
@settings(deadline=None, max_examples=30)
def test_a_bound_is_the_edge_of_what_is_refuted(values: np.ndarray, mean: float, alpha: float) -> None:
    bound = betting.lower(values, alpha)
    assert betting.refuted(values, mean, alpha) == (mean <= bound) or math.isclose(mean, bound, abs_tol=1e-9)


@given(courses, st.integers(0, 60), alphas)
@settings(deadline=None, max_examples=30)
def test_less_than_what_is_needed_is_not_enough(values: np.ndarray, more: int, alpha: float) -> None:
    needed = betting.needed(betting.log_wealth(values, 0.0), more, alpha)
    if betting.refuted(values, 0.0, alpha):
        return
    rest = np.full(more, min(needed, 1.0) - 1e-6)
    assert not betting.refuted(np.concatenate([values, rest]), 0.0, alpha)


@pytest.mark.parametrize("gain", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("alpha", [0.05, 0.0014])
def test_an_even_gain_is_found_soon_after_the_floor(gain: float, alpha: float) -> None:
    floor = math.log(1 / alpha) / math.log1p(gain)
    even = np.full(math.ceil(1.1 * floor) + 1, gain)
    assert betting.lower(even, alpha) > 0
    assert betting.lower(even[: math.ceil(floor) - 1], alpha) <= 0


@pytest.mark.parametrize(("high", "low"), [(0.5, -1.0), (0.1, -1.0), (1.0, -0.05), (0.04, -0.04)])
@pytest.mark.parametrize("alpha", [0.2, 0.02])
def test_the_chance_to_refute_a_true_mean_is_at_most_alpha_counted_out(high: float, low: float, alpha: float) -> None:
    """Every course of ten numbers from two, whose mean is 0, with its chance."""
    rises = -low / (high - low)
    chance = 0.0
    for course in product((True, False), repeat=10):
        if betting.refuted(np.where(course, high, low), 0.0, alpha):
            chance += math.prod(rises if up else 1 - rises for up in course)
    assert chance <= alpha


def steps(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.round(22 * np.clip(rng.normal(0, 0.15, (count, 120)), -1, 1)) / 22


def ties(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.choice([-0.5, 0.0, 0.5], (count, 120), p=[0.03, 0.94, 0.03])


def rarely_lost(rng: np.random.Generator, count: int) -> np.ndarray:
    """Nearly always a small gain: what bounds that trust the spread seen so far are fooled by."""
    return np.where(rng.random((count, 120)) < 0.08 / 1.08, -1.0, 0.08)


def rarely_won(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.where(rng.random((count, 120)) < 0.02 / 1.02, 1.0, -0.02)


def tasks(rng: np.random.Generator, count: int) -> np.ndarray:
    won = rng.random((2, count, 120, 8)) < np.linspace(0.1, 0.9, 8)
    return won[0].mean(axis=-1) - won[1].mean(axis=-1)


@pytest.mark.parametrize("draw", [steps, ties, rarely_lost, rarely_won, tasks])
@pytest.mark.parametrize("side", [1, -1])
def test_true_means_are_refuted_at_most_as_often_as_alpha_says(
    draw: Callable[[np.random.Generator, int], np.ndarray], side: int
) -> None:
    count = 2000
    best = np.array([betting.log_wealth(row, 0.0).max() for row in side * draw(np.random.default_rng(7), count)])
    for alpha in (0.05, 0.01, 0.001):
        most = count * alpha + 3 * math.sqrt(count * alpha)
        assert (best >= -math.log(alpha)).sum() <= most
