"""How many seeds a difference needs: against known figures, and by playing it out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from automem.bench.power import (
    Spread,
    fisher,
    mcnemar,
    needed,
    paired,
    rows,
    seen,
    smallest,
    student,
    unpaired,
)

SIMULATIONS = 4000
NEAR = 0.025
"""More than three standard errors of a share of 0.8 in so many simulations."""

Flags = NDArray[np.bool_]


def graded(deviation: float, **more: float) -> Spread:
    return Spread("graded", True, 1, 10, deviation, deviation, **more)


def test_textbook_figures_of_the_t_test() -> None:
    # An effect of half a standard deviation, 5 %, 80 %: 34 pairs, or 64 in each of two groups (Cohen 1988).
    assert needed(graded(0.1), 0.05).seeds == 34
    two_groups = graded(0.1 * 2**0.5, freedom=2.0)
    assert needed(two_groups, 0.05).seeds == 64
    assert needed(two_groups, 0.05, power=0.95).seeds == 105


@pytest.mark.parametrize("power", [0.8, 0.9])
def test_paired_graded_differences_are_found_as_often_as_asked(power: float) -> None:
    seeds = needed(graded(0.15), 0.08, power).seeds
    assert seeds is not None
    drawn = np.random.default_rng(1).normal(0.08, 0.15, (SIMULATIONS, seeds))
    assert (stats.ttest_1samp(drawn, 0, axis=1).pvalue < 0.05).mean() == pytest.approx(power, abs=NEAR)


def test_a_game_of_unequal_tasks_is_found_as_often_as_asked() -> None:
    rng, deviations = np.random.default_rng(2), np.array([0.05, 0.1, 0.3])
    seen_so_far = [list(enumerate(rng.normal(0, d, 5000))) for d in deviations]
    spread = paired([[(0.4, 0.4 + change) for _, change in task] for task in seen_so_far])
    seeds = needed(spread, 0.06).seeds
    assert spread.tasks == 3 and seeds is not None
    drawn = rng.normal(0.06, deviations[:, None], (SIMULATIONS, 3, seeds))
    variances = drawn.var(axis=2, ddof=1) / seeds
    freedom = variances.sum(axis=1) ** 2 / (variances**2 / (seeds - 1)).sum(axis=1)
    statistic = drawn.mean(axis=(1, 2)) / (variances.sum(axis=1) ** 0.5 / 3)
    assert (2 * stats.t.sf(abs(statistic), freedom) < 0.05).mean() == pytest.approx(0.8, abs=NEAR)


def exactly_mcnemar(differences: NDArray[np.int_]) -> Flags:
    more, less = (differences > 0).sum(axis=-1), (differences < 0).sum(axis=-1)
    return np.asarray(2 * stats.binom.cdf(np.minimum(more, less), more + less, 0.5) <= 0.05)


@pytest.mark.parametrize("differ", [0.1, 0.2, 0.5])
def test_wins_and_losses_on_shared_seeds_are_found_as_often_as_asked(differ: float) -> None:
    spread = Spread("won or lost", True, 1, 10, differ, differ)
    seeds = needed(spread, 0.1).seeds
    assert seeds is not None
    chances = [(differ - 0.1) / 2, 1 - differ, (differ + 0.1) / 2]
    drawn = np.random.default_rng(3).choice([-1, 0, 1], (SIMULATIONS, seeds), p=chances)
    assert exactly_mcnemar(drawn).mean() == pytest.approx(0.8, abs=NEAR)


def test_minihack_needs_an_eighth_of_the_seeds_for_each_of_eight_tasks() -> None:
    one, eight = (Spread("won or lost", True, tasks, 5, 0.25, 0.25) for tasks in (1, 8))
    assert needed(eight, 0.1).seeds == -(-(needed(one, 0.1).seeds or 0) // 8)
    # Also where tasks are not alike: in half of them nothing ever differs.
    seeds = needed(eight, 0.1).seeds
    assert seeds is not None
    rng = np.random.default_rng(4)
    drawn = rng.choice([-1, 0, 1], (SIMULATIONS, 4 * seeds), p=[0.15, 0.5, 0.35])
    assert exactly_mcnemar(drawn).mean() == pytest.approx(0.8, abs=NEAR)


@pytest.mark.parametrize(("share", "size"), [(0.1, 0.2), (0.3, 0.25), (0.95, 0.3), (0.5, 0.15)])
def test_wins_and_losses_on_other_seeds_are_found_as_often_as_asked(share: float, size: float) -> None:
    seeds = needed(Spread("won or lost", False, 1, 10, share, share), size).seeds
    assert seeds is not None
    rng, low = np.random.default_rng(5), min(max(share - size / 2, 0), 1 - size)
    a, b = rng.binomial(seeds, low, SIMULATIONS), rng.binomial(seeds, low + size, SIMULATIONS)
    tails = [stats.hypergeom.sf(wins - 1, 2 * seeds, a + b, seeds) for wins in (a, b)]
    found = np.minimum(*tails) <= 0.025
    assert found.mean() == pytest.approx(0.8, abs=NEAR)


def test_fishers_formula_goes_on_where_counting_ends() -> None:
    for share, size in ((0.05, 0.03), (0.5, 0.06)):
        counted, formula = fisher(share, size, 1000), fisher(share, size, 1001)
        assert 0.6 < counted < 0.95 and formula == pytest.approx(counted, abs=0.02)


def test_no_difference_is_found_in_at_most_one_case_of_twenty() -> None:
    assert student(0.1, 1e-9, 20, 19) == pytest.approx(0.05, abs=1e-4)
    assert 0.02 < mcnemar(0.5, 0.0, 100) <= 0.05
    assert 0.02 < fisher(0.4, 0.0, 100) <= 0.05


@pytest.mark.parametrize("seeds", [2, 3, 10, 1000, 100_000])
def test_power_rises_with_the_difference(seeds: int) -> None:
    powers = [student(1.0, size, seeds, seeds - 1) for size in np.geomspace(1e-4, 100, 1000)]
    assert np.all(np.diff(powers) > -1e-6) and powers[0] < 0.06 and powers[-1] > 0.99


def test_the_smallest_difference_is_the_one_that_needs_the_seeds() -> None:
    for spread in (
        graded(0.12),
        Spread("won or lost", True, 8, 5, 0.3, 0.4),
        Spread("won or lost", False, 8, 5, 0.3, 0.4),
    ):
        seeds = needed(spread, 0.11).seeds
        assert seeds is not None
        shown, with_fewer = smallest(spread, seeds), smallest(spread, seeds - 1)
        assert shown is not None and shown <= 0.1103
        assert with_fewer is not None and with_fewer > 0.1099
        assert (smallest(spread, seeds, at_limit=True) or 1) >= shown


def test_five_wins_and_losses_show_nothing_at_all() -> None:
    assert smallest(paired([[(0, 1), (0, 0), (1, 0), (0, 1), (0, 0)]]), 5) is None
    assert smallest(paired([[(0, 1), (0, 0), (1, 0), (0, 1), (0, 0)]] * 8), 5) is not None


def test_the_limit_of_the_spread_is_above_it_four_times_in_five() -> None:
    rng, above, pairs_above = np.random.default_rng(6), 0, 0
    for _ in range(1000):
        a, b = rng.normal(0.5, 0.1, (2, 5))
        found = paired([list(zip(a, b, strict=True))])
        above += (found.upper or 0) >= 0.1 * 2**0.5
        won = rng.choice([0.0, 1.0], 10, p=[0.7, 0.3]).tolist()
        pairs_above += (paired([[(0.0, w) for w in won]]).upper or 0) >= 0.3
    assert above / 1000 == pytest.approx(0.8, abs=0.04)
    assert pairs_above / 1000 >= 0.8


def test_few_seeds_leave_much_open() -> None:
    pairs = [(0.1, 0.3), (0.2, 0.2), (0.3, 0.35)]
    few, many = paired([pairs]), paired([pairs * 20])
    assert few.from_seeds == 3 and few.value is not None and few.upper is not None
    assert many.value == pytest.approx(few.value, rel=0.2)
    assert few.upper > 2 * few.value * 0.9 and many.upper is not None and many.upper < 1.2 * few.value
    need = needed(few, 0.05)
    assert need.seeds is not None and need.seeds_at_upper_spread is not None
    assert need.seeds_at_upper_spread > 3 * need.seeds


def test_nothing_is_made_up() -> None:
    alike = paired([[(0.1, 0.1), (0.2, 0.2)]])
    assert alike.value is None and needed(alike, 0.05) == needed(paired([[(0.1, 0.4)]]), 0.05)
    assert needed(alike, 0.05).seeds is None and smallest(alike, 100) is None
    # Nothing but zeros: what a difference takes at least, and what it may take.
    need = needed(paired([[(0.0, 0.0)] * 5]), 0.1)
    assert need.seeds is not None and need.seeds_at_upper_spread is not None
    assert 50 < need.seeds < need.seeds_at_upper_spread
    assert needed(graded(0.4), 0.002).seeds is None


@pytest.mark.parametrize(("size", "power"), [(0, 0.8), (1.5, 0.8), (0.1, 1.0), (0.1, 0.05)])
def test_questions_without_sense_are_refused(size: float, power: float) -> None:
    with pytest.raises(ValueError, match="above"):
        needed(graded(0.1), size, power)


def test_pairs_where_there_are_any() -> None:
    a, b = {1: 0.1, 2: 0.5, 3: 0.9}, {1: 0.2, 2: 0.6, 3: 0.95, 4: 0.5}
    shared = seen([a], [b])
    assert shared.paired and shared.from_seeds == 3
    apart = seen([a], [{3: 0.9, 7: 0.5, 8: 0.1}])
    assert not apart.paired and apart.from_seeds == 3
    assert apart.value is not None and shared.value is not None and apart.value > 5 * shared.value


def test_one_agent_stands_for_two_but_tells_no_more_than_it_played() -> None:
    for values in ([0.1, 0.5, 0.9, 0.2], [0.0, 1.0, 0.0, 0.0]):
        alone, two = seen([dict(enumerate(values))]), unpaired([values], [values])
        assert not alone.paired and alone.from_seeds == 4
        assert alone.value == pytest.approx(two.value) and alone.freedom == pytest.approx(two.freedom)
        assert alone.upper is not None and two.upper is not None and alone.upper > 1.05 * two.upper


def test_rows_of_tasks_and_games() -> None:
    maze, corridor = "MiniHack-MazeWalk-9x9-v0", "MiniHack-Corridor-R3-v0"
    a = {maze: {1: 0.0, 2: 0.0}, "Crafter": {1: 0.5, 2: 0.3, 3: 0.2}, corridor: {1: 1.0, 2: 0.0}, "Absent": {}}
    b = {maze: {1: 1.0, 2: 0.0}, "Crafter": {1: 0.6, 2: 0.3, 3: 0.4}, corridor: {1: 1.0, 2: 0.0}}
    found = rows(a, b, 0.2, {maze: 5, corridor: 8, "Crafter": 10})
    assert [row.name for row in found] == [maze, corridor, "minihack, 2 tasks", "Crafter"]
    assert [row.planned for row in found] == [5, 8, 5, 10]
    assert [row.spread.kind for row in found] == ["won or lost"] * 3 + ["graded"]
    assert all(row.spread.paired and row.need == needed(row.spread, 0.2) for row in found)
    assert found[-1].shows == smallest(found[-1].spread, 10) and found[0].shows is None
    alone = rows(a, None, 0.2, {"Crafter": 10})
    assert [row.name for row in alone][-1] == "Crafter" and not alone[-1].spread.paired
