"""The trace of an episode on disk: ``steps.jsonl.zst``, one record a step.

Every record is a zstd frame of its own: several frames in one file are still one zstd stream (so
DuckDB and ``zstdcat`` read it as it is), any record can be read without those before it, and bytes
per step do not grow as an episode ages.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import zstandard

from automem.records import StepRecord, from_json

LARGEST = 256 * 1024 * 1024
"""Bytes that one frame may unpack to: a damaged or hostile header must not take all memory."""

READ_AHEAD = 4 * 1024 * 1024
"""Bytes that are read at once when a trace is read from front to back."""

_MAGIC = b"\x28\xb5\x2f\xfd"
_FED = 16 * 1024


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


def read(path: Path) -> tuple[list[StepRecord], Damage | None]:
    """All records up to the end or to the first damage, and the damage if there is one."""
    records: list[StepRecord] = []
    reader = Frames(path)
    for data in reader:
        record = parsed(path, len(records), reader.start, data)
        if isinstance(record, Damage):
            return records, record
        records.append(record)
    return records, reader.damage


def parsed(path: Path, number: int, offset: int, data: bytes) -> StepRecord | Damage:
    """The record that an unpacked frame holds, or what is wrong with it."""
    try:
        return from_json(orjson.loads(data))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        return Damage(path, number, offset, f"is not a step record ({error})")


def truncate(path: Path, damage: Damage) -> None:
    """Cut a trace just before its damage, so that it can be appended to again."""
    os.truncate(path, damage.offset)


class Frames:
    """The zstd frames of a file, decompressed one by one.

    After iteration `damage` says why it stopped early, if it did; `start` and `end` are the bytes at which
    the last frame that was yielded begins and ends, and `packed` is that frame as it is in the file.
    """

    def __init__(self, path: Path, offset: int = 0, number: int = 0) -> None:
        """Args: offset, number: where to begin, and which record it is that begins there."""
        self.path = path
        self.start = self.end = offset
        self.packed: bytes = b""
        self.damage: Damage | None = None
        self._number = number

    def __iter__(self) -> Iterator[bytes]:
        decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        with self.path.open("rb", buffering=0) as file:
            file.seek(self.end)
            ahead, at, over = b"", 0, False
            while True:
                try:
                    end = frame_end(ahead, at)
                    if end is None and not over:
                        more = file.read(READ_AHEAD)
                        ahead, at, over = ahead[at:] + more, 0, not more
                        continue
                    if at == len(ahead):
                        return
                    self.packed = ahead[at:end]
                    data = unpacked(decompressor, self.packed)
                except zstandard.ZstdError as error:
                    self.damage = Damage(self.path, self._number, self.end, f"is corrupted ({error})")
                    return
                if data is None or end is None:
                    self.damage = Damage(self.path, self._number, self.end, "is incomplete", torn=True)
                    return
                self.start, self.end = self.end, self.end + end - at
                at = end
                self._number += 1
                yield data


def unpacked(decompressor: zstandard.ZstdDecompressor, packed: bytes) -> bytes | None:
    """What a frame holds; None when it ends too early. Raises `zstandard.ZstdError` for anything wrong with it."""
    if frame_end(packed, 0) == len(packed):
        size = zstandard.get_frame_parameters(packed).content_size
        if size not in (zstandard.CONTENTSIZE_UNKNOWN, zstandard.CONTENTSIZE_ERROR):
            if size > LARGEST:
                raise zstandard.ZstdError("unpacks to more than a step can hold")
            return decompressor.decompress(packed)
    frame = decompressor.decompressobj()
    parts: list[bytes] = []
    size = fed = 0
    while not frame.eof and fed < len(packed):
        parts.append(frame.decompress(packed[fed : fed + _FED]))
        fed += _FED
        size += len(parts[-1])
        if size > LARGEST:
            raise zstandard.ZstdError("unpacks to more than a step can hold")
    return b"".join(parts) if frame.eof else None


def frame_end(data: bytes, at: int) -> int | None:
    """Where the zstd frame that begins at `at` ends, without unpacking it; None when `data` ends before that.

    Raises `zstandard.ZstdError` when what is there is no frame.
    """
    length = len(data)
    if not _MAGIC.startswith(data[at : at + 4]):
        raise zstandard.ZstdError("no zstd frame begins here")
    if length < at + 5:
        return None
    descriptor = data[at + 4]
    single = descriptor >> 5 & 1
    size_field = (single, 2, 4, 8)[descriptor >> 6]
    position = at + 5 + (not single) + (0, 1, 2, 4)[descriptor & 3] + size_field
    while position + 3 <= length:
        header = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        kind = header >> 1 & 3
        if kind == 3:
            raise zstandard.ZstdError("a block of a kind that does not exist")
        position += 3 + (1 if kind == 1 else header >> 3)
        if header & 1:
            position += 4 * (descriptor >> 2 & 1)
            return position if position <= length else None
    return None
