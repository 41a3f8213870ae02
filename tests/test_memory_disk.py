"""The memory folder on disk: what is written, what somebody else does to it, and what happens when it is full."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from automem.memory import Memory, MemoryWriteFailed
from tests.memory_folder import folder, memory, on_disk, refused, run

__all__ = ["folder", "memory"]


def test_the_folder_must_be_empty_unless_it_may_be_replaced(folder: Path) -> None:
    folder.mkdir()
    (folder / "old.txt").write_text("old")
    with pytest.raises(MemoryWriteFailed, match="not empty"):
        Memory(folder)
    assert on_disk(folder) == {"old.txt": "old"}
    Memory(folder, initial={"new.txt": "new"}, replace=True)
    assert on_disk(folder) == {"new.txt": "new\n"}


def test_appending_writes_new_bytes_only(memory: Memory, folder: Path) -> None:
    run(memory, "APPEND", "notes.txt", "one")
    memory.flush()
    before = (folder / "notes.txt").stat().st_ino
    run(memory, "APPEND", "notes.txt", "two")
    memory.flush()
    assert (folder / "notes.txt").stat().st_ino == before
    assert on_disk(folder) == {"notes.txt": "one\ntwo\n"}


@pytest.mark.parametrize("lines", [10, 10_000])
def test_a_rewritten_file_is_the_new_one_to_the_last_byte(memory: Memory, folder: Path, lines: int) -> None:
    for text in ("long " * 10, "short", "longer " * 20):
        run(memory, "WRITE", "goals.txt", "\n".join([text] * lines))
        assert memory.flush() == []
        assert on_disk(folder) == memory.snapshot()


def changed_file(path: Path) -> None:
    path.write_text("something else entirely\n")


def file_of_same_size(path: Path) -> None:
    path.write_text("eno\n")
    os.utime(path, ns=(1, 1))


def twin(path: Path) -> None:
    times = path.stat()
    twin = path.with_name("twin")
    twin.write_text("x" * (times.st_size - 1) + "\n")
    os.utime(twin, ns=(times.st_atime_ns, times.st_mtime_ns))
    twin.rename(path)


def removed_file(path: Path) -> None:
    path.unlink()


def link_to_a_secret(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent.parent / "secret.txt")


def hard_link_to_a_secret(path: Path) -> None:
    path.unlink()
    path.hardlink_to(path.parent.parent / "secret.txt")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "attack", [changed_file, file_of_same_size, twin, removed_file, link_to_a_secret, hard_link_to_a_secret, pipe]
)
@pytest.mark.parametrize("name", ["notes.txt", "facts.txt"])
@pytest.mark.parametrize("write", [True, False])
def test_what_somebody_else_did_is_told_and_undone(
    memory: Memory, folder: Path, attack, name: str, write: bool
) -> None:
    secret = folder.parent / "secret.txt"
    secret.write_text("secret\n")
    run(memory, "APPEND", "notes.txt", "one")
    run(memory, "UPSERT", "facts.txt", "one", "1")
    memory.flush()
    attack(folder / name)
    if write:
        run(memory, "APPEND", "notes.txt", "two")
        run(memory, "UPSERT", "facts.txt", "two", "2")
    assert "secret" not in run(memory, "READ", name).text
    (warning,) = memory.flush()
    assert name in warning and "someone else" in warning
    assert on_disk(folder) == memory.snapshot()
    assert not (folder / name).is_symlink()
    assert secret.read_text() == "secret\n"
    assert memory.flush() == []


def test_in_a_large_folder_every_file_that_is_written_is_looked_at(memory: Memory, folder: Path) -> None:
    for number in range(100):
        run(memory, "APPEND", f"{number}.txt", "one")
    memory.flush()
    for number in (0, 33, 99):
        (folder / f"{number}.txt").write_text("changed\n")
        run(memory, "APPEND", f"{number}.txt", "two")
        (warning,) = memory.flush()
        assert warning.startswith(f"{number}.txt")
        assert on_disk(folder) == memory.snapshot()
    (folder / "50.txt").write_text("changed\n")
    assert [line for _ in range(10) for line in memory.flush()] == [
        "50.txt was changed by someone else; written again as the agent knows it"
    ]


def test_a_file_that_somebody_puts_there_is_told_once_and_never_read(memory: Memory, folder: Path) -> None:
    (folder / "planted.txt").write_text("dig here\n")
    (folder / "link.txt").symlink_to("/etc/passwd")
    warnings = memory.flush()
    assert len(warnings) == 2 and "planted.txt" in warnings[1] and "link.txt" in warnings[0]
    assert memory.flush() == [] and memory.listing() == []
    refused(memory, "READ", "planted.txt")
    run(memory, "APPEND", "link.txt", "mine")
    memory.flush()
    assert (folder / "link.txt").read_text() == "mine\n" and not (folder / "link.txt").is_symlink()


def test_a_folder_that_was_removed_is_written_again(memory: Memory, folder: Path) -> None:
    run(memory, "APPEND", "notes.txt", "one")
    memory.flush()
    (folder / "notes.txt").unlink()
    folder.rmdir()
    (warning,) = memory.flush()
    assert "removed by someone else" in warning
    assert on_disk(folder) == {"notes.txt": "one\n"}


def test_another_folder_or_link_in_its_place_is_never_written_to(memory: Memory, folder: Path, tmp_path: Path) -> None:
    run(memory, "APPEND", "notes.txt", "one")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder.rename(tmp_path / "moved")
    folder.symlink_to(elsewhere)
    with pytest.raises(MemoryWriteFailed, match="in its place"):
        memory.flush()
    assert list(elsewhere.iterdir()) == []
    folder.unlink()
    (tmp_path / "moved").rename(folder)
    memory.flush()
    assert on_disk(folder) == {"notes.txt": "one\n"}
    with pytest.raises(MemoryWriteFailed, match="link"):
        link = tmp_path / "link"
        link.symlink_to(folder)
        Memory(link, replace=True)
    assert on_disk(folder) == {"notes.txt": "one\n"}


FULL = 10_000
"""Bytes beyond which no file can grow on a disk that is full."""


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """No file can grow beyond `FULL` bytes: to a writer, a disk that is full.

    A fixture would hold the limit until the test's outcome is printed, and where output goes to a file (a build
    server's log), that file could not grow either.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(("name", "operation"), [("notes.txt", "APPEND"), ("facts.txt", "UPSERT")])
def test_a_full_disk_is_told_and_loses_nothing(memory: Memory, folder: Path, name: str, operation: str) -> None:
    keyed = ("key",) if operation == "UPSERT" else ()
    run(memory, operation, name, *keyed, "small")
    memory.flush()
    before = on_disk(folder)
    run(memory, operation, name, *(("other",) if keyed else ()), "x" * 2 * FULL)
    with full_disk():
        for _ in range(2):
            with pytest.raises(MemoryWriteFailed, match=f"{name}.*too large") as failure:
                memory.flush()
            assert isinstance(failure.value, OSError) and failure.value.path == folder / name
            # Not half a line, not a temporary file; what could be written lies there as it was.
            assert on_disk(folder) == before
    assert memory.flush() == []
    assert on_disk(folder) == memory.snapshot()


def test_a_disk_that_is_full_from_the_start_is_told(tmp_path: Path) -> None:
    with full_disk(), pytest.raises(MemoryWriteFailed, match=r"a\.txt"):
        Memory(tmp_path / "memory", initial={"a.txt": "x" * 2 * FULL})
