"""Means, errors and intervals, against figures worked out independently."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from automem.episode import EpisodeJob, EpisodeResult
from automem.executor import Outcome
from automem.metrics import Counts, counts_from, rates
from automem.statistics import estimate
from automem.summary import summarise

SHARES = st.floats(0, 1, allow_nan=False)


def outcome(task: str, seed: int, progression: float | None) -> Outcome:
    job = EpisodeJob(Path("x"), task, seed, 10, Path("s"))
    if progression is None:
        return Outcome(job, None, "the server went away")
    counts = Counts(steps=10, writes=4, duplicate_writes=1, prompt_tokens=100, operations={"APPEND": 4})
    result = EpisodeResult(
        task, seed, 10, 10, progression, {"wood": 2}, {"wood": 3}, 1.5, False, True, {}, "id", "fixed", counts, "end"
    )
    return Outcome(job, result, None)


@given(st.lists(SHARES, min_size=2, max_size=20))
def test_interval_is_students(values: list[float]) -> None:
    error = stats.sem(values)
    found = summarise(outcome("Crafter", seed, value) for seed, value in enumerate(values))["per_task"]["Crafter"]
    assert found["standard_error"] == pytest.approx(error, abs=1e-12)
    low, high = found["interval"]
    mean = sum(values) / len(values)
    reach = stats.t.ppf(0.975, len(values) - 1) * error
    assert low == pytest.approx(max(0, mean - reach), abs=1e-9)
    assert high == pytest.approx(min(1, mean + reach), abs=1e-9)


def test_one_value_has_no_interval() -> None:
    found = estimate([0.5])
    assert found.mean == 0.5 and found.interval is None and found.error is None


def test_games_weigh_alike_however_many_tasks_and_seeds_they_have() -> None:
    outcomes = [outcome("Crafter", seed, 0.8) for seed in range(4)]
    outcomes += [outcome("MiniHack-Quest-Easy-v0", 1, 0.0), outcome("MiniHack-Corridor-R3-v0", 1, 1.0)]
    found = summarise(outcomes)
    assert found["per_game"]["minihack"]["progression"] == pytest.approx(0.5)
    assert found["overall"]["progression"] == pytest.approx(0.65)
    assert found["episodes"] == 6 and found["complete"]


def test_a_failed_episode_is_named_missing_from_the_mean_and_marks_it() -> None:
    found = summarise([outcome("Crafter", 1, 0.5), outcome("Crafter", 2, None)])
    assert found["per_task"]["Crafter"]["progression"] == 0.5
    assert not found["complete"] and not found["per_task"]["Crafter"]["complete"]
    assert found["failed"] == [{"task": "Crafter", "seed": 2, "error": "the server went away"}]


def test_nothing_finished_is_no_zero() -> None:
    assert summarise([outcome("Crafter", 1, None)])["overall"]["progression"] is None


def test_the_order_in_which_episodes_finish_does_not_matter() -> None:
    outcomes = [outcome("Crafter", seed, seed / 7) for seed in range(6)]
    assert summarise(outcomes) == summarise(outcomes[::-1])


def test_rates_are_shares_and_undefined_ones_are_none() -> None:
    found = rates(Counts(steps=10, stuck=5, writes=4, duplicate_writes=1))
    assert found["stuck_share"] == 0.5 and found["duplicate_write_share"] == 0.25
    assert found["empty_search_share"] is None


def test_counts_survive_json_and_add_up() -> None:
    one = Counts(steps=2, operations={"READ": 1, "TAIL": 2})
    assert counts_from(one.as_dict()) == one
    assert one.merged(one).operations == {"READ": 2, "TAIL": 4}
