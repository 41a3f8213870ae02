"""Figures of runs and episodes from their traces, and finding words in them."""

from __future__ import annotations

import json
import re
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from automem import scaffold, trace
from automem.episode import RESULT
from automem.errors import UserError
from automem.runs import Run
from automem.trace import show, stats
from automem.trace.search import EVERYWHERE, Found, _texts, search
from tests.traces import Written, a_run, mapping_scaffold, play


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run of two Crafter episodes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOMEM_RUNS", str(tmp_path_factory.mktemp("runs")))
        return a_run("first", steps=15)


@pytest.fixture(scope="module")
def hooked(tmp_path_factory: pytest.TempPathFactory) -> trace.EpisodeTrace:
    """An episode with hooks."""
    base = tmp_path_factory.mktemp("ask")
    loaded = mapping_scaffold(base / "scaffold")
    play(base / "episode", loaded, 12)
    return trace.EpisodeTrace(base / "episode", loaded)


def test_statistics_are_those_of_the_summary(run: Run) -> None:
    asked = trace.RunTrace(run)
    found = asked.stats()
    stored = run.summary()
    assert stored is not None and found.unfinished == 0 and found.planned == 2
    said = json.loads(json.dumps(found.summary))
    assert said["per_task"] == stored["per_task"] and said["overall"] == stored["overall"]
    assert [e.result for e in found.episodes] == [episode.result for episode in asked.episodes]


def test_an_unfinished_episode_comes_to_what_it_would_have_been(tmp_path: Path, run: Run) -> None:
    shutil.copytree(run.folder, tmp_path / "copy")
    asked = trace.RunTrace(str(tmp_path / "copy"))
    (asked.episodes[0].folder / RESULT).unlink()
    whole = trace.RunTrace(run).episodes[0].result
    found = trace.RunTrace(str(tmp_path / "copy")).stats()
    assert found.unfinished == 1 and [e.finished for e in found.episodes] == [False, True]
    played = found.episodes[0].result
    assert whole is not None and played.steps_limit == 15
    for name in ("task", "seed", "steps", "progression", "achievements", "reached_at", "episode_return", "model"):
        assert getattr(played, name) == getattr(whole, name), name
    # What the last action led to is not in the trace.
    unknown = {"stuck": played.counts.stuck, "oscillating": played.counts.oscillating}
    assert replace(whole.counts, **unknown) == played.counts
    assert abs(whole.counts.stuck - played.counts.stuck) <= 1


def test_episodes_are_chosen_by_task_and_seed(run: Run) -> None:
    asked = trace.RunTrace(run)
    assert asked.episode("crafter", 8).folder.name == "seed-8"
    with pytest.raises(UserError, match=r"2 such episodes.*--task, --seed.*Crafter: 7, 8"):
        asked.episode()
    with pytest.raises(UserError, match=r"no episode of seed 9\. There are Crafter: 7, 8"):
        asked.episode(seed=9)
    with pytest.raises(UserError, match="no run"):
        trace.RunTrace("nosuchrun")


def test_every_kind_of_text_is_found_where_it_stands(tmp_path: Path, hooked: trace.EpisodeTrace) -> None:
    written = Written(tmp_path, scaffold.load("crafter/v0"))
    written.step([("APPEND", "map_notes.txt", "needle one"), ("TAIL", "map_notes.txt", "1")], note="thread")
    found = search([written.asked()], "NEEDLE")
    assert [(hit.step, hit.phase, hit.turn, hit.where) for hit in found.hits] == [
        (0, "log", 0, "operation"),
        (0, "log", 0, "result"),
        (0, "plan", 0, "operation"),
        (0, "plan", 0, "result"),
    ]
    assert all(hit.excerpt[hit.start : hit.end] == "needle" for hit in found.hits)
    places = {(hit.phase, hit.where) for hit in search([written.asked()], "thread").hits}
    assert places == {
        ("", "observation"),
        ("log", "prompt"),
        ("plan", "prompt"),
        ("log", "reply"),
        ("plan", "reply"),
        ("", "hook"),
    }
    assert {hit.where for hit in search([written.asked()], "be good").hits} == {"prompt"}
    assert {hit.where for hit in search([written.asked()], "west", where=["action"]).hits} == {"action"}
    assert {hit.phase for hit in search([hooked], "state.txt", where=["operation"]).hits} == {"maintain"}
    assert {hit.where for hit in search([hooked], "ValueError").hits} == {"hook"}
    assert search([written.asked()], "append map_notes.txt | needle").hits


