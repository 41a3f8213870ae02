"""The memory folder on disk: written to, watched, never trusted.

Everything goes through one open directory, so that a folder or file that is swapped for a
symbolic link in the middle of an episode is never followed. What somebody else changed is
told, and written anew from what the episode holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from automem.errors import UserError

_READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a pipe put in a file's place must not make us wait for a reader.
_IN_PLACE_FLAGS = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_PLACE = 64 * 1024
"""Bytes of a file that is written anew in place; a larger one is put together beside it."""
_WATCHED_AT_ONCE = 16
"""Files looked at in one flush; of a folder with more, the next flush looks at the next ones."""

Stamp = tuple[int, int, int]
"""Inode, bytes, time of change in ns: what a file that only we write to keeps between flushes."""


class MemoryWriteFailed(UserError, OSError):
    """The memory folder could not be written. What it held before is still there."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: the memory folder could not be written: {reason}")
        self.path = path
        self.reason = reason


def _stamp(stat: os.stat_result) -> Stamp:
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


class Folder:
    """A folder that one episode writes.

    Args:
        path: made if it is not there.
        replace: empty it first; otherwise it must be empty.

    Raises:
        MemoryWriteFailed: it cannot be made, is not empty, or is no folder of its own (a link).
    """

    def __init__(self, path: Path, replace: bool = False) -> None:
        self.path = path
        self._fd = -1
        self._known: dict[str, Stamp] = {}
        self._strangers: set[str] = set()
        self._watch_from = 0
        self._open()
        try:
            entries = self._entries()
            if entries and not replace:
                raise MemoryWriteFailed(path, "it is not empty, and an episode starts with a folder of its own")
            for name in entries:
                os.unlink(name, dir_fd=self._fd)
        except OSError as error:
            self.close()
            if isinstance(error, MemoryWriteFailed):
                raise
            raise MemoryWriteFailed(path, f"it could not be emptied: {error}") from error
        self._settle()

    def _open(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, _READ_FOLDER)
        except OSError as error:
            reason = "a link or a file stands in its place" if self.path.is_symlink() else error.strerror
            raise MemoryWriteFailed(self.path, str(reason)) from error
        stat = os.fstat(self._fd)
        self._self = (stat.st_dev, stat.st_ino)

    def close(self) -> None:
        """Let go of the folder. Safe to call twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.close()

    def _entries(self) -> list[str]:
        return os.listdir(self._fd)  # noqa: PTH208 - of the open folder, wherever its path leads now

    def _settle(self) -> None:
        """What the folder looks like after our own changes."""
        self._changed_at = os.fstat(self._fd).st_mtime_ns

    def foreign(self) -> tuple[list[str], set[str] | None]:
        """What somebody else did since the last flush.

        Returns:
            One line for each thing noticed, and the files that have to be written anew
            (None: all of them).

        Raises:
            MemoryWriteFailed: another folder stands in this one's place.
        """
        try:
            stat = self.path.lstat()
        except FileNotFoundError:
            self.close()
            self._open()
            self._known.clear()
            self._settle()
            return [f"{self.path}: the memory folder was removed by someone else; written again"], None
        if (stat.st_dev, stat.st_ino) != self._self:
            raise MemoryWriteFailed(self.path, "somebody put another folder or a link in its place; remove that")
        warnings = []
        if stat.st_mtime_ns != self._changed_at:
            for name in sorted(set(self._entries()) - self._known.keys() - self._strangers):
                self._strangers.add(name)
                warnings.append(f"{name!r} was put into the memory folder by someone else; not read")
            self._settle()
        changed = set()
        for name in self._watched():
            problem = self._problem(name)
            if problem is not None:
                warnings.append(problem)
                changed.add(name)
                del self._known[name]
        return warnings, changed

    def _watched(self) -> Sequence[str]:
        names = list(self._known)
        if len(names) <= _WATCHED_AT_ONCE:
            return names
        start = self._watch_from % len(names)
        self._watch_from = start + _WATCHED_AT_ONCE
        return (names + names)[start : start + _WATCHED_AT_ONCE]

    def _problem(self, name: str) -> str | None:
        try:
            now = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError:
            return f"{name} was removed from the memory folder by someone else; written again"
        if _stamp(now) != self._known[name]:
            return f"{name} was changed by someone else; written again as the agent knows it"
        return None

    def append(self, name: str, data: Iterable[bytes]) -> bool:
        """Add bytes to a file that only we wrote. False if somebody else touched it: nothing is written then."""
        return self._write_in_place(name, b"".join(data), keep=True)

    def rewrite(self, name: str, data: bytes) -> bool:
        """Write a file anew: a large or new one as `replace` does, a small one that only we wrote in place.

        In place costs a tenth of a new file, which counts where a map changes at every step.
        False if somebody else touched it: nothing is written then.
        """
        if name not in self._known or len(data) > _IN_PLACE:
            self.replace(name, data)
            return True
        return self._write_in_place(name, data, keep=False)

    def _write_in_place(self, name: str, data: bytes, keep: bool) -> bool:
        try:
            fd = os.open(name, _IN_PLACE_FLAGS, dir_fd=self._fd)
        except OSError:
            return False
        try:
            before = os.fstat(fd)
            if _stamp(before) != self._known.get(name):
                return False
            start = before.st_size if keep else 0
            try:
                # What makes the file longer comes first: only that can fail for want of room.
                longer = max(0, before.st_size - start)
                _write(fd, data[longer:], start + longer)
                _write(fd, data[:longer], start)
                if start + len(data) < before.st_size:
                    os.ftruncate(fd, start + len(data))
            except OSError as error:
                # Half a line must not stay behind.
                os.ftruncate(fd, before.st_size)
                raise MemoryWriteFailed(self.path / name, error.strerror or str(error)) from error
            finally:
                self._known[name] = _stamp(os.fstat(fd))
        finally:
            os.close(fd)
        return True

    def replace(self, name: str, data: bytes) -> None:
        """Write a whole file, at once: a reader sees the old contents or the new ones."""
        # "~" is in no memory file's name, so this one is ours alone.
        temporary = f"{name}~"
        try:
            try:
                fd = os.open(temporary, _CREATE, 0o644, dir_fd=self._fd)
            except FileExistsError:
                os.unlink(temporary, dir_fd=self._fd)
                fd = os.open(temporary, _CREATE, 0o644, dir_fd=self._fd)
            try:
                _write(fd, data, 0)
                stamp = _stamp(os.fstat(fd))
            finally:
                os.close(fd)
            os.rename(temporary, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except OSError as error:
            self._discard(temporary)
            raise MemoryWriteFailed(self.path / name, error.strerror or str(error)) from error
        self._known[name] = stamp
        self._strangers.discard(name)
        self._settle()

    def remove(self, name: str) -> None:
        """Remove a file; one that is gone already is no error."""
        if self._known.pop(name, None) is None:
            return
        try:
            os.unlink(name, dir_fd=self._fd)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise MemoryWriteFailed(self.path / name, error.strerror or str(error)) from error
        self._settle()

    def _discard(self, temporary: str) -> None:
        try:
            os.unlink(temporary, dir_fd=self._fd)
        except OSError:
            return
        self._settle()


def _write(fd: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, at)
        view, at = view[written:], at + written
