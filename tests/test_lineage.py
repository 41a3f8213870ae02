"""Which versions are known, what runs measured of them, and that an evaluated one does not change."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from scipy import stats

from automem import lineage, runs, scaffold
from automem.errors import UserError
from automem.lineage import Lineage, Version, changed_since_evaluated, check_unchanged
from automem.lineage_scores import Paired, paired, scores
from tests.versions import edit, write_run, write_version

FIRST, LATER = "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test in an empty folder, with the runs in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOMEM_RUNS", raising=False)


def test_a_version_that_only_a_run_has_is_known_with_its_parent_and_children() -> None:
    parent = write_version("crafter/a")
    middle = write_version("crafter/b", parent.identity)
    child = write_version("crafter/c", middle.identity)
    write_run("played", middle, {1: 0.5})
    shutil.rmtree(middle.folder)
    known = lineage.read()
    kept = known.versions[middle.identity]
    assert (kept.ref, kept.parent, kept.current, kept.problem) == ("crafter/b", parent.identity, False, "")
    assert kept.place == Path("runs/played/scaffolds/crafter/b")
    assert [version.ref for version in known.children(middle.identity)] == ["crafter/c"]
    assert known.ancestors(child.identity) == [middle.identity, parent.identity]


def test_a_damaged_copy_is_passed_over_for_a_good_one_and_told_where_there_is_none() -> None:
    played = write_version("crafter/a")
    write_run("one", played, {1: 0.5}, created=LATER)
    write_run("two", played, {1: 0.5}, created=FIRST)
    shutil.rmtree(played.folder)
    (Path("runs/one") / "scaffolds/crafter/a/scaffold.toml").write_text("nonsense")
    assert lineage.read().versions[played.identity].place == Path("runs/two/scaffolds/crafter/a")
    (Path("runs/two") / "scaffolds/crafter/a/files/goals.txt").write_text("other goals")
    lost = lineage.read().versions[played.identity]
    assert lost.parent is None and "not valid TOML" in lost.problem
    with pytest.raises(UserError, match="not readable"):
        lineage.resolve(played.identity[:10])


def test_a_scaffold_that_does_not_load_and_a_broken_run_leave_the_others_known() -> None:
    good = write_version("crafter/good")
    write_version("crafter/bad")
    write_run("whole", good, {1: 0.5})
    write_run("torn", good, {1: 0.5})
    Path("runs/torn/run.toml").write_text("format = 99")
    Path("scaffolds/crafter/bad/scaffold.toml").write_text("[scaffold]\ngame = 1")
    known = lineage.read()
    assert [run.config.name for run in known.versions[good.identity].runs] == ["whole"]
    assert [broken.ref for broken in known.broken] == ["crafter/bad"]


def test_ancestors_end_where_words_go_in_a_circle() -> None:
    def version(identity: str, parent: str) -> Version:
        return Version("crafter/x", identity, parent, Path("x"), current=False)

    known = Lineage(
        {v.identity: v for v in (version("a", "b"), version("b", "c"), version("c", "b"), version("d", "d"))}
    )
    assert known.ancestors("a") == ["b", "c"]
    assert known.ancestors("d") == []


@pytest.mark.parametrize("named", ["ref", "folder", "run", "copy", "identity", "IDENTITY"])
def test_a_version_is_found_however_it_is_named(named: str) -> None:
    played = write_version("crafter/a")
    write_run("first", played, {1: 0.5})
    text = {
        "ref": "crafter/a",
        "folder": "scaffolds/crafter/a",
        "run": "runs/first",
        "copy": "runs/first/scaffolds/crafter/a",
        "identity": played.identity[:8],
        "IDENTITY": played.identity.upper(),
    }[named]
    assert lineage.resolve(text).identity == played.identity


def test_a_run_is_found_by_its_usual_name_wherever_runs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOMEM_RUNS", "elsewhere")
    played = write_version("crafter/a")
    write_run("first", played, {1: 0.5})
    assert lineage.resolve("runs/first").folder == Path("elsewhere/first/scaffolds/crafter/a")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("crafter/nope", "no scaffold 'crafter/nope'"),
        ("abcdef0", "no scaffold 'abcdef0'"),  # seven digits
        ("abcdef01", "begins with abcdef01"),
        ("runs/nope", "no scaffold 'runs/nope'"),
        ("", "no scaffold ''"),
    ],
)
def test_a_version_that_is_not_there_is_told(text: str, says: str) -> None:
    with pytest.raises(UserError) as told:
        lineage.resolve(text)
    assert says in str(told.value)


def test_a_version_as_it_was_evaluated_can_be_played_from_anywhere() -> None:
    played = write_version("crafter/a")
    run = write_run("first", played, {1: 0.5})
    check_unchanged(played)
    check_unchanged(scaffold.load(str(run.folder / "scaffolds/crafter/a")))
    (played.folder / "notes.md").write_text("measured: 50 %")
    check_unchanged(scaffold.load("crafter/a"))


def test_a_version_changed_after_it_was_evaluated_is_refused_and_what_is_said_to_do_mends_it() -> None:
    played = write_version("crafter/a")
    write_run("first", played, {1: 0.5})
    (played.folder / "notes.md").write_text("measured: 50 %")
    changed = edit(played, "log_turns = 5", "log_turns = 6")
    (changed.folder / "prompts" / "more.j2").write_text("more")
    changed = scaffold.load("crafter/a")
    assert [run.config.name for run in changed_since_evaluated(changed)] == ["first"]
    with pytest.raises(UserError) as told:
        check_unchanged(changed)
    message = str(told.value)
    assert "run first" in message and "runs/first/scaffolds/crafter/a" in message
    assert "automem scaffold new crafter/NEWVERSION --from crafter/a" in message
    command = next(line for line in message.splitlines() if "find " in line)
    subprocess.run(command, shell=True, check=True)
    restored = scaffold.load("crafter/a")
    assert restored.identity == played.identity
    assert (restored.folder / "notes.md").read_text() == "measured: 50 %"
    check_unchanged(restored)


def test_the_rule_goes_by_the_name_in_the_file_and_says_so_to_a_forgotten_one() -> None:
    played = write_version("crafter/a")
    write_run("first", played, {1: 0.5})
    shutil.copytree(played.folder, "scaffolds/crafter/b")
    copied = scaffold.load("crafter/b")
    check_unchanged(copied)  # the same files
    with pytest.raises(UserError) as told:
        check_unchanged(edit(copied, "log_turns = 5", "log_turns = 6"))
    assert 'set version = "b"' in str(told.value) and played.identity in str(told.value)


def test_a_name_belongs_to_what_was_evaluated_first_under_it() -> None:
    first = write_version("crafter/a")
    write_run("early", first, {1: 0.5}, created=FIRST)
    later = edit(first, "log_turns = 5", "log_turns = 6")
    write_run("late", later, {1: 0.5}, created=LATER)
    assert [run.config.name for run in changed_since_evaluated(later)] == ["early"]
    assert changed_since_evaluated(edit(later, "log_turns = 6", "log_turns = 5")) == []


def test_a_run_that_cannot_be_read_does_not_count() -> None:
    played = write_version("crafter/a")
    write_run("first", played, {1: 0.5})
    Path("runs/first/run.toml").write_bytes(b"\xff")
    check_unchanged(edit(played, "log_turns = 5", "log_turns = 6"))


def _scores(version: scaffold.Scaffold) -> list[str]:
    return [f"{s.run}: {s.figures} {s.remark}".rstrip() for s in scores(lineage.read().versions[version.identity])]


def test_scores_are_of_exactly_these_files_and_each_run_stands_for_itself() -> None:
    played = write_version("crafter/a")
    write_run("one", played, {1: 0.2, 2: 0.4}, created=FIRST)
    write_run("two", played, {2: 0.4, 3: 0.6}, created=LATER)
    write_run("long", played, {1: 0.2}, steps=999, created="2025-01-01T00:00:00+00:00")
    write_run("warm", played, {1: 0.2, 2: 0.3}, temperature=0.7)
    write_run("program", played, {1: 0.7}, model="scripted")
    write_run("other", edit(played, "log_turns = 5", "log_turns = 6"), {1: 0.9})
    assert _scores(played) == [
        # Student's interval of 0.4 and 0.6, cut to what a progression can be
        "two: 50.00 % [0.0, 100.0], 2 episodes",
        "one: 30.00 % [0.0, 100.0], 2 episodes the same seeds as run two, not further evidence",
        "long: 20.00 %, 1 episode",
        "warm: 25.00 % [0.0, 88.5], 2 episodes",
        "program: 70.00 %, 1 episode",
    ]
    players = {s.run: s.player for s in scores(lineage.read().versions[played.identity])}
    assert players["warm"] == "openai/some-model at temperature 0.7"
    assert players["program"] == "scripted (a program, not an LLM)"


def test_what_has_no_figure_says_why() -> None:
    played = write_version("crafter/a")
    write_run("begun", played, None, created=LATER)
    write_run("partly", played, {1: 0.5}, seeds=(1, 2, 3), created=FIRST)
    run = write_run("torn", played, {1: 0.5}, created="2025-01-01T00:00:00+00:00")
    (run.folder / runs.SUMMARY).write_text('{"per_game": {"crafter": 3}}')
    told = _scores(played)
    assert told[0] == "begun: no summary yet, 0 episodes finished"
    assert told[1] == "partly: 50.00 %, 1 of 3 episodes"
    assert told[2] == "torn: its summary is damaged; resume the run to write it again"


def test_versions_are_paired_on_the_episodes_that_both_played_in_the_same_way() -> None:
    parent = write_version("crafter/a")
    child = write_version("crafter/b", parent.identity)
    write_run("before", parent, {1: 0.2, 2: 0.4, 3: 0.3})
    write_run("few", parent, {1: 0.9})
    write_run("shorter", parent, {1: 0.9, 2: 0.9, 3: 0.9, 4: 0.9}, steps=10)
    write_run("after", child, {2: 0.5, 3: 0.7, 4: 1.0})
    known = lineage.read().versions
    (score,) = scores(known[child.identity])
    found = paired(score, scores(known[parent.identity]))
    assert found is not None and found.run == "before" and found.episodes == 2
    assert found.difference == pytest.approx(0.25)
    low, high = stats.t.interval(0.95, 1, loc=0.25, scale=stats.sem([0.1, 0.4]))
    assert found.interval == pytest.approx((low, high))
    assert not found.clear
    assert paired(score, []) is None


@pytest.mark.parametrize("code", ["neither", "parent", "child"])
def test_limits_of_scaffold_code_part_runs_where_there_is_code(code: str) -> None:
    hooks = {"hooks.py": "class Hooks:\n    def maintain(self, step, memory):\n        return []\n"}
    parent = write_version("crafter/a", changes=hooks if code == "parent" else {})
    child = write_version("crafter/b", parent.identity, changes=hooks if code == "child" else {})
    write_run("before", parent, {1: 0.2, 2: 0.4}, call_seconds=1.0)
    write_run("slow", child, {1: 0.5, 2: 0.7}, call_seconds=2.0)
    known = lineage.read().versions
    (slow,) = scores(known[child.identity])
    assert (paired(slow, scores(known[parent.identity])) is not None) == (code == "neither")
    write_run("same", child, {1: 0.5, 2: 0.7}, call_seconds=1.0)
    same = next(s for s in scores(lineage.read().versions[child.identity]) if s.run == "same")
    assert paired(same, scores(known[parent.identity])) is not None


def test_a_difference_of_nothing_has_no_minus() -> None:
    assert Paired(-1e-9, (-1e-9, 1e-9), 3, "before").figures == "+0.00 [+0.0, +0.0] points on the same 3 episodes"
    assert Paired(-0.01, None, 1, "before").figures == "-1.00 points on the same episode"
