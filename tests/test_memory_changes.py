"""Files that take only what changed: what is left out, and that the model is told."""

from __future__ import annotations

import pytest

from automem import blocks
from automem.duplicates import Duplicates
from automem.memory import FileSpec, Memory
from automem.models.scripted.reading import read_briefing
from automem.ops import Op
from automem.records import Executed

STEPS = "{step}: {x},{y} {facing}, {action}: {seen}"


@pytest.fixture
def memory() -> Memory:
    files = (
        FileSpec("recent.txt", "log", entry=STEPS, changes=True, max_lines=3),
        FileSpec("plain.txt", "log", changes=True),
        FileSpec("now.txt", "note", entry="Step {step}: {status}", changes=True),
        FileSpec("log.txt", "log", entry=STEPS),
    )
    return Memory(None, files)


def append(memory: Memory, *lines: str, name: str = "recent.txt") -> None:
    for line in lines:
        assert memory.run(Op("APPEND", (name, line))).ok


def test_a_line_that_only_has_another_step_is_not_added_and_the_model_is_told(memory: Memory) -> None:
    append(memory, "3: 0,1 west, Noop: grass")
    answer = memory.run(Op("APPEND", ("recent.txt", "4: 0,1 west, Noop:  grass")))
    assert answer.ok and answer.duplicate and answer.bytes_added == 0
    assert "not added" in answer.text and "recent.txt" in answer.text
    append(memory, "5: 0,1 north, Noop: grass", "6: 0,1 west, Noop: grass")
    assert memory.read("recent.txt").splitlines() == [
        "3: 0,1 west, Noop: grass",
        "5: 0,1 north, Noop: grass",
        "6: 0,1 west, Noop: grass",
    ]


def test_what_is_not_added_counts_as_a_duplicate_write(memory: Memory) -> None:
    duplicates, found = Duplicates(), []
    # Numbers far from the step are no step numbers for the count, but the file knows its entry.
    for step, line in enumerate(("13: 0,1 west", "14: 0,1 west", "15: 0,2 west")):
        op = Op("APPEND", ("recent.txt", line))
        result = memory.run(op)
        executed = Executed(op.name, op.args, (0, 0), "", "", duplicate=result.duplicate, file="recent.txt")
        found.append(duplicates.seen(executed, step))
    assert found == [False, True, False]


def test_of_several_lines_those_that_repeat_are_left_out(memory: Memory) -> None:
    append(memory, "1: a")
    answer = memory.run(Op("APPEND", ("recent.txt", "2: a\n3: b\n4: b")))
    assert memory.read("recent.txt") == "1: a\n3: b\n"
    assert not answer.duplicate and "2 lines left out" in answer.text


def test_a_note_is_written_when_it_says_something_else(memory: Memory) -> None:
    assert not memory.run(Op("WRITE", ("now.txt", "Step 1: h9"))).duplicate
    again = memory.run(Op("WRITE", ("now.txt", "Step 2: h9")))
    assert again.ok and again.duplicate and "not written" in again.text
    assert memory.read("now.txt") == "Step 1: h9\n"
    memory.run(Op("WRITE", ("now.txt", "Step 3: h8")))
    assert memory.read("now.txt") == "Step 3: h8\n"


def test_numbers_that_are_no_steps_make_another_line(memory: Memory) -> None:
    append(memory, "3 wood", "4 wood", "wood at 3,4", "wood at 3,5", name="plain.txt")
    assert len(memory.read("plain.txt").splitlines()) == 4
    append(memory, "3: 0,1", "4: 0,2")
    assert len(memory.read("recent.txt").splitlines()) == 2


def test_other_files_take_everything(memory: Memory) -> None:
    append(memory, "3: 0,1 west", "4: 0,1 west", name="log.txt")
    assert len(memory.read("log.txt").splitlines()) == 2


def test_the_listing_says_it_and_the_scripted_player_reads_it() -> None:
    listed = blocks.file_reference(
        [FileSpec("recent.txt", "log", "the last steps", entry=STEPS, changes=True, pin=True), FileSpec("a.txt", "log")]
    )
    assert "[log, changes only, pinned]" in listed and "without a line changed nothing" in listed
    recent, other = read_briefing(listed).files
    assert (recent.changes, recent.pinned, recent.entry) == (True, True, STEPS)
    assert not other.changes
