"""What a reviewer leaves, and a version that fails: each costs its attempt, never the loop."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from automem.errors import UserError
from meta import candidate, storage
from meta.arena import Arena, CandidateFailed, Played
from meta.gate import Look
from tests.meta.loops import CHARS, OTHER, TURNS, alone, one, request, run, setting

pytestmark = pytest.mark.usefixtures("own_place")


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
    loop, _, _, _ = run({"1.1.0": CHARS, "2.1.0": CHARS}, monkeypatch, request(search=alone(2)))
    second = loop.attempts()[1]
    assert second.outcome == "invalid" and "1.1.0: rejected" in second.why


def test_an_exception_costs_the_candidate_and_not_the_loop(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("accepted")

    def explode(folder: Path) -> None:
        raise ZeroDivisionError("a defect of the reviewer")

    loop, result, _, _ = run({"1.1.0": explode, "1.1.1": CHARS}, monkeypatch, request(search=one(continuations=1)))
    first, second = loop.attempts()
    assert first.outcome == "failed" and "ZeroDivisionError: a defect" in first.why
    assert "explode" in (first.folder / "traceback.txt").read_text()
    assert second.outcome == "accepted" and result["best"]["identity"] == second.identity


def test_every_change_of_a_scaffold_changes_what_is_known_to_be_played(
    monkeypatch: pytest.MonkeyPatch, decide: Any
) -> None:
    """Episodes name the hash of what they loaded, and each file counts."""
    decide("rejected")

    def prompt(folder: Path) -> None:
        CHARS(folder)
        path = folder / "prompts" / "plan.j2"
        path.write_text(path.read_text().replace("Choose the next action.", "Choose the next action well."))

    loop, _, _, _ = run({"1.1.0": prompt}, monkeypatch, request(search=one()))
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
        run({"1.1.0": prompt}, monkeypatch, request(search=one()), resume=True)


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
    loop, result, _, _ = run({"1.1.0": edit, "1.1.1": TURNS}, monkeypatch, request(search=one(continuations=1)))
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

    loop, _, _, _ = run({"1.1.0": link}, monkeypatch, request(search=one()))
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert "because of" in (loop.attempts()[0].candidate / "notes.md").read_text()


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
    loop, result, _, _ = run({"1.1.0": CHARS, "2.1.0": TURNS, "3.1.0": OTHER}, monkeypatch, request(search=alone(3)))
    _, second, third = loop.attempts()
    assert (second.outcome, second.parent_failed) == ("failed", True) and "the parent, cannot be played" in second.why
    assert third.parent == loop.root().identity and third.outcome == "rejected"
    assert result["best"]["identity"] == loop.root().identity


def test_loops_with_long_names_do_not_name_their_versions_alike() -> None:
    names = [f"loop1-minihack-command-qwen2-5-32b-instruct-20260101-0000{second}" for second in (10, 11)]
    versions = {candidate.version_name(name, "1000.100.100") for name in names}
    assert len(versions) == 2 and max(map(len, versions)) <= 64