@settings(max_examples=60, deadline=None)
@given(data=st.data(), where=st.sets(st.sampled_from(EVERYWHERE), min_size=1))
def test_a_search_finds_what_a_look_at_every_text_finds(
    hooked: trace.EpisodeTrace, data: st.DataObject, where: set[str]
) -> None:
    texts = [(r.step, *text) for r in hooked.steps() for text in _texts(r)]
    chosen = data.draw(st.sampled_from([text[-1] for text in texts if text[-1].strip()]))
    start = data.draw(st.integers(0, len(chosen) - 1))
    pattern = chosen[start : start + data.draw(st.integers(1, 25))]
    pattern = data.draw(st.sampled_from((pattern, pattern.upper(), pattern.lower())))
    expected = [text[:-1] for text in texts if text[-2] in where and pattern.lower() in text[-1].lower()]
    found = search([hooked], pattern, where=sorted(where), limit=100_000)
    assert [(hit.step, hit.phase, hit.turn, hit.where) for hit in found.hits] == expected
    exact = search([hooked], f"(?i){re.escape(pattern)}", regex=True, where=sorted(where), limit=100_000)
    assert len(exact.hits) == len(expected)


def test_a_search_is_limited_and_bad_patterns_are_told(hooked: trace.EpisodeTrace) -> None:
    assert len(search([hooked], "e", limit=3).hits) == 3 and search([hooked], "e", limit=3).more
    assert search([hooked], "nowhere at all") == Found((), False, ())
    for pattern, regex, says in (
        ("", False, "0 characters"),
        ("x" * 1001, False, "1001"),
        ("(", True, "not a regular"),
    ):
        with pytest.raises(UserError, match=says):
            search([hooked], pattern, regex=regex)
    with pytest.raises(UserError, match=r"'replies' cannot be searched; choose from observation, prompt"):
        search([hooked], "x", where=["replies"])
    with pytest.raises(UserError, match="at least one"):
        search([hooked], "x", limit=0)


def test_an_expression_that_takes_forever_is_ended(tmp_path: Path) -> None:
    written = Written(tmp_path, scaffold.load("crafter/v0"))
    written.step(note="a" * 5000)
    start = time.monotonic()
    with pytest.raises(UserError, match=r"stopped after 0\.5 s"):
        search([written.asked()], r"(a|aa)+b|(.*a){20}c", regex=True, seconds=0.5)
    assert time.monotonic() - start < 20


def test_steps_read_like_what_happened(hooked: trace.EpisodeTrace) -> None:
    short = "\n".join(line.plain for line in show.steps(hooked.steps()))
    full = "\n".join(line.plain for line in show.steps(hooked.steps(), full=True))
    for text in (short, full):
        assert text.count("=== step ") == 12 and "maintain asked for" in text and "op_MARK asked for" in text
        assert "hook check_action action changed to Noop" in text and "\x1b" not in text
    assert len(full) > 2 * len(short) and "You are" not in short.split("observation")[0]
    for record in hooked.steps():
        for turn in (*record.log, *record.plan):
            assert all(line in full for line in turn.text.replace("\x1b", "\ufffd").split("\n"))


def test_many_unfinished_episodes_come_to_the_same_in_several_processes(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(run.folder, tmp_path / "copy")
    asked = trace.RunTrace(str(tmp_path / "copy"))
    for episode in asked.episodes:
        (episode.folder / RESULT).unlink()
    path = asked.episodes[1].path
    path.write_bytes(path.read_bytes()[:-9])
    alone = trace.RunTrace(str(tmp_path / "copy")).stats()
    monkeypatch.setattr(stats, "WORTH_A_PROCESS", 1)
    monkeypatch.setattr(stats, "of_episode", lambda *_: pytest.fail("it was done in this process"))
    together = trace.RunTrace(str(tmp_path / "copy")).stats()
    assert together == alone
    assert [bool(episode.damage) for episode in together.episodes] == [False, True]
    assert [episode.result.steps for episode in together.episodes] == [15, 14]
    assert {episode.result.steps_limit for episode in together.episodes} == {15}
