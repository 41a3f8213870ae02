"""A scaffold is told from a folder of files, and what is wrong with one is said by file and place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from automem import scaffold
from automem.scaffold import ScaffoldError

ROOT = Path(__file__).resolve().parent.parent / "scaffolds"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of crafter/v0 that a test may break."""
    copy = tmp_path / "crafter" / "mine"
    shutil.copytree(ROOT / "crafter" / "v0", copy)
    return copy


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize("ref", ["crafter/v0", "minihack/v0", "nethack/v0"])
def test_roots_load_and_say_what_they_are(ref: str) -> None:
    loaded = scaffold.load(ref)
    assert loaded.ref == ref
    assert loaded.schema.limits.result_chars == 2000
    assert any(
        file.kind == "log" and ("{observation}" in file.entry or "{seen}" in file.entry) for file in loaded.schema.files
    )


@pytest.mark.parametrize("path", ["scaffold.toml", "prompts/plan.j2", "files/goals.txt"])
def test_identity_changes_with_any_file_that_is_played(folder: Path, path: str) -> None:
    before = scaffold.load(str(folder)).identity
    (folder / path).write_text((folder / path).read_text() + "\n")
    assert scaffold.load(str(folder)).identity != before


def test_identity_does_not_depend_on_notes_or_place(folder: Path) -> None:
    (folder / "notes.md").write_text("measured: better")
    assert scaffold.load(str(folder)).identity == scaffold.load("crafter/v0").identity


def test_a_file_renamed_is_another_scaffold(folder: Path) -> None:
    before = scaffold.load(str(folder)).identity
    (folder / "files" / "goals.txt").rename(folder / "files" / "goals2.txt")
    assert scaffold.load(str(folder)).identity != before


def test_saved_copy_is_the_same_scaffold(tmp_path: Path) -> None:
    loaded = scaffold.load("crafter/v0")
    loaded.save(tmp_path / "copy")
    assert scaffold.load(str(tmp_path / "copy")).identity == loaded.identity


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('kind = "log"', 'kind = "list"', "files.0.kind"),
        ("log_turns = 5", "log_turns = 0", "limits.log_turns"),
        ("log_turns = 5", "log_turn = 5", "limits.log_turn"),
        ('"TAIL"', '"TAILS"', "unknown operation 'TAILS'"),
        ("{observation}", "{observations}", "{observations}"),
        ('game = "crafter"', "game = crafter", "not valid TOML"),
        ('name = "goals.txt"', 'name = "map_notes.txt"', "listed twice"),
        ('name = "goals.txt"', 'name = "map_{block}.txt"', "needs block"),
        ('name = "goals.txt"', 'name = "../goals.txt"', "files.1.name"),
        ('parent = ""', 'parent = "v7"', "scaffold.parent"),
    ],
)
def test_a_broken_schema_is_told_by_field(folder: Path, old: str, new: str, says: str) -> None:
    change(folder / "scaffold.toml", old, new)
    with pytest.raises(ScaffoldError, match=r"scaffold\.toml") as caught:
        scaffold.load(str(folder))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("template", "text", "says"),
    [
        ("plan.j2", "{{ nonsense }}", r"plan\.j2:1: no variable 'nonsense'"),
        ("log.j2", "line\n{% if %}", r"log\.j2:2"),
        ("system.j2", "{{ observation }}", r"system\.j2:1: no variable 'observation'"),
        ("log.j2", "{{ limits.turns }}", r"log\.j2:1: limits has no 'turns'; it has .*log_turns"),
        ("plan.j2", "{% if step.number > 3 %}{{ step.seed }}{% endif %}", r"plan\.j2:1: step has no 'seed'"),
        ("plan.j2", "one\n{{ hooks.map }}", r"plan\.j2:2: hooks has no 'map'; .*\[hooks\] .* nothing yet"),
        ("plan.j2", "{{ ''.__class__.__mro__ }}", r"plan\.j2:1: no '__mro__'"),
        ("results.j2", "{{ errors.append('x') }}", r"results\.j2:1: nothing can be called .*hooks\.py"),
        (
            "plan.j2",
            "one\n{{ step.action | upper }}",
            r"plan\.j2:2: upper works on text, .*None.*default\(",
        ),
        ("log.j2", "{{ step.raw_action | upper }}", r"log\.j2:1: upper works on text"),
        ("plan.j2", "{{ '\\ud800' }}", r"plan\.j2:1: .*surrogate"),
        ("plan.j2", "{{ 1 | nofilter }}", r"plan\.j2:1: no filter 'nofilter'"),
        ("plan.j2", "{{ [1, 2] | random }}", r"plan\.j2:1: no filter 'random'"),
        ("plan.j2", "{{ 1 | trim(1) }}", r"plan\.j2:1: filter trim takes nothing"),
        ("plan.j2", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", r"plan\.j2:1: no macros in templates"),
        ("plan.j2", "{% include 'plan.j2' %}", r"plan\.j2:1: .*cannot include itself"),
        ("plan.j2", "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", r"plan\.j2:1: nested too deeply"),
        ("log.j2", "{% include '/etc/passwd' %}", r"log\.j2:1: no file '/etc/passwd'"),
        ("log.j2", "one\n{{ 1 / 0 }}", r"log\.j2:2: ZeroDivisionError"),
        ("results.j2", "one\n{{ 1 / turns_left }}", r"results\.j2:2: ZeroDivisionError"),
    ],
)
def test_a_broken_template_is_told_before_anything_is_played(folder: Path, template: str, text: str, says: str) -> None:
    (folder / "prompts" / template).write_text(text)
    with pytest.raises(ScaffoldError, match=says):
        scaffold.load(str(folder))


