"""The memory folder: what operations do and answer, and what ends up on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from automem.memory import FileSpec, Memory
from automem.ops import OPERATIONS
from tests.memory_folder import FILES, folder, memory, on_disk, refused, run

__all__ = ["folder", "memory"]


def test_what_is_written_is_read_back_and_lies_on_disk(memory: Memory, folder: Path) -> None:
    run(memory, "APPEND", "notes.txt", "a tree | north")
    run(memory, "APPEND", "notes.txt", "two\nlines")
    run(memory, "WRITE", "goals.txt", "live")
    run(memory, "CREATE", "empty.txt")
    run(memory, "UPSERT", "facts.txt", "home", "3,4\nby the lake")
    assert memory.flush() == []
    assert (
        on_disk(folder)
        == memory.snapshot()
        == {
            "empty.txt": "",
            "facts.txt": "home: 3,4 by the lake\n",
            "goals.txt": "live\n",
            "notes.txt": "a tree | north\ntwo\nlines\n",
        }
    )
    assert memory.listing() == [("empty.txt", 0, 0), ("facts.txt", 1, 22), ("goals.txt", 1, 5), ("notes.txt", 3, 25)]
    assert run(memory, "READ", "notes.txt").text == "a tree | north\ntwo\nlines"
    assert run(memory, "TAIL", "notes.txt", "2").text == "two\nlines"
    assert memory.tail("notes.txt", 1) == ["lines"]
    assert memory.pinned() == [("goals.txt", "live")]


def test_search_ignores_case_and_shows_the_newest_last(memory: Memory) -> None:
    for line in ("Iron at 1", "coal at 2", "no IRON", "ironwood"):
        run(memory, "APPEND", "notes.txt", line)
    result = run(memory, "SEARCH", "notes.txt", "iRoN")
    assert (result.text, result.found) == ("Iron at 1\nno IRON\nironwood", 3)
    assert run(memory, "COUNT", "notes.txt", "iron").found == 3
    nothing = run(memory, "SEARCH", "notes.txt", "diamond")
    assert nothing.found == 0 and "diamond" in nothing.text


def test_search_of_every_file_shows_whose_line_it_is_in_the_order_of_writing(memory: Memory) -> None:
    run(memory, "UPSERT", "facts.txt", "tree", "old")
    run(memory, "APPEND", "notes.txt", "a tree")
    run(memory, "APPEND", "other.txt", "tree again")
    run(memory, "APPEND", "notes.txt", "the last tree")
    result = run(memory, "SEARCH", "*", "tree")
    assert result.text.split("\n") == [
        "facts.txt: tree: old",
        "notes.txt: a tree",
        "other.txt: tree again",
        "notes.txt: the last tree",
    ]
    assert run(memory, "COUNT", "*", "tree").found == 4


def test_a_map_keeps_one_line_a_key_and_what_changed_last_at_the_end(memory: Memory) -> None:
    run(memory, "UPSERT", "facts.txt", "a", "1")
    run(memory, "UPSERT", "facts.txt", "b", "2")
    changed = run(memory, "UPSERT", "facts.txt", "a", "345")
    assert changed.bytes_added == 2 and not changed.duplicate
    assert memory.read("facts.txt") == "b: 2\na: 345\n"
    same = run(memory, "UPSERT", "facts.txt", "b", "2")
    assert same.duplicate and same.bytes_added == 0
    assert memory.read("facts.txt") == "b: 2\na: 345\n"
    run(memory, "DELETE", "facts.txt", "b")
    run(memory, "DELETE", "facts.txt", "a: 345")
    assert memory.read("facts.txt") == ""


@pytest.mark.parametrize(
    ("x", "y", "name"),
    [(0, 0, "map_0_0.txt"), (7, 8, "map_0_1.txt"), (-1, -8, "map_-1_-1.txt"), (-9, 17, "map_-2_2.txt")],
)
def test_upsert_map_finds_the_block_of_a_coordinate(memory: Memory, x: int, y: int, name: str) -> None:
    run(memory, "UPSERT_MAP", f"{x},{y}", "water")
    assert memory.snapshot() == {name: f"{x},{y}: water\n"}


def test_upsert_map_without_a_coordinate_map_is_refused(folder: Path) -> None:
    memory = Memory(folder, [FileSpec("m.txt", "map", key="{level}:{x},{y}")])
    assert "no coordinate map" in refused(memory, "UPSERT_MAP", "1,2", "tree")


def test_maps_and_texts_are_not_mixed_up(memory: Memory) -> None:
    run(memory, "APPEND", "notes.txt", "x")
    assert "facts.txt, map_{block}.txt" in refused(memory, "UPSERT", "notes.txt", "k", "v")
    assert "is not a map" in refused(memory, "UPSERT", "own.txt", "k", "v")
    assert "<|UPSERT|>facts.txt|key|value<|END|>" in refused(memory, "APPEND", "facts.txt", "k: v")
    assert "key: value" in refused(memory, "WRITE", "facts.txt", "k: v\nno colon here")
    assert "cannot be a key" in refused(memory, "UPSERT", "facts.txt", "a: b", "c")
    run(memory, "WRITE", "facts.txt", "k: v\n\nl:\nk: w: x")
    assert memory.read("facts.txt") == "k: w: x\nl:\n"


def test_delete_removes_a_file_or_every_line_that_is_equal(memory: Memory, folder: Path) -> None:
    for line in ("a", "b", "a", "ab"):
        run(memory, "APPEND", "notes.txt", line)
    memory.flush()
    assert run(memory, "DELETE", "notes.txt", "a").bytes_added == -4
    assert memory.read("notes.txt") == "b\nab\n"
    assert 'has no line "a"' in refused(memory, "DELETE", "notes.txt", "a")
    assert memory.flush() == [] and on_disk(folder) == {"notes.txt": "b\nab\n"}
    run(memory, "DELETE", "notes.txt")
    assert memory.flush() == [] and on_disk(folder) == {} == memory.snapshot()
    refused(memory, "DELETE", "notes.txt")
    run(memory, "APPEND", "notes.txt", "new")
    assert memory.flush() == [] and on_disk(folder) == {"notes.txt": "new\n"}


def test_a_log_with_max_lines_drops_the_oldest_and_says_so(memory: Memory, folder: Path) -> None:
    for number in range(40):
        answer = run(memory, "APPEND", "recent.txt", f"line {number}").text
        assert ("dropped" in answer) == (number >= 3)
        memory.flush()
    assert on_disk(folder) == {"recent.txt": "line 37\nline 38\nline 39\n"}
    assert run(memory, "SEARCH", "recent.txt", "line").found == 3


def test_duplicates_are_told(memory: Memory) -> None:
    assert not run(memory, "APPEND", "notes.txt", "a tree").duplicate
    assert not run(memory, "APPEND", "notes.txt", "a Tree").duplicate
    assert not run(memory, "APPEND", "notes.txt", "a tree\nand more").duplicate
    assert run(memory, "APPEND", "notes.txt", "a tree").duplicate
    assert run(memory, "APPEND", "notes.txt", "and more\na tree").duplicate
    assert not run(memory, "APPEND", "goals.txt", "a tree").duplicate
    run(memory, "DELETE", "notes.txt", "a tree")
    assert not run(memory, "APPEND", "notes.txt", "a tree").duplicate


def test_reading_what_is_not_there_says_what_is(memory: Memory) -> None:
    run(memory, "CREATE", "a.txt")
    assert "there is no file b.txt. Files: a.txt" in refused(memory, "READ", "b.txt")
    # A file that the scaffold plans for is empty, not unknown.
    assert run(memory, "READ", "notes.txt").text == "(notes.txt is empty)"
    assert run(memory, "SEARCH", "notes.txt", "x").found == 0
    assert "already" in refused(memory, "CREATE", "a.txt")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "...", "a/b", "/a", "../a", "a\0", "a\n", "ä", "a b", "n" * 65, "*", "a~"]
)
def test_no_other_file_names_are_taken(memory: Memory, name: str) -> None:
    for operation in ("APPEND", "WRITE", "CREATE", "UPSERT"):
        refused(memory, operation, name, *("x", "y", "z")[: len(OPERATIONS[operation].args) - 1])


def test_text_that_would_break_a_terminal_or_utf8_is_replaced(memory: Memory, folder: Path) -> None:
    run(memory, "APPEND", "notes.txt", "a\x00b\x1b[31m\udc80c\r\nd\u2028e\tf ü")
    run(memory, "UPSERT", "facts.txt", "k\x07", "a\u2029b\rc")
    memory.flush()
    assert on_disk(folder) == {"notes.txt": "a\ufffdb\ufffd[31m\ufffdc\nd\ne\tf ü\n", "facts.txt": "k\ufffd: a b c\n"}
    assert all(text.splitlines() == text.split("\n")[:-1] for text in memory.snapshot().values())
    assert run(memory, "SEARCH", "notes.txt", "C").found == 1


def test_initial_files(folder: Path) -> None:
    memory = Memory(folder, FILES, initial={"goals.txt": "1. live\n\n2. prosper", "facts.txt": "a: b\n"})
    assert on_disk(folder) == {"goals.txt": "1. live\n\n2. prosper\n", "facts.txt": "a: b\n"}
    run(memory, "UPSERT", "facts.txt", "a", "c")
    assert memory.read("facts.txt") == "a: c\n"
    with pytest.raises(ValueError, match=r"initial memory file facts.txt: .*no colon"):
        Memory(None, FILES, initial={"facts.txt": "no colon"})
    with pytest.raises(ValueError, match="not a file name"):
        Memory(None, FILES, initial={"../x": ""})
