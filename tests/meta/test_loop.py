"""The loop as a whole: what is tried, kept and paid for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from automem.episode import load_result
from automem.errors import UserError
from automem.trace import RunTrace
from meta import loop as loops
from meta import storage
from meta.gate import Look
from meta.settings import SearchSettings
from tests.meta.loops import CHARS, OTHER, TURNS, Prepared, one, request, run

pytestmark = pytest.mark.usefixtures("own_place")


def test_an_accepted_revision_is_the_parent_of_the_next_and_is_played_on_held_out_seeds(
    monkeypatch: pytest.MonkeyPatch, decide: Any
) -> None:
    decide("accepted", "accepted")
    loop, result, reviewer, _ = run({"1.1.0": CHARS, "2.1.0": TURNS}, monkeypatch)
    first, second = loop.attempts()
    assert [a.outcome for a in (first, second)] == ["accepted", "accepted"]
    assert first.parent == loop.root().identity and second.parent == first.identity
    assert second.scaffold().schema.limits.result_chars == 1500
    assert reviewer.seen["2.1.0"].parent.identity == first.identity
    assert result["held_out"]["overall"]["pairs"] == 2 and result["gate"]["overall"]["pairs"] == 4
    held_out = RunTrace(loop.evaluation(result["best"]["identity"]) / "held-out")
    assert {episode.seed for episode in held_out.episodes} == {20000, 20001}
    assert {episode.result.scaffold for episode in held_out.episodes if episode.result} == {result["best"]["identity"]}


def test_a_failed_attempt_goes_on_and_is_shown_what_failed(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("rejected", "accepted")
    loop, _, reviewer, _ = run({"1.1.0": CHARS, "1.1.1": TURNS}, monkeypatch)
    shown = reviewer.seen["1.1.1"]
    assert shown.before is not None and shown.before.number == "1.1.0"
    assert (shown.before.outcome, shown.before.why) == ("rejected", "so it was said")
    both = loop.attempt("1.1.1")
    assert both is not None and both.parent == loop.root().identity
    # It went on from the files of the attempt before.
    limits = both.scaffold().schema.limits
    assert (limits.result_chars, limits.log_turns) == (1500, 4)


def test_reviewers_are_shown_some_gate_seeds_and_no_held_outone(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("rejected", "accepted", "rejected", "rejected")
    _, _, reviewer, _ = run({"1.1.0": CHARS, "1.1.1": TURNS, "2.1.0": OTHER}, monkeypatch)
    evidence = reviewer.seen["2.1.0"]
    assert {episode.seed for episode in evidence.run.episodes} == {10000, 10001}
    for attempt in evidence.attempts:
        trace = attempt.trace()
        assert trace is not None
        assert {episode.seed for episode in trace.episodes} == {10000, 10001}


def test_an_episode_is_played_once_in_a_loop_and_not_again_in_the_next(
    monkeypatch: pytest.MonkeyPatch, decide: Any
) -> None:
    decide("rejected", "rejected", "rejected", "rejected")
    _, result, _, watcher = run({"1.1.0": CHARS, "1.1.1": TURNS}, monkeypatch)
    assert result["episodes"] == 3 * 4
    steps = sum(load_result(path.parent).steps for path in Path("runs").rglob("episode.json"))  # type: ignore[union-attr]
    assert watcher.steps == steps
    decide("rejected", "rejected", "rejected", "rejected")
    _, _, _, again = run({"1.1.0": OTHER}, monkeypatch, request(name="second"))
    second = storage.load("second")
    copied = sorted(second.folder.rglob("copied-from"))
    assert len(copied) == 4 and again.steps < watcher.steps
    assert all(second.root().identity[:16] in str(path) for path in copied)


def test_other_settings_are_other_episodes(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("rejected", "rejected")
    run({"1.1.0": CHARS}, monkeypatch)
    decide("rejected", "rejected")
    run({"1.1.0": CHARS}, monkeypatch, request(name="longer", steps=31))
    assert not list(storage.load("longer").folder.rglob("copied-from"))


def test_the_error_budget_is_shared(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    said = decide("rejected", "accepted", "rejected")
    run({"1.1.0": CHARS, "1.1.1": TURNS, "2.1.0": OTHER}, monkeypatch)
    assert said.alphas[:2] == [0.05 / 4] * 2  # half for each of two revisions, of two candidates each
    # The share of the accepted one is free again: 0.05 less the rejected one's, over the two that may come.
    assert said.alphas[2] == pytest.approx((0.05 - 0.05 / 4) / 2)


def test_attempts_side_by_side_keep_the_best_that_was_accepted(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    said = decide("accepted", "accepted")
    means = iter([0.05, 0.1])

    def judge(differences: Sequence[float], alpha: float) -> Look:
        mean = next(means)
        return Look(4, mean, mean - 0.04, mean + 0.04, "accepted", "")

    said.judge = judge
    settings = SearchSettings(iterations=1, attempts=2, continuations=0, side_by_side=2, shown=2)
    loop, result, _, watcher = run({"1.1.0": CHARS, "1.2.0": TURNS}, monkeypatch, request(search=settings))
    better = max(watcher.looks, key=lambda item: item[1].mean)[0]
    kept = loop.attempt(better)
    assert kept is not None and result["best"]["identity"] == kept.identity
    assert len(result["accepted"]) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"held_out": "10002,20000"}, "seed 10002 is a gate seed and a held-out seed"),
        ({"gate_seeds": "10000,10001"}, "up to 4 seeds, and there are 2"),
        ({"game": "balrog"}, "name a game or a task"),
        ({"scaffold": "nethack/v0"}, "plays nethack"),
        ({"name": "no/name"}, "run name"),
        ({"resume": True, "name": None}, "--run NAME"),
    ],
)
def test_a_request_is_checked_before_anything_starts(
    changes: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from meta import reviewers

    monkeypatch.setattr(reviewers, "REVIEWERS", {"prepared": lambda settings: Prepared({})})
    with pytest.raises(UserError, match=message):
        loops.plan(request(**changes))
    assert not Path("runs").exists()


def test_a_leaner_memory_that_plays_a_little_worse_becomes_the_parent(
    monkeypatch: pytest.MonkeyPatch, decide: Any
) -> None:
    said = decide()
    said.judge = lambda differences, alpha: Look(4, -0.01, -0.05, 0.03, "accepted", "leaner")
    loop, result, reviewer, _ = run({"1.1.0": CHARS, "2.1.0": TURNS}, monkeypatch)
    first, second = loop.attempts()
    assert reviewer.seen["2.1.0"].parent.identity == first.identity
    assert result["best"]["identity"] == second.identity and result["held_out"] is not None


def test_replicates_are_averaged_by_seed(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("accepted")
    loop, result, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=one(), replicates=2))
    assert sorted(path.name for path in loop.evaluation(result["best"]["identity"]).iterdir()) == [
        "gate",
        "gate-2",
        "held-out",
        "held-out-2",
    ]
    # Two seeds, two episodes of each; `scripted` plays them alike, and a seed counts once.
    assert result["held_out"]["overall"]["pairs"] == 2 and result["gate"]["overall"]["pairs"] == 4


def test_of_equal_attempts_side_by_side_the_first_is_played(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("rejected", "rejected")
    settings = SearchSettings(iterations=1, attempts=3, continuations=0, side_by_side=3, shown=2)
    edits = {"1.1.0": CHARS, "1.2.0": CHARS, "1.3.0": TURNS}
    loop, result, _, _ = run(edits, monkeypatch, request(search=settings))
    first, second, third = loop.attempts()
    assert [a.outcome for a in (first, second, third)] == ["rejected", "invalid", "rejected"]
    assert "as attempt 1.1.0" in second.why and result["episodes"] == 3 * 4
    # Stopped when the first was over and the second was not: it is told apart the same way.
    (second.folder / storage.ATTEMPT).unlink()
    loop, _, _, watcher = run(edits, monkeypatch, request(search=settings), resume=True)
    again = loop.attempt("1.2.0")
    assert again is not None and (again.outcome, again.why, watcher.steps) == ("invalid", second.why, 0)


def test_the_gate_judges_by_seeds_that_no_reviewer_saw_first(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    said = decide("accepted")
    said.batch = said.most = 2
    loop, _, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=one()))
    assert (loop.config.shown_seeds, loop.config.judged_seeds) == ((10000, 10001), (10002, 10003, 10000, 10001))
    (attempt,) = loop.attempts()
    played = RunTrace(attempt.played)  # type: ignore[arg-type]
    # Two to be judged by, and two for whoever goes on from here.
    assert {episode.seed for episode in played.episodes} == {10000, 10001, 10002, 10003}
    assert attempt.looks[0].seeds == 2
