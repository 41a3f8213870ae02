"""The limits of the memory folder: what is cut, what is refused, and that nothing is lost by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from automem.memory import FileSpec, Limits, Memory
from automem.ops import Op
from tests.memory_folder import FILES, folder, refused, run

__all__ = ["folder"]


@pytest.mark.parametrize("chars", [1, 20, 60, 100, 500])
def test_no_result_is_longer_than_the_limit(chars: int) -> None:
    memory = Memory(None, FILES, Limits(result_chars=chars))
    for number in range(50):
        run(memory, "APPEND", "notes.txt", f"entry {number} " + "x" * (number * 7 % 90))
        run(memory, "CREATE", f"file-number-{number}")
    long = "y" * 500
    for op in (
        *(Op(name, ("notes.txt",)) for name in ("READ", "CREATE")),
        *(Op("TAIL", ("notes.txt", n)) for n in ("1", "3", "999999999")),
        *(Op("SEARCH", (name, query)) for name in ("notes.txt", "*") for query in ("entry", "7", "none")),
        *(Op("COUNT", (name, "e" * n)) for name in ("notes.txt", "*") for n in (1, 500)),
        *(Op(name, ("nowhere", long)) for name in ("SEARCH", "UPSERT", "DELETE", long)),
        *(Op(long, (long,)), Op("READ", (long,)), Op("READ", ("missing",)), Op("APPEND", ("notes.txt", long))),
    ):
        result = memory.run(op)
        assert len(result.text) <= chars, op
        assert len(memory.pinned()) == 0


def test_a_long_file_is_read_from_its_newest_end_with_a_note(folder: Path) -> None:
    memory = Memory(folder, FILES, Limits(result_chars=200))
    for number in range(100):
        run(memory, "APPEND", "goals.txt", f"this is line number {number}")
    result = run(memory, "READ", "goals.txt")
    note, *shown = result.text.split("\n")
    assert result.truncated and len(result.text) <= 200
    assert note == f"[the newest {len(shown)} of 100 lines; 200 characters are shown at most]"
    assert shown == [f"this is line number {number}" for number in range(100 - len(shown), 100)]
    # One more line would not have fit.
    assert len(result.text) + len("\nthis is line number 90") > 200
    assert memory.pinned() == [("goals.txt", result.text)]
    short = run(memory, "TAIL", "goals.txt", "3")
    assert not short.truncated and short.text.count("\n") == 2


def test_a_line_that_does_not_fit_is_cut(folder: Path) -> None:
    memory = Memory(folder, FILES, Limits(result_chars=100))
    run(memory, "APPEND", "notes.txt", "start " + "x" * 200 + " needle " + "y" * 200 + " end")
    read = run(memory, "READ", "notes.txt")
    assert read.text.endswith("y end") and len(read.text) <= 100 and read.truncated
    found = run(memory, "SEARCH", "notes.txt", "NEEDLE")
    assert "needle" in found.text and found.found == 1 and found.truncated


def test_search_shows_at_most_so_many_lines(folder: Path) -> None:
    memory = Memory(folder, FILES, Limits(search_results=4))
    for number in range(9):
        run(memory, "APPEND", "notes.txt", f"tree {number}")
        result = run(memory, "SEARCH", "notes.txt", "tree")
        assert result.found == min(number + 1, 4) and result.truncated == (number >= 4)
    assert result.text == "[the newest 4 matches; older ones are not shown]\ntree 5\ntree 6\ntree 7\ntree 8"
    assert run(memory, "COUNT", "notes.txt", "tree").found == 9


def test_quotas_refuse_and_keep_what_is_there(folder: Path) -> None:
    memory = Memory(folder, FILES, Limits(max_files=3, file_bytes=20, total_bytes=45))
    run(memory, "APPEND", "notes.txt", "x" * 19)
    assert "20 of 20 bytes" in refused(memory, "APPEND", "notes.txt", "y")
    assert "nothing was changed" in refused(memory, "WRITE", "notes.txt", "y" * 20)
    assert "nothing was changed" in refused(memory, "WRITE", "notes.txt", "ü" * 10)
    run(memory, "UPSERT", "facts.txt", "k", "v" * 16)
    refused(memory, "UPSERT", "facts.txt", "k", "v" * 17)
    refused(memory, "UPSERT", "facts.txt", "l", "v")
    assert "memory holds 40 of 45 bytes" in refused(memory, "APPEND", "more.txt", "12345")
    run(memory, "APPEND", "more.txt", "1234")
    assert "3 files already" in refused(memory, "CREATE", "fourth.txt")
    # What shrinks or stays is never refused, and room that was made can be used.
    run(memory, "UPSERT", "facts.txt", "k", "w" * 16)
    run(memory, "WRITE", "notes.txt", "short")
    run(memory, "APPEND", "more.txt", "12345")
    run(memory, "DELETE", "facts.txt")
    run(memory, "CREATE", "fourth.txt")
    run(memory, "APPEND", "fourth.txt", "x" * 19)


def test_limits_must_make_sense() -> None:
    with pytest.raises(ValueError, match="result_chars"):
        Limits(result_chars=0)


def test_a_log_that_drops_its_oldest_lines_does_not_use_up_the_folder() -> None:
    memory = Memory(None, [FileSpec(name="log.txt", kind="log", max_lines=2)], Limits(total_bytes=1000))
    results = [memory.run(Op("APPEND", ("log.txt", f"a line of twenty: {i:03}"))) for i in range(500)]
    assert all(result.ok for result in results)
    assert sum(result.bytes_added for result in results) == memory.size("log.txt") == 44
