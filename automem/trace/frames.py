"""The trace of an episode on disk: ``steps.jsonl.zst``, one record a step.

Every record is a zstd frame of its own, written with one call: a process that is killed loses
at most the step in flight, several frames in one file are still one zstd stream (so DuckDB
and ``zstdcat`` read it as it is), and bytes per step do not grow as an episode ages.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import zstandard

from automem.errors import UserError
from automem.records import StepRecord, from_json

LEVEL = 3
"""zstd's default; higher levels gain a few percent on records this short and cost several times more."""

_WINDOW = 16 * 1024


class TraceWriteFailed(UserError):
    """A record could not be written; everything before it is intact."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Where and why a trace cannot be read further.

    Attributes:
        path: the file.
        record: number of the first record that is lost, from 0.
        offset: byte at which it begins.
        reason: what is wrong with it.
        torn: the file merely ends too early, as after a kill.
    """

    path: Path
    record: int
    offset: int
    reason: str
    torn: bool = False

    def __str__(self) -> str:
        return f"{self.path}: record {self.record} (byte {self.offset}) {self.reason}; the records before it are intact"


class TraceWriter:
    """Appends records to a trace."""

    def __init__(self, path: Path) -> None:
        """Open `path` for appending; its folder must exist."""
        self._path = path
        self._compressor = zstandard.ZstdCompressor(level=LEVEL)
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise TraceWriteFailed(f"{path}: cannot be written: {error.strerror}") from error
        self._size = os.fstat(self._file).st_size

    def append(self, record: StepRecord) -> None:
        """Write one record. Raises `TraceWriteFailed`; the file then ends with the record before."""
        frame = self._compressor.compress(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
        try:
            written = os.write(self._file, frame)
        except OSError as error:
            self._undo()
            raise TraceWriteFailed(f"{self._path}: {error.strerror}; free some space and resume the run") from error
        if written != len(frame):
            self._undo()
            raise TraceWriteFailed(f"{self._path}: the disk is full; free some space and resume the run")
        self._size += len(frame)

    def _undo(self) -> None:
        os.ftruncate(self._file, self._size)

    def close(self) -> None:
        """Bring it to the disk and close it. Safe to call twice."""
        if self._file >= 0:
            with contextlib.suppress(OSError):  # what was written stays written; a full disk was told before
                os.fsync(self._file)
            os.close(self._file)
            self._file = -1


def read(path: Path) -> tuple[list[StepRecord], Damage | None]:
    """All records up to the end or to the first damage, and the damage if there is one."""
    records: list[StepRecord] = []
    reader = Frames(path)
    for data in reader:
        try:
            record = from_json(orjson.loads(data))
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            return records, Damage(path, len(records), reader.start, f"is not a step record ({error})")
        records.append(record)
    return records, reader.damage


def truncate(path: Path, damage: Damage) -> None:
    """Cut a trace just before its damage, so that it can be appended to again."""
    os.truncate(path, damage.offset)


class Frames:
    """The zstd frames of a file, decompressed one by one.

    After iteration `damage` says why it stopped early, if it did; `start` is the byte at which
    the last frame that was yielded begins.
    """

    LARGEST = 256 * 1024 * 1024
    """Bytes that one frame may unpack to: a damaged or hostile header must not take all memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.start = 0
        self.damage: Damage | None = None

    def __iter__(self) -> Iterator[bytes]:
        decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        data = memoryview(self.path.read_bytes())
        position = number = 0
        while position < len(data):
            frame = decompressor.decompressobj()
            parts: list[bytes] = []
            size, fed = 0, position
            try:
                while not frame.eof and fed < len(data):
                    chunk = data[fed : fed + _WINDOW]
                    fed += len(chunk)
                    parts.append(frame.decompress(chunk))
                    size += len(parts[-1])
                    if size > self.LARGEST:
                        raise zstandard.ZstdError("unpacks to more than a step can hold")
            except zstandard.ZstdError as error:
                self.damage = Damage(self.path, number, position, f"is corrupted ({error})")
                return
            if not frame.eof:
                self.damage = Damage(self.path, number, position, "is incomplete", torn=True)
                return
            self.start = position
            yield b"".join(parts)
            position = fed - len(frame.unused_data)
            number += 1
