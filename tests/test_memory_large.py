"""Large memory folders: still searched rightly, still fast, and no larger than what they hold."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest

from automem.memory import Limits, Memory
from tests.memory_folder import FILES, folder, run

__all__ = ["folder"]


@pytest.mark.parametrize("sign", ["", "ÄÖ"])
def test_many_lines_are_found_wherever_they_stand(sign: str) -> None:
    """The same as a plain search, over enough lines for many chunks, with lines removed in between."""
    memory = Memory(None, FILES, Limits(result_chars=100_000, search_results=10_000))
    held = [f"step {n}: tree{n % 7} and rock {n * n % 1000} at {n % 64},{n // 64} {sign}{n}" for n in range(6000)]
    for number, line in enumerate(held):
        run(memory, "APPEND", "notes.txt", line)
        run(memory, "UPSERT", "facts.txt", f"{number % 500}", line)
    for number in (3, 1500, 5999):
        run(memory, "DELETE", "notes.txt", held[number])
    left = [line for number, line in enumerate(held) if number not in (3, 1500, 5999)]
    assert memory.read("notes.txt") == "".join(f"{line}\n" for line in left)
    assert memory.read("facts.txt") == "".join(f"{n % 500}: {held[n]}\n" for n in range(5500, 6000))
    for query in (
        "step 42:",
        "42",
        "rock 25 at",
        "tree3 and rock 9",
        "ÄÖ77",
        "äö4321",
        "p 59",
        "ree6",
        "nothing",
        ",1",
        "5,9",
    ):
        for _ in range(2):
            expected = [line for line in left if query.lower() in line.lower()]
            result = run(memory, "SEARCH", "notes.txt", query)
            assert result.found == len(expected) if not result.truncated else result.found < len(expected)
            if expected:
                assert result.text.split("\n")[-1] == expected[-1]
            assert run(memory, "COUNT", "notes.txt", query).found == len(expected)
            latest = [n for n in range(5500, 6000) if query.lower() in f"{n % 500}: {held[n]}".lower()]
            assert run(memory, "COUNT", "facts.txt", query).found == len(latest)
            run(memory, "APPEND", "notes.txt", "one more line")
            left.append("one more line")
        if expected:
            run(memory, "DELETE", "notes.txt", expected[0])
            left.remove(expected[0])
            assert run(memory, "COUNT", "notes.txt", query).found == len(expected) - 1


def test_what_was_replaced_or_dropped_takes_no_room() -> None:
    memory = Memory(None, FILES)
    tracemalloc.start()
    try:
        for number in range(40_000):
            run(memory, "UPSERT", "facts.txt", f"{number}" if number % 400 == 0 else "here", f"value {number}")
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


def test_an_old_folder_is_as_fast_as_a_new_one(folder: Path) -> None:
    """A step's operations cost about the same after 300 and after 20,000 entries (a plain scan: 60 times more)."""
    memory = Memory(folder, FILES)
    written = 0

    def grow(entries: int) -> None:
        nonlocal written
        while written < entries:
            written += 1
            run(memory, "APPEND", "notes.txt", f"Step {written}, noop: you see grass, tree, water " + "and stone " * 20)

    def step() -> float:
        start = time.process_time()
        for _ in range(300):
            grow(written + 1)
            run(memory, "SEARCH", "notes.txt", "diamond")
            run(memory, "SEARCH", "notes.txt", "stone")
            run(memory, "COUNT", "notes.txt", "tree")
            run(memory, "TAIL", "notes.txt", "3")
            memory.flush()
        return time.process_time() - start

    young = min(step() for _ in range(3))
    grow(20_000)
    memory.flush()
    step()
    old = min(step() for _ in range(3))
    assert old < 4 * young