def test_an_initial_file_that_no_operation_could_write_is_told(folder: Path) -> None:
    (folder / "files" / "two words.txt").write_text("x")
    with pytest.raises(ScaffoldError, match=r"two words.txt.* is not a file name"):
        scaffold.load(str(folder))


def test_a_missing_template_is_named(folder: Path) -> None:
    (folder / "prompts" / "handoff.j2").unlink()
    with pytest.raises(ScaffoldError, match=r"handoff\.j2: missing"):
        scaffold.load(str(folder))


def test_a_link_is_not_followed(folder: Path) -> None:
    (folder / "files" / "more.txt").symlink_to("/etc/passwd")
    with pytest.raises(ScaffoldError, match=r"more\.txt: a scaffold holds plain files"):
        scaffold.load(str(folder))


def test_an_unknown_scaffold_lists_the_known() -> None:
    with pytest.raises(ScaffoldError, match=r"crafter/v99.*Known: .*crafter/v0"):
        scaffold.load("crafter/v99")


def test_text_that_is_not_utf8_is_told(folder: Path) -> None:
    (folder / "files" / "goals.txt").write_bytes(b"caf\xe9")
    with pytest.raises(ScaffoldError, match=r"goals\.txt: not UTF-8 text \(byte 3\)"):
        scaffold.load(str(folder))


@pytest.mark.parametrize(
    ("text", "told"),
    [(f"x = 1{'0' * 1990}9{chr(10)}y = 1{'0' * 5000}", ":2: longer"), (f"{'a.' * 20_000}b = 1", ":1: longer")],
)
def test_a_line_that_would_keep_the_parser_busy_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "scaffold.toml").write_text(text)
    with pytest.raises(ScaffoldError, match=told):
        scaffold.load(str(tmp_path))


def test_a_link_to_a_folder_is_no_part_of_a_scaffold(tmp_path: Path) -> None:
    shutil.copytree(scaffold.find("crafter/v0"), tmp_path / "child")
    (tmp_path / "child" / "extra").symlink_to(tmp_path)
    with pytest.raises(ScaffoldError, match="plain files only"):
        scaffold.load(str(tmp_path / "child"))
