"""BALROG's arithmetic: the figures that its own code published come out of ours, to the last digits."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import games
from automem import statistics
from automem.balrog import scoring
from automem.balrog.scoring import Score
from automem.episode import EpisodeResult
from automem.metrics import Counts

PUBLISHED = json.loads((Path(__file__).parent / "published.json").read_text("utf-8"))
DIGITS = 1e-13
"""Relative: BALROG's sums run in the order in which a disk lists its files."""


def percent(score: Score) -> tuple[float, float, int]:
    """As BALROG writes it."""
    return 100 * score.progression, 100 * score.standard_error, score.episodes


@pytest.mark.parametrize("published", PUBLISHED["summaries"], ids=lambda p: p["submission"])
def test_a_game_pools_its_episodes_as_published(published: dict) -> None:
    episodes = [(task, float(number < solved)) for task, solved in published["solved"].items() for number in range(5)]
    (found,) = scoring.by_game(episodes).values()
    expected = (published["progression_percentage"], published["standard_error"], 40)
    assert percent(found) == pytest.approx(expected, rel=DIGITS)
    for task, (mean, error) in published["tasks"].items():
        values = [value for name, value in episodes if name == task]
        assert percent(scoring.pooled(values)) == pytest.approx((mean, error, 5), rel=DIGITS)


def test_fractions_pool_as_published() -> None:
    published = PUBLISHED["nethack_summary"]
    episodes = [one for one in PUBLISHED["nethack"] if one["submission"] == published["submission"]]
    found = scoring.by_game(("NetHackChallenge-v0", one["progression"]) for one in episodes)
    expected = (published["progression_percentage"], published["standard_error"], published["episodes_played"])
    assert percent(found["nle"]) == pytest.approx(expected, rel=DIGITS)


@pytest.mark.parametrize("published", PUBLISHED["overall"], ids=lambda p: p["submission"])
def test_the_whole_is_the_mean_of_the_games_as_published(published: dict) -> None:
    games_ = [Score(mean / 100, error / 100, episodes) for mean, error, episodes in published["environments"]]
    mean, error, episodes = percent(scoring.overall(games_))
    assert (mean, error) == pytest.approx((published["average_progress"], published["standard_error"]), rel=DIGITS)
    assert episodes == sum(one[2] for one in published["environments"])


def test_one_episode_has_no_error_and_two_have_the_populations() -> None:
    assert scoring.standard_error([0.3]) == 0.0
    assert scoring.standard_error([0.0, 1.0]) == pytest.approx(0.5 / math.sqrt(2))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=50))
def test_balrogs_error_is_the_samples_made_smaller(values: list[float]) -> None:
    ours = statistics.standard_error(values)
    assert ours is not None
    n = len(values)
    assert scoring.standard_error(values) == pytest.approx(ours * math.sqrt((n - 1) / n), abs=1e-12)


def test_a_task_with_more_episodes_weighs_more_in_its_game() -> None:
    found = scoring.by_game([("MiniHack-Quest-Easy-v0", 1.0), *[("MiniHack-MazeWalk-9x9-v0", 0.0)] * 3])
    assert found["minihack"].progression == 0.25


def test_names_are_balrogs() -> None:
    named = {(scoring.environment(task), scoring.task_name(task)) for task in games.tasks()}
    assert ("crafter", "default") in named and ("nle", "NetHackChallenge-v0") in named
    assert sum(environment == "minihack" for environment, _ in named) == 8


def _result(task: str, progression: float, **others: object) -> EpisodeResult:
    plain = EpisodeResult(
        task=task, seed=1, steps_limit=9, steps=0, progression=progression, achievements={}, reached_at={},
        episode_return=0.0, terminated=True, truncated=False, facts={}, scaffold="", model="m", counts=Counts(),
        final_observation="",
    )  # fmt: skip
    return replace(plain, **others)  # type: ignore[arg-type]


def _with_last_reward(result: EpisodeResult, reward: float) -> EpisodeResult:
    """The result as it says its last reward; a stand-in where results do not yet."""
    if "last_reward" in {field.name for field in fields(EpisodeResult)}:
        return replace(result, **{"last_reward": reward})
    return SimpleNamespace(**{**asdict(result), "last_reward": reward})  # type: ignore[return-value]


@pytest.mark.parametrize(("reward", "balrog"), [(1.0, 1.0), (1.5, 1.0), (0.99, 0.0), (0.0, 0.0), (-0.01, 0.0)])
def test_minihack_is_judged_by_the_last_reward_alone(reward: float, balrog: float) -> None:
    found = _with_last_reward(_result("MiniHack-MazeWalk-9x9-v0", 1.0), reward)
    assert scoring.progression(found) == balrog


def test_other_games_are_judged_as_we_do() -> None:
    assert scoring.progression(_result("Crafter", 0.25)) == 0.25
    assert scoring.progression(_with_last_reward(_result("NetHackChallenge-v0", 0.25), 1.0)) == 0.25


def test_without_a_last_reward_the_older_mark_counts_and_without_that_nothing_is_known(tmp_path: Path) -> None:
    task = "MiniHack-MazeWalk-9x9-v0"
    marked = _result(task, 1.0, achievements={"success": 1, "balrog_success": 0})
    assert scoring.progression(marked, tmp_path) == 0.0
    assert scoring.progression(_result(task, 1.0), tmp_path) is None
