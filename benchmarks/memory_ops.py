"""What a memory operation costs as files grow: ``python -m benchmarks.memory_ops``.

Fills a log with verbatim notes (about 470 characters a line), a log with short ones and a map,
each to 100, 10,000 and 100,000 entries, and times every operation there, the folder on disk
included. An operation that gets slower with the age of an episode shows as a row that grows.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from automem.memory import FileSpec, Memory
from automem.ops import Op, parse

ENTRIES = (100, 10_000, 100_000)
REPEATS = 200
FILES = (
    FileSpec("notes.txt", "log"),
    FileSpec("short.txt", "log"),
    FileSpec("map.txt", "map", key="a landmark"),
    FileSpec("blocks_{block}.txt", "map", key="{x},{y}", block=8),
)
THINGS = ("grass", "tree", "water", "stone", "coal", "zombie", "table", "sand", "path", "cow")


def note(step: int, rng: random.Random) -> str:
    """A verbatim observation on one line, about 470 characters."""
    seen = ", ".join(f"{rng.choice(THINGS)} {rng.randint(1, 9)} steps to your north-west" for _ in range(14))
    return f"Step {step}, move_left: You see: {seen}"


def filled(folder: Path, entries: int) -> Memory:
    """A memory folder with this many entries in each of three files, level on disk."""
    rng = random.Random(entries)
    memory = Memory(folder, FILES)
    for step in range(entries):
        memory.run(Op("APPEND", ("notes.txt", note(step, rng))))
        memory.run(Op("APPEND", ("short.txt", f"{step} {rng.choice(THINGS)} at {step % 64},{step // 64}")))
        memory.run(Op("UPSERT", ("map.txt", f"{step % 317},{step // 317}", rng.choice(THINGS))))
    memory.flush()
    return memory


def microseconds(operation: Callable[[], object], repeats: int = REPEATS) -> tuple[float, float]:
    """Median and 99th percentile of one call, in microseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        operation()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


def cases(memory: Memory, entries: int) -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    rng = random.Random(1)
    numbers = count(entries)
    reply = f"I note what I see.\n<|APPEND|>notes.txt|{note(entries, rng)}<|END|>\n<|SEARCH|>notes.txt|diamond<|END|>"

    def run(name: str, *args: str) -> Callable[[], object]:
        op = Op(name, args)
        return lambda: memory.run(op)

    def append() -> None:
        memory.run(Op("APPEND", ("notes.txt", note(next(numbers), rng))))

    def append_and_flush() -> None:
        append()
        memory.flush()

    def step() -> None:
        append()
        memory.run(Op("SEARCH", ("notes.txt", "diamond")))
        memory.flush()
        memory.listing()

    def block_and_flush() -> None:
        x, y = rng.randint(0, 63), rng.randint(0, 63)
        memory.run(Op("UPSERT_MAP", (f"{x},{y}", f"{rng.choice(THINGS)} {next(numbers)}")))
        memory.flush()

    def flat_and_flush() -> None:
        memory.run(Op("UPSERT", ("map.txt", f"{rng.randint(0, 316)},0", f"sand {next(numbers)}")))
        memory.flush()

    return {
        "parse a reply": lambda: parse(reply, "log"),
        "APPEND 470 characters (with making them)": append,
        "APPEND, flush": append_and_flush,
        "APPEND, SEARCH a new word, flush, listing": step,
        "SEARCH a word in every line": run("SEARCH", "notes.txt", "zombie"),
        "SEARCH a word in no line": run("SEARCH", "notes.txt", "diamond"),
        "SEARCH a line, a new one each time": lambda: memory.run(
            Op("SEARCH", ("notes.txt", f"step {rng.randrange(entries)},"))
        ),
        "SEARCH words that are never together": lambda: memory.run(
            Op("SEARCH", ("notes.txt", f"table {rng.randint(1, 9)} steps to your {next(numbers)}"))
        ),
        "SEARCH such words, the same each time": run("SEARCH", "notes.txt", "tree your to"),
        "SEARCH every file": run("SEARCH", "*", "table"),
        "TAIL 3": run("TAIL", "notes.txt", "3"),
        "READ": run("READ", "short.txt"),
        "COUNT a word in every line": run("COUNT", "notes.txt", "zombie"),
        "UPSERT": lambda: memory.run(Op("UPSERT", ("map.txt", f"{rng.randint(0, 316)},0", f"sand {next(numbers)}"))),
        "UPSERT, SEARCH the map": lambda: (
            memory.run(Op("UPSERT", ("map.txt", f"{rng.randint(0, 316)},0", f"sand {next(numbers)}"))),
            memory.run(Op("SEARCH", ("map.txt", "diamond"))),
        ),
        "UPSERT_MAP in blocks of 8x8, flush": block_and_flush,
        "UPSERT in one flat map, flush": flat_and_flush,
        "flush, nothing new": memory.flush,
        "listing": memory.listing,
    }


def main() -> None:
    """Measure and print the table."""
    rows: dict[str, list[tuple[float, float]]] = {}
    for entries in ENTRIES:
        with tempfile.TemporaryDirectory() as folder:
            memory = filled(Path(folder) / "memory", entries)
            memory.run(Op("COUNT", ("notes.txt", "zombie")))
            for name, operation in cases(memory, entries).items():
                memory.flush()
                # A flat map is written as a whole, which takes as long as it is: few repeats.
                rows.setdefault(name, []).append(microseconds(operation, 20 if "flat" in name else REPEATS))
            memory.close()
    print(
        f"{'microseconds, median (99th percentile)':44}"
        + "".join(f"{f'{entries:,} entries':>22}" for entries in ENTRIES)
    )
    for name, figures in rows.items():
        print(f"{name:44}" + "".join(f"{f'{median:,.1f} ({high:,.0f})':>22}" for median, high in figures))


if __name__ == "__main__":
    main()
