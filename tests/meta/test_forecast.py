"""What a loop says before it spends anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from automem.episode import load_result
from meta import forecast, reviewers
from meta import loop as loops
from meta.settings import GateSettings, LoopBudget, LoopConfig, ReviewerSettings, SearchSettings
from tests.meta.loops import Prepared, request
from tests.traces import a_run


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOMEM_RUNS", raising=False)
    monkeypatch.setattr(reviewers, "REVIEWERS", {"prepared": lambda _: Prepared({}), "rules": lambda _: Prepared({})})


def config(**changes: Any) -> LoopConfig:
    settings: dict[str, Any] = {
        "gate_seeds": "10000..10079",
        "held_out": "20000..20009",
        "steps": 12,
        "gate": GateSettings(most=80),
        "search": SearchSettings(iterations=6, attempts=2, continuations=0),
        "reviewer": ReviewerSettings(kind="rules"),
    }
    return loops.plan(request(**(settings | changes))).config


def test_without_an_episode_seen_costs_are_not_guessed() -> None:
    found = forecast.of(config())
    assert (found.seen, found.tokens, found.usd, found.hours) == (None, None, None, None)
    # The first version's and the held-out ones, and six revisions of two candidates that play three quarters of 80.
    assert (found.revisions, found.episodes) == (6, 80 + 20 + 6 * 2 * 60)


def test_costs_are_those_of_episodes_that_were_seen() -> None:
    run = a_run("seen", seeds="1..3")
    found = forecast.of(config())
    results = [result for job in run.jobs() if (result := load_result(job.folder))]
    tokens = sum(r.counts.prompt_tokens + r.counts.completion_tokens for r in results) / 3
    assert found.seen is not None and (found.seen.episodes, found.seen.steps) == (3, 12)
    assert found.tokens == pytest.approx(found.episodes * tokens)
    assert found.usd == 0 and found.hours is not None and found.hours > 0


def test_episodes_of_other_step_limits_and_models_are_not_these() -> None:
    a_run("shorter", seeds="1..3", steps=11)
    assert forecast.of(config()).seen is None


def test_a_budget_buys_fewer_revisions_and_too_few_are_warned_of() -> None:
    few = forecast.of(config(budget=LoopBudget(episodes=100 + 2 * 120 + 60)))
    assert few.revisions == 2 and any("raise it" in warning for warning in few.warnings)
    assert forecast.of(config(budget=LoopBudget(episodes=50))).revisions == 0
    assert not any("raise it" in warning for warning in forecast.of(config()).warnings)


def test_time_is_money() -> None:
    a_run("seen", seeds="1..3")
    whole = forecast.of(config())
    assert whole.hours is not None
    half = forecast.of(config(budget=LoopBudget(minutes=whole.hours * 30)))
    assert 0 < half.revisions < whole.revisions


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gate": GateSettings(kind="paper", most=10, batch=10)}, "accepts by chance"),
        ({"gate": GateSettings(most=16)}, "only large gains"),
        ({"search": SearchSettings(iterations=2)}, "few for a search"),
    ],
)
def test_what_makes_a_search_weak_is_said(changes: dict[str, Any], words: str) -> None:
    assert any(words in warning for warning in forecast.of(config(**changes)).warnings)
