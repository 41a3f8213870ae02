"""Every mistake in a scaffold.toml is told at its line."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from automem import scaffold
from automem.check import check
from automem.scaffold import ScaffoldError
from tests.check.broken import Broken
from tests.versions import write_run, write_version

TOML = "scaffold.toml"
MAP = '\n[[files]]\nname = "map.txt"\nkind = "map"\ndescribe = "what is where"\nkey = "{x},{y}"\nentry = "{what}"\n'


@pytest.mark.parametrize(
    ("old", "new", "at", "code", "says"),
    [
        ('game = "crafter"', "game = crafter", "game = crafter", "toml", "not TOML"),
        ("log_turns = 5", "log_turns = 0", "log_turns", "schema-value", "limits.log_turns"),
        ("log_turns = 5", "log_turn = 5", "log_turn", "schema-unknown", "limits.log_turn"),
        ("result_chars = 2000", "result_chars = 20", "result_chars", "schema-value", "limits.result_chars"),
        ('"TAIL"', '"TAILS"', "enabled", "schema-operation", "'TAILS'"),
        ('"TAIL"', '"DONE"', "enabled", "schema-operation", "DONE is always there"),
        ("{observation}", "{observations}", "entry", "schema-file", "{observations}"),
        ('name = "goals.txt"', 'name = "map_notes.txt"', 'name = "map_notes.txt"', "schema-twice", "listed twice"),
        ('name = "goals.txt"', 'name = "../goals.txt"', "../goals.txt", "schema-value", "files.1.name"),
        ('name = "goals.txt"', 'name = "map_{block}.txt"', "map_{block}.txt", "schema-file", "block"),
        ('kind = "note"', 'kind = "map"\nchanges = true', "changes", "schema-file", "files.1.changes"),
        ('version = "v0"', 'version = "v 0"', "version", "schema-value", "scaffold.version"),
        ('parent = ""', 'parent = "abc"', "parent", "schema-value", "scaffold.parent"),
        ('game = "crafter"\n', "", "[scaffold]", "schema-missing", "scaffold.game"),
        ("[limits]", "[limit]", "[limit]", "schema-unknown", "limit"),
    ],
)
def test_a_mistake_is_told_at_its_line(broken: Broken, old: str, new: str, at: str, code: str, says: str) -> None:
    broken.change(TOML, old, new)
    finding = next(f for f in broken.found() if f.severity == "error")
    lines = [i for i, line in enumerate((broken.folder / TOML).read_text().splitlines(), 1) if at in line]
    assert (finding.file, finding.code) == (TOML, code)
    assert finding.line in lines
    assert says in finding.message
    assert finding.do


def test_a_wrong_kind_points_into_the_right_entry(broken: Broken) -> None:
    text = (broken.folder / TOML).read_text()
    head, _, tail = text.rpartition('kind = "log"')
    broken.write(TOML, f'{head}kind = "list"{tail}')
    finding = broken.only("schema-value")
    assert finding.message.startswith("files.2.kind")
    assert finding.line == head.count("\n") + 1


def test_all_mistakes_are_told_at_once(broken: Broken) -> None:
    broken.change(TOML, "log_turns = 5", "log_turns = 0").change(TOML, '"READ", "SEARCH"', '"REED", "SERCH"')
    broken.change(TOML, "{step}, {action}: {observation}", "{stepp}, {action}: {observations}")
    broken.change("prompts/plan.j2", "{{ observation }}", "{{ observations }}")
    broken.add("prompts/results.j2", "\n<|APPEND|>goals.txt|x<|END|>")
    broken.write("hooks.py", "import os\nclass Hooks:\n    def op_X(self, args, memory): pass\n")
    told = {(finding.file, finding.line) for finding in broken.found() if finding.severity == "error"}
    messages = " ".join(finding.message for finding in broken.found())
    assert told == {
        (TOML, broken.line(TOML, "log_turns")),
        (TOML, broken.line(TOML, "enabled")),
        (TOML, broken.line(TOML, "{stepp}")),
        ("prompts/plan.j2", 1),
        ("prompts/results.j2", broken.line("prompts/results.j2", "APPEND")),
        ("hooks.py", 1),
        ("hooks.py", 3),
    }
    for name in ("REED", "SERCH", "{stepp}", "{observations}"):
        assert name in messages


def test_elements_and_inline_tables_have_lines_of_their_own(broken: Broken) -> None:
    broken.write(
        TOML,
        '# a comment with [brackets] = "and quotes\n'
        '[scaffold]\ngame = "crafter"\nversion = "v0"\n'
        '[ops]\nenabled = [\n  "READ", # "SEARCH",\n  "APPEND",\n\n  "FORGET",\n]\n'
        "files = [\n"
        '  { name = "a.txt", kind = "log", describe = """\nseveral\nlines""" },\n'
        '  { name = "b.txt", kind = "heap", describe = "x" },\n'
        "]\n".replace("files = ", "[x]\nfiles = "),
    )
    # `files` has to stand above the tables to be a key of the whole document
    text = (broken.folder / TOML).read_text()
    table, _, files = text.partition("[x]\n")
    broken.write(TOML, files + table)
    told = {finding.message.split(":")[0]: finding.line for finding in broken.found() if finding.file == TOML}
    assert told["files.1.kind"] == broken.line(TOML, "heap")
    assert told["ops.enabled"] == broken.line(TOML, "FORGET")


@pytest.mark.parametrize(
    ("enabled", "codes"),
    [
        ('["COUNT", "APPEND"]', {"no-read-operation"}),
        ('["READ", "DELETE", "CREATE"]', {"no-write-operation"}),
        ('["DELETE", "COUNT"]', {"no-read-operation", "no-write-operation"}),
    ],
)
def test_the_model_keeps_operations_that_read_and_write(broken: Broken, enabled: str, codes: set[str]) -> None:
    broken.change(TOML, '["READ", "SEARCH", "TAIL", "COUNT", "APPEND", "WRITE", "CREATE"]', enabled)
    found = broken.found()
    assert {finding.code for finding in found} == codes
    assert {(f.severity, f.file, f.line) for f in found} == {("error", TOML, broken.line(TOML, "enabled"))}


@pytest.mark.parametrize(
    ("added", "code", "at"),
    [
        ('\n[[files]]\nname = "x.txt"\nkind = "note"\n', "file-undescribed", 'name = "x.txt"'),
        ('\n[[files]]\nname = "x.txt"\nkind = "log"\nentry = "same"\n', "entry-without-field", 'entry = "same"'),
        (MAP, "file-unwritable", 'kind = "map"'),
        (
            '\n[[files]]\nname = "x.txt"\nkind = "log"\nchanges = true\nentry = "{action} {step} {seen}"\n',
            "changes-numbered",
            "changes = true",
        ),
        ('\n[[files]]\nname = "x.txt"\nkind = "log"\ndescribe = "x"\npin = true\n', "pin-grows", "pin = true"),
        ('\n[[ops.own]]\nname = "NEAR"\nmeaning = "what is near"\n', "no-hooks", "[[ops.own]]"),
        ('\n[hooks]\nshows = ["threats"]\n', "no-hooks", "shows"),
    ],
)
def test_what_makes_no_sense_is_told(broken: Broken, added: str, code: str, at: str) -> None:
    broken.add(TOML, added)
    finding = next(f for f in broken.found() if f.code == code)
    assert (finding.file, finding.line) == (TOML, broken.line(TOML, at))


def test_blocks_are_not_pinned(broken: Broken) -> None:
    block = (
        '\n[[files]]\nname = "m_{block}.txt"\nkind = "map"\nkey = "{x},{y}"\nentry = "{what}"\nblock = 8\npin = true\n'
    )
    broken.add(TOML, block).change(TOML, '"WRITE"', '"WRITE", "UPSERT_MAP"')
    finding = broken.only("pin-grows")
    assert (finding.severity, finding.line) == ("warning", broken.line(TOML, "pin = true"))


@pytest.mark.parametrize("name", ["UPSERT", "UPSERT_MAP"])
def test_an_operation_without_a_map_is_told(broken: Broken, name: str) -> None:
    broken.change(TOML, '"CREATE"]', f'"CREATE",\n  "{name}"]')
    finding = broken.only("operation-useless")
    assert (finding.severity, finding.line) == ("warning", broken.line(TOML, name))


def test_large_results_are_told(broken: Broken) -> None:
    broken.change(TOML, "result_chars = 2000", "result_chars = 20000")
    assert broken.only("result-large").line == broken.line(TOML, "result_chars")


def test_name_game_and_parent_are_compared_with_what_is_there(broken: Broken) -> None:
    unknown = hashlib.sha256(b"nobody").hexdigest()
    broken.change(TOML, 'version = "v0"', 'version = "v9"').change(TOML, 'game = "crafter"', 'game = "chess"')
    broken.change(TOML, 'parent = ""', f'parent = "{unknown}"')
    told = {finding.code: (finding.severity, finding.line) for finding in broken.found()}
    assert told == {
        "version-name": ("warning", broken.line(TOML, "version")),
        "unknown-game": ("warning", broken.line(TOML, "game")),
        "parent": ("warning", broken.line(TOML, "parent")),
    }


def test_a_parent_among_the_versions_is_known(broken: Broken) -> None:
    broken.change(TOML, 'parent = ""', f'parent = "{scaffold.load("crafter/v0").identity}"')
    assert not broken.found()


def test_a_parent_beside_the_folder_is_known(tmp_path: Path) -> None:
    parent = Broken(tmp_path).change(TOML, "log_turns = 5", "log_turns = 4")
    child = Broken(tmp_path / "other").change(TOML, 'version = "v0"', 'version = "v1"')
    child.folder.rename(parent.folder.parent / "v1")
    child.folder = parent.folder.parent / "v1"
    child.change(TOML, 'parent = ""', f'parent = "{scaffold.load(str(parent.folder)).identity}"')
    assert not child.found()


def test_a_parent_that_only_a_run_has_is_known_and_of_another_the_remedy_is_a_command_that_helps(
    broken: Broken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOMEM_RUNS", raising=False)
    parent = write_version("crafter/gone", changes={"files/goals.txt": "other goals\n"})
    broken.change(TOML, 'parent = ""', f'parent = "{parent.identity}"')
    write_run("first", parent, {1: 0.5})
    shutil.rmtree(parent.folder.parent)
    assert not broken.found()
    shutil.rmtree("runs")
    assert "automem scaffold show REF" in broken.only("parent").do


def test_check_and_play_have_the_same_limit_of_a_line(broken: Broken) -> None:
    broken.add(TOML, f"# {'ä' * 1_200}\n")
    assert not broken.found()
    scaffold.load(str(broken.folder))
    # No end of a line in TOML, though Python's splitlines takes it for one.
    broken.add(TOML, f"# long {chr(0x2028).join(['ä' * 1_200] * 2)}\n")
    line = broken.line(TOML, "# long")
    finding = broken.only("toml")
    assert (finding.line, finding.message) == (line, "a line of more than 2000 characters")
    with pytest.raises(ScaffoldError, match=f":{line}: longer than 2000 characters"):
        scaffold.load(str(broken.folder))


@pytest.mark.parametrize(
    ("path", "text", "code", "line"),
    [
        ("files/sub/x.txt", "x", "initial-name", None),
        ("files/x y.txt", "x", "initial-name", None),
        ("files/extra.txt", "x", "initial-unplanned", None),
        ("files/map.txt", "1,2: coal\nno entry\n", "initial-map", 2),
    ],
)
def test_initial_files_are_ones_that_operations_could_have_made(
    broken: Broken, path: str, text: str, code: str, line: int | None
) -> None:
    broken.add(TOML, MAP).change(TOML, '"WRITE"', '"WRITE", "UPSERT"').write(path, text)
    finding = broken.only(code)
    assert (finding.file, finding.line) == (path, line)


def test_initial_files_fit_the_quota(broken: Broken) -> None:
    broken.change(TOML, "result_chars = 2000", "result_chars = 2000\nfile_bytes = 1000")
    broken.write("files/goals.txt", "x" * 1500)
    assert broken.only("initial-quota").file == "files/goals.txt"


def test_files_that_nothing_reads_are_told(broken: Broken) -> None:
    broken.write("helper.py", "x = 1").write("prompts/more.j2", "nothing")
    (broken.folder / "notes.md").unlink()
    assert {(f.file, f.code, f.severity) for f in broken.found()} == {
        ("helper.py", "unused-file", "warning"),
        ("prompts/more.j2", "template-unused", "warning"),
        ("notes.md", "no-notes", "warning"),
    }


def test_what_is_no_small_text_file_is_told_and_not_followed(broken: Broken, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (broken.folder / "files" / "link.txt").symlink_to(tmp_path / "secret.txt")
    (broken.folder / "files" / "folder").symlink_to(tmp_path)
    broken.write("files/large.txt", "x" * 300_000).write("files/goals.txt", b"one\n\xff\xfe\n")
    assert {(f.file, f.code, f.line) for f in broken.found() if f.severity == "error"} == {
        ("files/link.txt", "not-a-file", None),
        ("files/folder", "not-a-file", None),
        ("files/large.txt", "file-too-large", None),
        ("files/goals.txt", "not-utf8", 2),
    }
    assert check(str(broken.folder), smoke=False).identity is None
