"""Each tool, asked as a model asks it: what it answers, what it refuses, and what it can never reach."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from automem import scaffold
from automem.models.protocol import ToolCall
from meta.candidate import sources
from meta.dialogue.calling import answer
from meta.dialogue.tool import PAGE, page_of
from meta.reviewers.llm.room import Room
from meta.reviewers.llm.tools import TOOLS
from tests.meta.reviewers.llm import setting

Ask = Callable[..., str]


@pytest.fixture
def room(loop: Path) -> Room:
    return Room(setting.evidence(loop), setting.desk(loop))


@pytest.fixture
def ask(room: Room) -> Ask:
    """Call a tool; the answer has to be one that a model and UTF-8 can take."""

    def once(tool: str, **arguments: Any) -> str:
        answered = asyncio.run(answer(TOOLS, room, ToolCall("1", tool, json.dumps(arguments))))
        answered.text.encode()
        assert len(answered.text) <= 2 * PAGE + 100
        return answered.text

    return once


def files(room: Room) -> dict[str, bytes]:
    place = room.desk.candidate
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_figures_of_runs_and_episodes(ask: Ask) -> None:
    told = ask("run_stats")
    assert "duplicate writes %" in told and "Crafter" in told
    assert "not finished" not in told
    assert "seed 4" in ask("episode_stats", seed=4)
    assert "choose one with task and seed: Crafter 3, Crafter 4" in ask("episode_stats")
    assert "no task is called 'chess'" in ask("episode_stats", task="chess")


def test_only_the_episodes_that_may_be_read_are_seen(ask: Ask) -> None:
    assert "Crafter: 3, 4" in ask("read_steps", run="1.1.0", seed=5)
    assert "not finished" not in ask("run_stats", run="1.1.0")
    assert "\n3\n4\n2 rows" in ask("sql", run="1.1.0", query="SELECT seed FROM episodes ORDER BY seed")
    compared = ask("compare_runs", b="1.1.0")
    assert "Crafter" in compared and "  2  " in compared


@pytest.mark.parametrize("name", ["..", "/etc", "tried", "held-out", "1.2.0", "", "9" * 5000])
def test_other_runs_cannot_be_named(ask: Ask, name: str) -> None:
    told = ask("run_stats", run=name)
    assert "there is no attempt" in told or "was not played" in told
    assert len(told) < 6000


def test_steps_in_short_and_in_full(ask: Ask) -> None:
    short = ask("read_steps", seed=3, start=1, count=2)
    assert "=== step 1" in short and "=== step 2" in short and "=== step 3" not in short
    assert "LOG 0" in short and "PLAN 0" in short and "ACTION" in short
    full = ask("read_steps", seed=3, start=1, count=2, full=True)
    assert "  prompt" in full and len(full) > len(short)
    assert "page=2 for more" in ask("read_steps", seed=3, count=20, full=True)
    assert "steps 0 to 39" in ask("read_steps", seed=3, start=40)
    assert "less than or equal to 50" in ask("read_steps", seed=3, count=5000)


def test_memory_at_a_step_and_between_steps(ask: Ask) -> None:
    whole = ask("memory_at", seed=3, step=10)
    assert "--- map_notes.txt" in whole
    one = ask("memory_at", seed=3, step=10, file="map_notes.txt")
    assert one in whole
    assert "there is no 'other.txt' at step 10" in ask("memory_at", seed=3, step=10, file="other.txt")
    told = ask("memory_diff", seed=3, from_step=5, to_step=7, file="map_notes.txt")
    assert "map_notes.txt: changed, 2 lines came, 0 went" in told
    assert ask("memory_diff", seed=3, from_step=5, to_step=5) == "Nothing changed."


def test_search_and_sql(ask: Ask) -> None:
    found = ask("search", pattern="grass", where=["observation"], limit=3)
    assert found.count("observation:") == 3 and "3 hits, and there may be more" in found
    assert "0 hits" in ask("search", pattern="no such words")
    assert "not a regular expression" in ask("search", pattern="(", regex=True)
    assert "cannot be searched" in ask("search", pattern="x", where=["secrets"])
    assert ask("sql", query="SELECT count(*) AS n, 1 AS one FROM steps").startswith("n\tone\n80\t1\n1 rows")
    for hostile in ("DROP TABLE episodes", "SELECT * FROM read_text('/etc/passwd')", "COPY episodes TO '/tmp/x'"):
        assert "the query was not run" in ask("sql", query=hostile)


def test_files_and_differences_of_versions(ask: Ask, room: Room) -> None:
    assert "prompts/log.j2" in ask("list_files")
    assert ask("read_file", path="prompts/log.j2", version="parent") == ask("read_file", path="prompts/log.j2")
    assert "has no file '../secret'" in ask("read_file", path="../secret")
    ask("replace_in_file", path="scaffold.toml", old="search_results = 100", new="search_results = 7")
    told = ask("diff")
    assert "search_results: 100 -> 7" in told and "+search_results = 7" in told
    assert "search_results: 7 -> 100" in ask("diff", old="candidate", new="1.1.0")
    ask("write_file", path="prompts/log.j2", text="{% if")
    told = ask("diff")
    assert "does not load" in told and "+{% if" in told


def test_notes_are_hidden_because_they_may_tell_what_is_held_out(ask: Ask, room: Room, tmp_path: Path) -> None:
    (room.desk.candidate / "notes.md").write_text("held-out: 12 %")
    for told in (
        ask("list_files"),
        ask("diff"),
        ask("read_file", path="notes.md"),
        ask("list_files", version="parent"),
    ):
        assert "12 %" not in told and "notes.md " not in told
    assert "not edited" in ask("write_file", path="notes.md", text="mine")


def test_the_lineage_and_earlier_attempts(ask: Ask, room: Room) -> None:
    assert "is the root" in ask("lineage")
    told = ask("attempts")
    assert "1.1.0: rejected; by rules, from this parent" in told and "1.2.0: failed" in told
    told = ask("read_attempt", number="1.1.0")
    assert "Logs grow." in told and "after 2 seeds: candidate minus parent -10.00 % progression" in told
    assert "nothing that is played differs" in told
    assert "There are parent, and the attempts 1.1.0, 1.2.0." in ask("read_attempt", number="7")


def test_a_child_knows_what_its_ancestors_changed(loop: Path) -> None:
    parent = scaffold.load("crafter/v1")
    given = setting.evidence(loop)
    room = Room(given.__class__("1.1.0", parent, given.run), setting.desk(loop))
    told = asyncio.run(answer(TOOLS, room, ToolCall("1", "lineage", "{}"))).text
    assert "was made from crafter/v0" in told and "memory files" in told
    identity = scaffold.load("crafter/v0").identity[:12]
    call = ToolCall("1", "list_files", json.dumps({"version": identity}))
    assert "scaffold.toml" in asyncio.run(answer(TOOLS, room, call)).text


def test_the_manual(ask: Ask) -> None:
    assert "{{ hooks.NAME }}" in ask("manual", topic="hooks api")
    assert "[[files]]" in ask("manual", topic="scaffold.toml")
    assert "there are: scaffold.toml, prompts, hooks, entries, hooks api, sql" in ask("manual", topic="cheats")


def test_editing_the_candidate(ask: Ask, room: Room) -> None:
    before = files(room)
    assert ask("write_file", path="hooks.py", text="class Hooks:\n    pass\n") == "hooks.py: created, 2 lines."
    assert ask("replace_in_file", path="hooks.py", old="pass", new="x = 1") == "hooks.py: replaced at line 2."
    assert files(room)["hooks.py"] == b"class Hooks:\n    x = 1\n"
    assert "stands in it 3 times" in ask("replace_in_file", path="hooks.py", old="s", new="t")
    assert "does not stand in it" in ask("replace_in_file", path="hooks.py", old="y", new="t")
    assert ask("delete_file", path="hooks.py") == "hooks.py: deleted."
    assert "has no hooks.py" in ask("delete_file", path="hooks.py")
    ask("write_file", path="prompts/log.j2", text="other")
    ask("write_file", path="files/new.txt", text="é\n")
    ask("restore_file", path="prompts/log.j2")
    assert "the parent has no files/new.txt" in ask("restore_file", path="files/new.txt")
    assert files(room) == before | {"files/new.txt": "é\n".encode()}


def test_a_restored_scaffold_toml_keeps_its_own_name(ask: Ask, room: Room) -> None:
    before = scaffold.load(str(room.desk.candidate)).identity
    ask("replace_in_file", path="scaffold.toml", old="search_results = 100", new="search_results = 7")
    assert scaffold.load(str(room.desk.candidate)).identity != before
    ask("restore_file", path="scaffold.toml")
    assert scaffold.load(str(room.desk.candidate)).identity == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('game = "crafter"', 'game = "nethack"'),
        ('version = "candidate"', 'version = "v0"'),
        ("[scaffold]", "[scaffold]\nparents = 1"),
        ("[scaffold]", "[scaffolds]"),
        ("[scaffold]", "[scaffold"),
        ("[scaffold]", "[scaffold]\n" + ".".join(["a"] * 5000) + " = 1"),
    ],
)
def test_the_identity_of_the_candidate_stays(ask: Ask, room: Room, old: str, new: str) -> None:
    before = files(room)
    assert "scaffold.toml: not written" in ask("replace_in_file", path="scaffold.toml", old=old, new=new)
    assert "cannot be deleted" in ask("delete_file", path="scaffold.toml")
    assert files(room) == before


HOSTILE = [
    "", ".", "..", "/etc/passwd", "../escaped", "prompts/../../escaped", "files/../escaped", "files/a/b.txt",
    "prompts/", "prompts/.hidden.j2", "prompts/x.py", "files/.hidden", "files/a b", "hooks.py/x", "hooks.pyc",
    "scaffold.toml\x00", "files/x\ny", "files/" + "a" * 65, "prompts/" + "a" * 500 + ".j2", "./hooks.py", "Hooks.py",
    "files/\u202etxt", "~/x", "prompts\\log.j2", "__pycache__/hooks.py", "setup.py", "files//x", "prompts/log.j2/",
    "transcript.jsonl",
]  # fmt: skip


@pytest.mark.parametrize("path", HOSTILE)
def test_no_other_file_is_written_read_or_deleted(ask: Ask, room: Room, path: str) -> None:
    before, around = files(room), sorted(room.desk.folder.parent.rglob("*"))
    for tool, more in (("write_file", {"text": "x"}), ("replace_in_file", {"old": "a", "new": "b"})):
        assert "is no file of a scaffold" in ask(tool, path=path, **more)
    assert "is no file of a scaffold" in ask("delete_file", path=path)
    assert "is no file of a scaffold" in ask("restore_file", path=path)
    assert "has no file" in ask("read_file", path=path)
    assert files(room) == before
    assert sorted(room.desk.folder.parent.rglob("*")) == around


def test_links_are_not_followed(ask: Ask, room: Room, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "log.j2").write_text("secret")
    (room.desk.candidate / "hooks.py").symlink_to(secret / "log.j2")
    assert "link" in ask("write_file", path="hooks.py", text="x")
    assert "link" in ask("replace_in_file", path="hooks.py", old="secret", new="x")
    assert "has no file" in ask("read_file", path="hooks.py")
    files_ = room.desk.candidate / "files"
    for path in files_.iterdir():
        path.unlink()
    files_.rmdir()
    files_.symlink_to(secret)
    assert "link" in ask("write_file", path="files/log.j2", text="x")
    assert "link" in ask("delete_file", path="files/log.j2")
    assert (secret / "log.j2").read_text() == "secret"
    assert [path.name for path in secret.iterdir()] == ["log.j2"]


def test_what_no_file_can_hold_is_refused(ask: Ask, room: Room) -> None:
    before = files(room)
    assert "text: Input should be a valid string" in ask("write_file", path="hooks.py", text="x\ud800")
    assert "at most 262144" in ask("write_file", path="hooks.py", text="é" * 150_000)
    for number in range(600):
        told = ask("write_file", path=f"files/f{number}.txt", text="")
        if "created" not in told:
            break
    assert "at most 500 files" in told
    assert set(before) < set(files(room))


def test_finishing_needs_a_structural_change_that_passes_the_checker(ask: Ask, room: Room) -> None:
    done = {"analysis": setting.GOOD_ANALYSIS, "description": "A better prompt"}
    assert "plays exactly as its parent" in ask("finish", **done)
    log = files(room)["prompts/log.j2"].decode()
    ask("write_file", path="prompts/log.j2", text=f"{log}\nBe careful.")
    assert "only wording has changed" in ask("finish", **done)
    ask("write_file", path="prompts/log.j2", text=f"{log}{{{{ nonsense }}}}")
    assert "prompts/log.j2" in ask("finish", **done) and room.finished is None
    ask("write_file", path="prompts/log.j2", text=f"{log}{{{{ task }}}}")
    assert "one line" in ask("finish", **{**done, "description": "two\nlines of it"})
    assert "analysis" in ask("finish", description="A better prompt")
    assert ask("finish", **done) == "Finished. Structural changes: prompts/log.j2."
    assert room.finished == ("A better prompt", setting.GOOD_ANALYSIS)


def test_the_checker_is_asked_again_only_after_an_edit(ask: Ask, room: Room) -> None:
    done = {"analysis": setting.GOOD_ANALYSIS, "description": "Fewer results"}
    checked = room.desk.check
    assert isinstance(checked, setting.Checked)
    ask("replace_in_file", path="scaffold.toml", old="search_results = 100", new="search_results = 7")
    assert "0 errors" in ask("check")
    ask("replace_in_file", path="scaffold.toml", old="log_turns", new="log_turn")
    assert "Finished" not in ask("finish", **done)
    assert checked.times == 2
    ask("replace_in_file", path="scaffold.toml", old="log_turn ", new="log_turns ")
    ask("check")
    assert "Finished" in ask("finish", **done)
    assert checked.times == 3


def test_files_that_were_played_before_are_not_handed_in_again(loop: Path) -> None:
    given = setting.evidence(loop)
    tried = given.attempts[0].candidate / "scaffold.toml"
    tried.write_text(tried.read_text().replace("search_results = 100", "search_results = 20"))
    room = Room(given, setting.desk(loop))
    for tool, arguments in (setting.structural(), setting.finish()):
        told = asyncio.run(answer(TOOLS, room, ToolCall("1", tool, json.dumps(arguments)))).text
    assert "the same files were played as attempt 1.1.0: rejected" in told


def test_tools_are_offered_with_schemas_that_say_what_they_take() -> None:
    for tool in TOOLS.values():
        function = tool.offered["function"]
        assert function["description"] and function["parameters"]["type"] == "object"
        for name, field in function["parameters"]["properties"].items():
            assert field["description"], f"{tool.name}.{name}"


@given(st.text(alphabet=st.sampled_from("ab\n é"), max_size=40_000))
def test_pages_put_together_are_the_whole_text(text: str) -> None:
    if len(text) <= PAGE:
        text = text * (1 + 3 * PAGE // max(1, len(text)))
    parts, page = [], 1
    while True:
        shown = page_of(text, page)
        assert len(shown) <= PAGE + 100
        if len(text) <= PAGE:
            parts.append(shown)
            break
        body, _, note = shown.rpartition("\n(page ")
        parts.append(body)
        if "the last one" in note:
            break
        page += 1
    assert "".join(parts) == text
    assert "There is no page" in page_of(text, page + 1)


def test_a_candidate_is_made_from_the_parent_files(loop: Path) -> None:
    parent = scaffold.load(setting.PARENT)
    made = sources(parent, parent, "candidate")
    room = Room(setting.evidence(loop), setting.desk(loop))
    assert files(room) == made
