"""A memory folder to test with, and how to use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from automem.memory import FileSpec, Memory, Result
from automem.ops import Op

FILES = (
    FileSpec("notes.txt", "log"),
    FileSpec("recent.txt", "log", max_lines=3),
    FileSpec("goals.txt", "note", pin=True),
    FileSpec("facts.txt", "map"),
    FileSpec("map_{block}.txt", "map", key="{x},{y}", block=8),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
def memory(folder: Path) -> Iterator[Memory]:
    with_files = Memory(folder, FILES)
    yield with_files
    with_files.close()


def run(memory: Memory, name: str, *args: str) -> Result:
    """Run an operation that must be accepted."""
    result = memory.run(Op(name, args))
    assert result.ok, result.text
    return result


def refused(memory: Memory, name: str, *args: str) -> str:
    """Run an operation that must be refused in one line and change nothing; what it answered."""
    before = memory.snapshot()
    result = memory.run(Op(name, args))
    assert not result.ok and result.bytes_added == 0 and "\n" not in result.text
    assert memory.snapshot() == before
    return result.text


def on_disk(folder: Path) -> dict[str, str]:
    return {path.name: path.read_bytes().decode() for path in sorted(folder.iterdir())}
