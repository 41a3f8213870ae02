"""Whether a difference could be chance, by random signs."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

import pytest
from scipy import stats

from automem.sign_flips import p_value


def counted(differences: Sequence[float]) -> float:
    """The definition, counted out."""
    found = abs(math.fsum(differences))
    choices = list(itertools.product((-1, 1), repeat=len(differences)))
    sums = [math.fsum(sign * d for sign, d in zip(signs, differences, strict=True)) for signs in choices]
    return sum(abs(one) >= found - 1e-12 for one in sums) / len(choices)


@pytest.mark.parametrize(
    "differences",
    [[0.2] * 5, [0.2, 0.2, 0.2, 0.2, -0.1], [-0.3, 0.1, 0.2, -0.05, 0.4, 0.4, 0.1], [0.5, -0.5], [0.01, 0.5, 0.9]],
)
def test_few_differences_are_counted_out(differences: list[float]) -> None:
    assert p_value(differences) == pytest.approx(counted(differences))
    assert p_value([-d for d in differences]) == p_value(differences)


def test_five_pairs_that_all_went_one_way_are_two_choices_in_thirty_two() -> None:
    assert p_value([0.2] * 5) == 0.0625
    # Where both came as far, signs mean nothing.
    assert p_value([0.2, 0.0, 0.2, 0.2, 0.0, 0.2, 0.2]) == 0.0625


@pytest.mark.parametrize("differences", [[], [0.4], [0.0, 0.0, 0.0], [0.4, 0.0]])
def test_what_one_pair_decides_is_chance(differences: list[float]) -> None:
    assert p_value(differences) == 1.0


def test_of_many_differences_choices_are_drawn_and_the_same_ones_each_time() -> None:
    dice = random.Random(5)
    differences = [dice.gauss(0.02, 0.1) for _ in range(200)]
    found = p_value(differences)
    assert found == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, abs=0.005)
    assert p_value(differences[::-1]) == found
    assert p_value([0.1] * 200) == pytest.approx(2e-5, rel=0.01)  # of 100,000, the one that is there, on both sides


def test_it_holds_its_level_whatever_the_spread() -> None:
    dice = random.Random(6)
    found = [p_value([dice.choice((-1, 1)) * dice.random() ** 4 for _ in range(8)]) for _ in range(400)]
    # 5 % are expected, and 400 of them scatter by 1.1 points.
    assert 0.01 < sum(p <= 0.05 for p in found) / len(found) < 0.09
