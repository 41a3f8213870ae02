"""What hooks may read of the memory folder in one call: everything they need, and nothing that keeps others waiting."""

from __future__ import annotations

import time

import pytest

from automem.hooks.reading import READ_CHARS, Reader
from automem.memory import Memory
from automem.ops import Op


@pytest.fixture(scope="module")
def large() -> Memory:
    """A folder with a long file and a short one."""
    memory = Memory(None)
    for part in range(12):
        memory.run(Op("WRITE" if not part else "APPEND", ("long.txt", f"a line of part {part}\n" * 19_000)))
    memory.run(Op("APPEND", ("short.txt", "one\ntwo Tree\nthree tree")))
    return memory


def test_answers_are_as_documented(large: Memory) -> None:
    reader = Reader(large)
    assert reader.answer("read", ["short.txt"]) == "one\ntwo Tree\nthree tree\n" and reader.answer("read", ["no"]) == ""
    assert reader.answer("tail", ["short.txt", 2]) == ["two Tree", "three tree"]
    assert reader.answer("tail", ["short.txt", 0]) == reader.answer("tail", ["no", 3]) == []
    assert reader.answer("search", ["short.txt", "TREE"]) == ["two Tree", "three tree"]
    assert reader.answer("search", ["short.txt", ""]) == ["one", "two Tree", "three tree"]
    assert [name for name, _, _ in reader.answer("files", [])] == ["long.txt", "short.txt"]
    assert reader.answer("tail", ["long.txt", 1]) == ["a line of part 11"]


@pytest.mark.parametrize(
    "question",
    [("read", ["long.txt"]), ("tail", ["long.txt", 10**9]), ("search", ["long.txt", "line"]), ("files", [])],
    ids=lambda question: question[0],
)
def test_however_often_it_asks_it_reads_no_more_than_its_share(large: Memory, question: tuple[str, list]) -> None:
    reader, answered, began = Reader(large), 0, time.process_time()
    with pytest.raises(ValueError, match="a call may read"):
        for _ in range(READ_CHARS):
            reader.answer(*question)
            answered += 1
    for _ in range(1000):
        with pytest.raises(ValueError, match="a call may read"):
            reader.answer(*question)
    assert answered <= 16_000 and time.process_time() - began < 5


@pytest.mark.parametrize(
    ("question", "args"),
    [
        ("search", ["short.txt", "x" * 2000]),
        ("tail", ["short.txt", "3"]),
        ("tail", ["short.txt", True]),
        ("open", ["a"]),
    ],
)
def test_nonsense_is_refused(large: Memory, question: str, args: list) -> None:
    with pytest.raises(ValueError, match=r"characters at most|cannot answer"):
        Reader(large).answer(question, args)
