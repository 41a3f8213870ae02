"""The loop as a whole: what is tried, kept, paid for, and what survives a stop."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from automem import scaffold
from automem.episode import load_result
from automem.errors import UserError
from automem.sandbox import SandboxConfig
from automem.trace import RunTrace
from meta import adopt, candidate, gate, storage
from meta import loop as loops
from meta.arena import Arena, CandidateFailed, Played
from meta.gate import Look
from meta.settings import LoopBudget, SearchSettings
from tests.meta.loops import Prepared, request, run, setting


class Said:
    """A gate that decides what it was told to, in turn."""

    batch = most = 4

    def __init__(self, decisions: Sequence[str]) -> None:
        self.decisions = list(decisions)
        self.alphas: list[float] = []

    def judge(self, differences: Sequence[float], alpha: float) -> Look:
        self.alphas.append(alpha)
        decision: Any = self.decisions.pop(0)
        return Look(len(differences), sum(differences) / len(differences), None, None, decision, "so it was said")


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOMEM_RUNS", raising=False)


@pytest.fixture
def decide(monkeypatch: pytest.MonkeyPatch) -> Any:
    def to(*decisions: str) -> Said:
        said = Said(decisions)
        monkeypatch.setattr(gate, "make", lambda settings: said)
        return said

    return to


CHARS = setting("result_chars", 1500)
TURNS = setting("log_turns", 4)
OTHER = setting("plan_turns", 4)


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


def test_reviewers_are_shown_some_gate_seeds_and_no_held_out_one(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
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


def test_what_cannot_be_used_is_not_played(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide()

    def rename(folder: Path) -> None:
        path = folder / "scaffold.toml"
        path.write_text(path.read_text().replace('version = "small-2.1.0"', 'version = "v0"') + "# changed\n")

    edits = {"1.1.0": setting("result_chars", 0), "1.1.1": lambda folder: None, "2.1.0": rename}
    loop, result, _, _ = run(edits, monkeypatch)
    ends = {attempt.number: (attempt.outcome, attempt.why) for attempt in loop.attempts()}
    assert ends["1.1.0"][0] == "invalid" and "result_chars" in " ".join(loop.attempts()[0].findings)
    assert ends["1.1.1"][0] == "invalid"
    assert ends["2.1.0"][0] == "invalid" and "[scaffold]" in ends["2.1.0"][1]
    assert result["held_out"] is None and result["episodes"] == 2


def test_the_same_files_are_not_played_twice(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("rejected")
    loop, _, _, _ = run({"1.1.0": CHARS, "2.1.0": CHARS}, monkeypatch, request(search=_alone(2)))
    second = loop.attempts()[1]
    assert second.outcome == "invalid" and "1.1.0: rejected" in second.why


def test_an_exception_costs_the_candidate_and_not_the_loop(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("accepted")

    def explode(folder: Path) -> None:
        raise ZeroDivisionError("a defect of the reviewer")

    loop, result, _, _ = run({"1.1.0": explode, "1.1.1": CHARS}, monkeypatch, request(search=_one(continuations=1)))
    first, second = loop.attempts()
    assert first.outcome == "failed" and "ZeroDivisionError: a defect" in first.why
    assert "explode" in (first.folder / "traceback.txt").read_text()
    assert second.outcome == "accepted" and result["best"]["identity"] == second.identity


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
        run({}, monkeypatch, request(steps=40, search=_one()), resume=True)


def test_a_changed_candidate_is_not_taken_for_the_one_that_was_reviewed(
    monkeypatch: pytest.MonkeyPatch, decide: Any
) -> None:
    decide("rejected")
    loop, _, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=_one()))
    (loop.folder / storage.RESULT).unlink()
    (loop.folder / "attempts" / "1.1.0" / storage.ATTEMPT).unlink()
    TURNS(loop.folder / "attempts" / "1.1.0" / "candidate")
    decide()
    loop, _, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=_one()), resume=True)
    (only,) = loop.attempts()
    assert (only.outcome, only.why) == ("invalid", "its files were changed after the review was over")


def test_adopting_brings_the_best_version_and_its_ancestors(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("accepted", "accepted")
    loop, result, _, _ = run({"1.1.0": CHARS, "2.1.0": TURNS}, monkeypatch)
    folders = adopt.adopt(loop)
    assert [str(folder) for folder in folders] == ["scaffolds/crafter/small-1.1.0", "scaffolds/crafter/small-2.1.0"]
    versions = [scaffold.load(str(folder)) for folder in folders]
    assert [v.identity for v in versions] == [a.identity for a in loop.attempts()]
    assert versions[1].schema.scaffold.parent == versions[0].identity
    notes = (folders[1] / "notes.md").read_text()
    assert "because of **2.1.0**" in notes and "2 held-out episodes" in notes and result["best"]["ref"] in notes
    assert adopt.adopt(loop) == folders
    TURNS(folders[1])
    setting("result_chars", 900)(folders[1])
    with pytest.raises(UserError, match="holds other files"):
        adopt.adopt(loop)


def test_nothing_is_adopted_where_nothing_was_accepted(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("rejected")
    loop, _, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=_one()))
    with pytest.raises(UserError, match="accepted nothing"):
        adopt.adopt(loop)


def test_every_change_of_a_scaffold_changes_what_is_known_to_be_played(
    monkeypatch: pytest.MonkeyPatch, decide: Any
) -> None:
    """Episodes name the hash of what they loaded, and each file counts."""
    decide("rejected")

    def prompt(folder: Path) -> None:
        CHARS(folder)
        path = folder / "prompts" / "plan.j2"
        path.write_text(path.read_text().replace("Choose the next action.", "Choose the next action well."))

    loop, _, _, _ = run({"1.1.0": prompt}, monkeypatch, request(search=_one()))
    (attempt,) = loop.attempts()
    played = attempt.trace()
    assert played is not None
    for episode in played.episodes:
        assert episode.result is not None and episode.result.scaffold == attempt.identity
        record = episode.step(0)
        assert "Choose the next action well." in record.plan[0].prompt.before + record.plan[0].prompt.after
    # Somebody exchanges an episode for that of another version: it is not counted.
    root = loop.evaluation(loop.root().identity) / "gate" / "episodes" / "Crafter" / "seed-10000" / "episode.json"
    data = json.loads((attempt.played / "episodes/Crafter/seed-10000/episode.json").read_text())  # type: ignore[operator]
    root.write_text(json.dumps(data))
    (loop.folder / storage.RESULT).unlink()
    (loop.folder / "attempts" / "1.1.0" / storage.ATTEMPT).unlink()
    decide("rejected")
    with pytest.raises(UserError, match="another episode"):
        run({"1.1.0": prompt}, monkeypatch, request(search=_one()), resume=True)


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


def _one(continuations: int = 0) -> SearchSettings:
    return SearchSettings(iterations=1, attempts=1, continuations=continuations, shown=2)


def _alone(iterations: int) -> SearchSettings:
    return SearchSettings(iterations=iterations, attempts=1, continuations=0, shown=2)


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
    loop, result, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=_one(), replicates=2))
    assert sorted(path.name for path in loop.evaluation(result["best"]["identity"]).iterdir()) == [
        "gate",
        "gate-2",
        "held-out",
        "held-out-2",
    ]
    # Two seeds, two episodes of each; `scripted` plays them alike, and a seed counts once.
    assert result["held_out"]["overall"]["pairs"] == 2 and result["gate"]["overall"]["pairs"] == 4


def _without_toml(folder: Path) -> None:
    (folder / "scaffold.toml").unlink()


def _nothing(folder: Path) -> None:
    shutil.rmtree(folder)


def _name_that_is_no_text(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder / "files") + b"/\xff.txt")).write_text("x")


def _deep(folder: Path) -> None:
    deep = folder.joinpath(*["d" * 200] * 16)
    deep.mkdir(parents=True)
    (deep / "note.txt").write_text("x")


def _pipe_for_notes(folder: Path) -> None:
    CHARS(folder)
    (folder / "notes.md").unlink(missing_ok=True)
    os.mkfifo(folder / "notes.md")


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (_without_toml, "no scaffold"),
        (_nothing, "cannot be used"),
        (_name_that_is_no_text, "not UTF-8"),
        (_deep, "at most 200"),
        (_pipe_for_notes, "so it was said"),
    ],
)
def test_whatever_a_reviewer_leaves_costs_its_attempt_only(
    edit: Any, why: str, monkeypatch: pytest.MonkeyPatch, decide: Any
) -> None:
    decide(*(["rejected"] if edit is _pipe_for_notes else []), "accepted")
    loop, result, _, _ = run({"1.1.0": edit, "1.1.1": TURNS}, monkeypatch, request(search=_one(continuations=1)))
    first, second = loop.attempts()
    assert first.outcome in ("invalid", "failed", "rejected") and why in first.why + " ".join(first.findings)
    assert second.outcome == "accepted" and result["spent"]["usd"] == 1


def test_what_a_notes_link_leads_to_is_not_written(
    monkeypatch: pytest.MonkeyPatch, decide: Any, tmp_path: Path
) -> None:
    decide("accepted")
    (tmp_path / "mine.txt").write_text("mine")

    def link(folder: Path) -> None:
        CHARS(folder)
        (folder / "notes.md").symlink_to(tmp_path / "mine.txt")

    loop, _, _, _ = run({"1.1.0": link}, monkeypatch, request(search=_one()))
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert "because of" in (loop.attempts()[0].candidate / "notes.md").read_text()


def test_a_budget_that_is_used_up_does_not_undo_what_was_found(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    edits = {"1.1.0": CHARS, "2.1.0": TURNS, "3.1.0": OTHER}
    asked = request(search=_alone(3), budget=LoopBudget(episodes=10))
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
    _, more, reviewer, _ = run(edits, monkeypatch, request(search=_alone(3), budget=LoopBudget(episodes=99)), True)
    assert (more["revisions"], more["stopped"], reviewer.calls) == (3, "", ["3.1.0"])
    assert storage.load("small").config.budget.episodes == 99


def _failing(monkeypatch: pytest.MonkeyPatch, version: str, purpose: str, revision: int = 0) -> None:
    """Make a version fail on held-out seeds, or as soon as it is a parent."""
    play = Arena.play

    def begun() -> bool:
        return any(Path("runs/small/attempts").glob(f"{revision}.*"))

    async def failing(self: Arena, played: Any, seeds: Sequence[int], kind: Any = "gate") -> Played:
        if played.ref.endswith(version) and kind == purpose and (kind != "gate" or begun()):
            raise CandidateFailed(f"Crafter, seed {seeds[-1]}: plan.j2 fails")
        return await play(self, played, seeds, kind)

    monkeypatch.setattr(Arena, "play", failing)


def test_a_winner_that_fails_on_held_out_seeds_is_not_the_best(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide().judge = lambda differences, alpha: Look(4, 0.1, 0.05, 0.15, "accepted", "better")
    _failing(monkeypatch, "2.1.0", "held-out")
    loop, result, _, _ = run({"1.1.0": CHARS, "2.1.0": TURNS}, monkeypatch)
    first, second = loop.attempts()
    assert second.outcome == "accepted" and result["best"]["identity"] == first.identity
    assert result["held_out"]["overall"]["pairs"] == 2
    (unfit,) = result["unfit"]
    assert unfit["identity"] == second.identity and "seed 20001: plan.j2 fails" in unfit["why"]


def test_an_accepted_version_that_fails_on_further_seeds_is_a_parent_no_more(
    monkeypatch: pytest.MonkeyPatch, decide: Any
) -> None:
    decide("accepted", "rejected")
    _failing(monkeypatch, "1.1.0", "gate", revision=2)
    loop, result, _, _ = run({"1.1.0": CHARS, "2.1.0": TURNS, "3.1.0": OTHER}, monkeypatch, request(search=_alone(3)))
    _, second, third = loop.attempts()
    assert (second.outcome, second.parent_failed) == ("failed", True) and "the parent, cannot be played" in second.why
    assert third.parent == loop.root().identity and third.outcome == "rejected"
    assert result["best"]["identity"] == loop.root().identity


def test_damage_is_told_by_the_file_it_is_in(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("rejected")
    loop, _, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=_one()))
    path = loop.folder / "attempts" / "1.1.0" / storage.ATTEMPT
    path.write_text(json.dumps({**json.loads(path.read_text()), "surplus": 1}))
    with pytest.raises(UserError, match=r"1\.1\.0/attempt\.json: cannot be read"):
        run({}, monkeypatch, request(search=_one()), resume=True)


def test_a_loop_is_not_resumed_from_another_scaffold(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("accepted")
    loop, _, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=_one()))
    other = adopt.adopt(loop)[0]
    with pytest.raises(UserError, match=r"(?s)cannot be resumed.*scaffold:"):
        run({}, monkeypatch, request(search=_one(), scaffold=str(other)), resume=True)


def test_loops_with_long_names_do_not_name_their_versions_alike() -> None:
    names = [f"loop1-minihack-command-qwen2-5-32b-instruct-20260101-0000{second}" for second in (10, 11)]
    versions = {candidate.version_name(name, "1000.100.100") for name in names}
    assert len(versions) == 2 and max(map(len, versions)) <= 64


def test_an_accepted_version_that_was_changed_since_is_no_parent(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("accepted", "rejected")
    loop, _, _, _ = run({"1.1.0": CHARS, "2.1.0": TURNS}, monkeypatch, request(search=_alone(2)))
    (loop.folder / "attempts" / "2.1.0" / storage.ATTEMPT).unlink()
    OTHER(loop.folder / "attempts" / "1.1.0" / "candidate")
    with pytest.raises(UserError, match=r"1\.1\.0/candidate was changed after it was evaluated"):
        run({"2.1.0": TURNS}, monkeypatch, request(search=_alone(2)), resume=True)


def test_a_damaged_episode_of_another_loop_is_played_anew(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("rejected")
    first, _, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=_one()))
    episodes = first.evaluation(first.root().identity) / "gate" / "episodes" / "Crafter"
    (episodes / "seed-10000" / "episode.json").write_text("{")
    shutil.copy(episodes / "seed-10002" / "episode.json", episodes / "seed-10001" / "episode.json")
    decide("rejected")
    second, _, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=_one(), name="second"))
    assert sorted(path.parent.name for path in second.folder.rglob("copied-from")) == ["seed-10002", "seed-10003"]


def test_code_that_nothing_contains_is_allowed_anew_each_time(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("rejected")
    asked = request(search=_one())
    run({"1.1.0": CHARS}, monkeypatch, replace(asked, sandbox=SandboxConfig(unsafe=True)))
    run({}, monkeypatch, asked, resume=True)
    assert not storage.load("small").config.sandbox.unsafe


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
    loop, _, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=_one()))
    assert (loop.config.shown_seeds, loop.config.judged_seeds) == ((10000, 10001), (10002, 10003, 10000, 10001))
    (attempt,) = loop.attempts()
    played = RunTrace(attempt.played)  # type: ignore[arg-type]
    # Two to be judged by, and two for whoever goes on from here.
    assert {episode.seed for episode in played.episodes} == {10000, 10001, 10002, 10003}
    assert attempt.looks[0].seeds == 2
