"""A loop that stopped goes on, with what it had and with nothing else."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import Any

import pytest

from automem.errors import UserError
from automem.sandbox import SandboxConfig
from meta import adopt, storage
from meta.settings import LoopBudget, ReviewerSettings
from tests.meta.loops import CHARS, OTHER, TURNS, alone, one, request, run

pytestmark = pytest.mark.usefixtures("own_place")


def test_a_loop_that_stops_goes_on_without_reviewing_or_playing_again(
    monkeypatch: pytest.MonkeyPatch, decide: Any
) -> None:
    decide("rejected", "accepted", "rejected", "rejected")
    edits = {"1.1.0": CHARS, "1.1.1": TURNS, "2.1.0": OTHER}
    loop, whole, _, _ = run(edits, monkeypatch)
    then = {attempt.number: attempt for attempt in loop.attempts()}
    # As a kill between the review and the end of an attempt would leave it.
    (loop.folder / storage.RESULT).unlink()
    (loop.folder / "attempts" / "2.1.0" / storage.ATTEMPT).unlink()
    shutil.rmtree(loop.folder / "attempts" / "2.1.1")
    decide("rejected", "rejected")
    loop, again, reviewer, watcher = run(edits, monkeypatch, resume=True)
    assert reviewer.calls == ["2.1.1"] and watcher.steps == 0
    now = {attempt.number: attempt for attempt in loop.attempts()}
    assert {n: (a.identity, a.outcome) for n, a in then.items()} == {n: (a.identity, a.outcome) for n, a in now.items()}
    assert (again["best"], again["spent"]["usd"]) == (whole["best"], whole["spent"]["usd"])


def test_a_loop_is_not_resumed_with_other_settings(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("rejected", "rejected", "rejected")
    run({"1.1.0": CHARS}, monkeypatch)
    with pytest.raises(UserError, match=r"(?s)small cannot be resumed.*tasks:.*search:"):
        run({}, monkeypatch, request(steps=40, search=one()), resume=True)


def test_a_changed_candidate_is_not_taken_for_the_one_that_was_reviewed(
    monkeypatch: pytest.MonkeyPatch, decide: Any
) -> None:
    decide("rejected")
    loop, _, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=one()))
    (loop.folder / storage.RESULT).unlink()
    (loop.folder / "attempts" / "1.1.0" / storage.ATTEMPT).unlink()
    TURNS(loop.folder / "attempts" / "1.1.0" / "candidate")
    decide()
    loop, _, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=one()), resume=True)
    (only,) = loop.attempts()
    assert (only.outcome, only.why) == ("invalid", "its files were changed after the review was over")


def test_a_budget_that_is_used_up_does_not_undo_what_was_found(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    edits = {"1.1.0": CHARS, "2.1.0": TURNS, "3.1.0": OTHER}
    asked = request(search=alone(3), budget=LoopBudget(episodes=10))
    decide("accepted", "rejected")
    loop, whole, _, _ = run(edits, monkeypatch, asked)
    assert (whole["revisions"], "10 episodes" in whole["stopped"]) == (2, True)
    # Killed in the second revision, when more had been played than the budget allows to begin one with.
    (loop.folder / storage.RESULT).unlink()
    (loop.folder / "attempts" / "2.1.0" / storage.ATTEMPT).unlink()
    decide("rejected")
    _, again, _, _ = run(edits, monkeypatch, asked, resume=True)
    assert again["best"] == whole["best"] != {"ref": loop.root().ref, "identity": loop.root().identity}
    assert again["revisions"] == 2
    # With a larger budget it goes on, and the next time it need not be named.
    decide("rejected")
    _, more, reviewer, _ = run(edits, monkeypatch, request(search=alone(3), budget=LoopBudget(episodes=99)), True)
    assert (more["revisions"], more["stopped"], reviewer.calls) == (3, "", ["3.1.0"])
    assert storage.load("small").config.budget.episodes == 99


def test_damage_is_told_by_the_file_it_is_in(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("rejected")
    loop, _, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=one()))
    path = loop.folder / "attempts" / "1.1.0" / storage.ATTEMPT
    path.write_text(json.dumps({**json.loads(path.read_text()), "surplus": 1}))
    with pytest.raises(UserError, match=r"1\.1\.0/attempt\.json: cannot be read"):
        run({}, monkeypatch, request(search=one()), resume=True)


def test_a_loop_is_not_resumed_from_another_scaffold(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("accepted")
    loop, _, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=one()))
    other = adopt.adopt(loop)[0]
    with pytest.raises(UserError, match=r"(?s)cannot be resumed.*scaffold:"):
        run({}, monkeypatch, request(search=one(), scaffold=str(other)), resume=True)


def test_an_accepted_version_that_was_changed_since_is_no_parent(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("accepted", "rejected")
    loop, _, _, _ = run({"1.1.0": CHARS, "2.1.0": TURNS}, monkeypatch, request(search=alone(2)))
    (loop.folder / "attempts" / "2.1.0" / storage.ATTEMPT).unlink()
    OTHER(loop.folder / "attempts" / "1.1.0" / "candidate")
    with pytest.raises(UserError, match=r"1\.1\.0/candidate was changed after it was evaluated"):
        run({"2.1.0": TURNS}, monkeypatch, request(search=alone(2)), resume=True)


def test_a_damaged_episode_of_another_loop_is_played_anew(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("rejected")
    first, _, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=one()))
    episodes = first.evaluation(first.root().identity) / "gate" / "episodes" / "Crafter"
    (episodes / "seed-10000" / "episode.json").write_text("{")
    shutil.copy(episodes / "seed-10002" / "episode.json", episodes / "seed-10001" / "episode.json")
    decide("rejected")
    second, _, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=one(), name="second"))
    assert sorted(path.parent.name for path in second.folder.rglob("copied-from")) == ["seed-10002", "seed-10003"]


def test_code_that_nothing_contains_is_allowed_anew_each_time(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("rejected")
    asked = request(search=one())
    run({"1.1.0": CHARS}, monkeypatch, replace(asked, sandbox=SandboxConfig(unsafe=True)))
    run({}, monkeypatch, asked, resume=True)
    assert not storage.load("small").config.sandbox.unsafe


def test_a_reviewer_goes_on_with_what_was_not_named_again(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    def asked(**reviewer: Any) -> Any:
        return request(search=one(), reviewer=ReviewerSettings(kind="prepared", **reviewer))

    decide("rejected")
    given = {"api_base": "http://127.0.0.1:1/v1", "turns": 7, "tokens": 9, "minutes": 2.0, "usd": 3.0}
    run({"1.1.0": CHARS}, monkeypatch, asked(options={"depth": "3", "width": "4"}, **given))
    began = storage.load("small").config.reviewer
    run({}, monkeypatch, asked(), resume=True)
    assert storage.load("small").config.reviewer == began
    run({}, monkeypatch, asked(options={"depth": "3"}, turns=8), resume=True)
    assert storage.load("small").config.reviewer == began.model_copy(update={"turns": 8})
    for options in ({"depth": "5"}, {"height": "5"}):
        with pytest.raises(UserError, match=r"(?s)cannot be resumed.*reviewer option (depth|height): (3|None) then, 5"):
            run({}, monkeypatch, asked(options=options), resume=True)
