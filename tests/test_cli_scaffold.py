"""``automem scaffold …`` as a person uses it: what is printed, what is left behind, and exit codes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from automem import child, cli, scaffold
from automem.lineage import Lineage, Version
from automem.scaffold_views import tree
from tests.commands import caller
from tests.versions import edit, write_run, write_version

FIRST, LATER = "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def automem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run ``automem scaffold`` in this process, in an empty folder; returns exit code and everything printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOMEM_RUNS", raising=False)

    call = caller(monkeypatch, capfd, "scaffold")

    def run(*arguments: str) -> tuple[int, str]:
        code, out, err = call(*arguments)
        return code, out + err

    return run


def test_every_command_has_help_with_an_example(automem: Command) -> None:
    for command in ("list", "show", "log", "diff", "new", "check"):
        code, said = automem(command, "--help")
        assert code == 0 and f"Example: automem scaffold {command}" in said


def test_a_child_is_a_copy_with_its_own_name_and_its_parents_identity(automem: Command, tmp_path: Path) -> None:
    code, said = automem("new", "crafter/mine", "--from", "crafter/v0")
    assert code == 0 and "automem eval crafter --scaffold crafter/mine" in said
    parent, made = scaffold.load("crafter/v0"), scaffold.load("crafter/mine")
    assert made.folder == tmp_path / "scaffolds/crafter/mine"
    assert (made.ref, made.schema.scaffold.parent) == ("crafter/mine", parent.identity)
    others = {path for path in parent.sources if path not in ("scaffold.toml", "notes.md")}
    assert all(made.sources[path] == parent.sources[path] for path in others)
    notes = made.sources["notes.md"].decode()
    assert re.findall("^##? (.*)", notes, re.M) == ["crafter/mine", "What changed", "Why", "Measured"]
    assert parent.identity in notes


def test_without_a_parent_it_is_the_games_v0(automem: Command) -> None:
    assert automem("new", "nethack/mine")[0] == 0
    assert scaffold.load("nethack/mine").schema.scaffold.parent == scaffold.load("nethack/v0").identity


def test_comments_and_layout_of_the_schema_stay(automem: Command) -> None:
    parent = write_version("crafter/a")
    toml = parent.folder / "scaffold.toml"
    text = toml.read_text().replace('parent = ""\n', 'parent   =   ""   # a root\n') + "\n# the end\n"
    toml.write_bytes(text.replace("\n", "\r\n").encode())
    assert automem("new", "crafter/b", "--from", "crafter/a")[0] == 0
    identity = scaffold.load("crafter/a").identity
    expected = text.replace('"a"', '"b"').replace('""   #', f'"{identity}"   #').replace("\n", "\r\n")
    assert scaffold.load("crafter/b").sources["scaffold.toml"].decode() == expected


def test_a_schema_without_a_parent_line_gets_one(automem: Command) -> None:
    parent = edit(write_version("crafter/a"), 'parent = ""\n', "")
    assert automem("new", "crafter/b", "--from", "crafter/a")[0] == 0
    assert scaffold.load("crafter/b").schema.scaffold.parent == parent.identity


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("crafter/new", "--from", "nethack/v0"), "plays nethack"),
        (("crafter/new", "--from", "crafter/nope"), "no scaffold 'crafter/nope'"),
        (("new",), "GAME/VERSION"),
        (("crafter/../../up",), "cannot name a version"),
        (("crafter/",), "cannot name a version"),
        (("crafter/a b",), "cannot name a version"),
        (("nogame/new",), "no scaffold 'nogame/v0'"),
        (("crafter/v0",), "is there already"),
        (("crafter/taken",), "is there already"),
        (("crafter/dangling",), "is there already"),
        (("crafter/played",), "run old has played another crafter/played"),
    ],
)
def test_what_cannot_be_made_is_refused_and_nothing_is_left(
    automem: Command, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    played = write_version("crafter/played")
    write_run("old", played, {1: 0.5})
    shutil.rmtree(played.folder)
    Path("scaffolds/crafter/taken").mkdir()
    Path("scaffolds/crafter/dangling").symlink_to("nowhere")
    before = sorted(tmp_path.rglob("*"))
    code, said = automem("new", *arguments)
    assert code == 2 and says in said and "Traceback" not in said
    assert sorted(tmp_path.rglob("*")) == before


def test_nothing_half_made_is_left_when_the_disk_refuses(
    automem: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(child.Path, "write_bytes", full)
    code, said = automem("new", "crafter/mine")
    assert code == 2 and "No space left" in said
    assert list(tmp_path.iterdir()) == []


def test_files_changed_after_evaluation_become_a_child_of_what_was_evaluated(automem: Command) -> None:
    played = write_version("crafter/a")
    write_run("first", played, {1: 0.5})
    edit(played, "log_turns = 5", "log_turns = 6")
    code, said = automem("new", "crafter/b", "--from", "crafter/a")
    assert code == 0
    made = scaffold.load("crafter/b")
    assert made.schema.scaffold.parent == played.identity and made.schema.limits.log_turns == 6
    command = next(line for line in said.splitlines() if "find " in line)
    subprocess.run(command, shell=True, check=True)
    assert scaffold.load("crafter/a").identity == played.identity


def test_a_changed_version_is_marked_in_list_show_and_log(automem: Command) -> None:
    played = write_version("crafter/a")
    write_run("first", played, {1: 0.5})
    assert "changed after" not in automem("list", "crafter")[1] + automem("log", "crafter")[1]
    edit(played, "log_turns = 5", "log_turns = 6")
    code, said = automem("list", "crafter")
    assert code == 0 and "changed after it was evaluated" in said and "1 more known only from runs" in said
    assert "changed" in automem("show", "crafter/a")[1]
    code, said = automem("log", "crafter")
    assert "changed after it was evaluated: first played other files" in said
    line = next(line for line in said.splitlines() if "only in" in line)
    assert played.identity[:12] in line and "runs/first/scaffolds/crafter/a" in line


def test_list_names_what_does_not_load_and_goes_on(automem: Command) -> None:
    write_version("crafter/good")
    (write_version("crafter/bad").folder / "scaffold.toml").write_text("[[[")
    code, said = automem("list", "crafter")
    assert code == 0 and "crafter/good" in said and "crafter/bad does not load" in said


@pytest.mark.parametrize("command", ["list", "log"])
def test_a_run_that_cannot_be_read_is_named(automem: Command, command: str) -> None:
    write_run("first", write_version("crafter/a"), {1: 0.5})
    assert "cannot be read" not in automem(command, "crafter")[1]
    Path("runs/first/run.toml").write_bytes(b"\xff")
    code, said = automem(command, "crafter")
    assert code == 0 and "runs/first/run.toml cannot be read" in said


def test_log_draws_each_version_below_its_parent_with_its_scores(automem: Command) -> None:
    root = scaffold.load("crafter/v0")
    one = write_version("crafter/one", root.identity)
    write_version("crafter/two", one.identity)
    write_version("crafter/orphan", "ab" * 32)
    write_run("a", root, {1: 0.2, 2: 0.3}, created=FIRST)
    write_run("b", one, {1: 0.4, 2: 0.5}, created=FIRST)
    write_run("c", one, {1: 0.4, 2: 0.5}, created=LATER)
    write_run("d", one, {1: 0.9}, model="scripted")
    code, said = automem("log", "crafter")
    assert code == 0
    lines = said.splitlines()
    starts = {
        ref: next(line for line in lines if f"crafter/{ref} " in line and "against" not in line)
        for ref in ("v0", "one", "two", "orphan")
    }
    depth = {ref: line.index("crafter/") for ref, line in starts.items()}
    assert depth["v0"] < depth["one"] < depth["two"]
    above = lines[lines.index(starts["orphan"]) - 1]
    assert "abababababab" in above and "not known here" in above
    assert any("some-model · crafter, 100 steps: 45.00 % [0.0, 100.0], 2 episodes, run c" in line for line in lines)
    assert any("run b (the same seeds as run c, not further evidence)" in line for line in lines)
    assert any("scripted (a program, not an LLM)" in line and "90.00 %" in line for line in lines)
    assert any("against crafter/v0: +20.00 [+20.0, +20.0] points on the same 2 episodes" in line for line in lines)


def test_log_of_another_game_is_refused_and_of_all_games_is_not(automem: Command) -> None:
    code, said = automem("log", "chess")
    assert code == 2 and "no scaffold plays 'chess'" in said
    code, said = automem("log")
    assert code == 0 and all(f"{game}/v0" in said for game in ("crafter", "minihack", "nethack"))


def test_a_lineage_in_a_circle_or_very_long_is_drawn() -> None:
    def version(identity: str, parent: str) -> Version:
        return Version(f"crafter/{identity}", identity, parent, Path("x"), current=False)

    chain = [version(f"v{i}", f"v{i - 1}" if i else "") for i in range(3000)]
    circle = [version("x", "y"), version("y", "x"), version("self", "self")]
    drawn, depth = tree(Lineage({v.identity: v for v in [*chain, *circle]}), "crafter", [])
    assert depth == 3000
    labels, waiting = [], [drawn]
    while waiting:
        node = waiting.pop()
        labels.append(str(node.label).split(" ")[0])
        waiting += node.children
    assert sorted(labels) == sorted(["crafter", "each", *(v.ref for v in [*chain, *circle])])


def test_a_long_lineage_does_not_squeeze_its_words(automem: Command) -> None:
    above = ""
    for i in range(14):
        above = write_version(f"crafter/generation-{i}", above).identity
    code, said = automem("log", "crafter")
    assert code == 0 and all(f"crafter/generation-{i}  " in said for i in range(14))


def test_show_tells_all(automem: Command) -> None:
    played = write_version("crafter/a", scaffold.load("crafter/v0").identity)
    (played.folder / "notes.md").write_text("# better\n[red]really[/red] \x1b[31m")
    write_run("first", played, {1: 0.5, 2: 0.5})
    code, said = automem("show", played.identity[:8])
    assert code == 0 and "\x1b" not in said
    for text in (
        played.identity,
        "made from crafter/v0",
        "log_turns 5",
        "READ, SEARCH",
        "map_notes.txt",
        "plan.j2",
        "50.00 % [50.0, 50.0], 2 episodes, run first",
        "[red]really[/red]",
    ):
        assert text in said, text


def test_what_turns_the_reading_direction_is_seen_in_show_list_and_log(automem: Command) -> None:
    played = write_version("crafter/a", changes={"notes.md": "first\nsafe \u202eknil\u2066"})
    write_run("first", played, {1: 0.5}, model="openai/\u202eledom")
    write_version("crafter/broken")
    Path("scaffolds/crafter/broken/scaffold.toml").write_text('[scaffold]\n"\u202egame" = 1\n')
    for command, sees in (
        (("show", "crafter/a"), ["safe \\u202eknil\\u2066", "openai/\\u202eledom"]),
        (("list", "crafter"), ["\\u202egame"]),
        (("log", "crafter"), ["openai/\\u202eledom"]),
    ):
        code, said = automem(*command)
        assert code == 0 and "\u202e" not in said and "\u2066" not in said
        assert all(text in said for text in sees)


def test_diff_explains_then_shows_and_writes_a_page(automem: Command, tmp_path: Path) -> None:
    write_version("crafter/a", scaffold.load("crafter/v0").identity)
    code, said = automem("diff", "crafter/v0", "crafter/a")
    assert code == 0 and said.index("is a child of crafter/v0") < said.index('+version = "a"')
    assert automem("diff", "crafter/v0", "crafter/a", "--side-by-side")[0] == 0
    code, said = automem("diff", "crafter/v0", "crafter/a", "--html", "d.html")
    assert code == 0 and "d.html" in said and "crafter/a" in (tmp_path / "d.html").read_text()
    (tmp_path / "mine.html").write_text("mine")
    code, said = automem("diff", "crafter/v0", "crafter/a", "--html", "mine.html")
    assert code == 2 and (tmp_path / "mine.html").read_text() == "mine"
    code, said = automem("diff", "crafter/v0", "crafter/nope")
    assert code == 2 and "no scaffold 'crafter/nope'" in said


def test_diff_of_what_a_run_played_against_what_is_there_now(automem: Command) -> None:
    played = write_version("crafter/a")
    write_run("first", played, {1: 0.5})
    edit(played, "log_turns = 5", "log_turns = 6")
    code, said = automem("diff", "runs/first", "crafter/a")
    assert code == 0 and "log_turns: 5 -> 6" in said and "changed in place" in said


def test_check_says_what_is_wrong_by_exit_code(automem: Command) -> None:
    played = write_version("crafter/a")
    assert automem("check", "crafter/a", "--no-smoke")[0] == 0
    write_run("first", played, {1: 0.5})
    assert automem("check", "runs/first", "--no-smoke")[0] == 0
    (played.folder / "prompts/plan.j2").write_text("{{ nonsense }}")
    code, said = automem("check", "crafter/a", "--no-smoke")
    assert code == 1 and "plan.j2:1" in said
    code, said = automem("check", "crafter/a", "--no-smoke", "--json")
    report = json.loads(said)
    assert code == 1 and report["errors"] == 1 and report["findings"][0]["file"] == "prompts/plan.j2"
    assert automem("check", "crafter/nope")[0] == 2


def test_a_changed_version_is_not_played_and_its_old_run_goes_on_with_its_own_copy(
    automem: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def evaluate(*arguments: str) -> int:
        played_briefly = ["--model", "scripted", "--seeds", "7", "--steps", "5", "--workers", "1"]
        monkeypatch.setattr(sys, "argv", ["automem", "eval", "crafter", *played_briefly, *arguments])
        try:
            cli.main()
        except SystemExit as end:
            return int(end.code or 0)
        return 0

    played = write_version("crafter/a")
    assert evaluate("--scaffold", "crafter/a", "--run", "first") == 0
    edit(played, "log_turns = 5", "log_turns = 6")
    Path("runs/first/episodes/Crafter/seed-7/episode.json").unlink()
    assert evaluate("--scaffold", "crafter/a", "--run", "second") == 2
    assert not Path("runs/second").exists()
    assert evaluate("--scaffold", "crafter/a", "--run", "first", "--resume") == 0
    assert Path("runs/first/episodes/Crafter/seed-7/episode.json").is_file()
