"""Making the index of a trace, block by block: as an episode is played, or again from its trace."""

from __future__ import annotations

import contextlib
import hashlib
import os
import zlib
from array import array
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import zstandard

from automem.records import StepRecord
from automem.trace import brief, index
from automem.trace.frames import Damage, Frames, parsed
from automem.trace.index import Held, Index, load, packed_block, path_of
from automem.trace.tally import Tally


class Builder:
    """Makes blocks of the records that it is told of, in order."""

    def __init__(
        self,
        snapshot: Callable[[], Mapping[str, str]] | None,
        scaffold: str,
        known: Index,
        tally: Tally | None = None,
    ) -> None:
        """
        Args:
            snapshot: name -> text of every memory file, as it stands at the record that was told last;
                None for an index without checkpoints.
            scaffold: identity of the scaffold that is played.
            known: the blocks so far.
            tally: what all records before the one that was told last come to; None for an index without tallies.
        """
        self._snapshot = snapshot
        self._scaffold = scaffold
        self._number = len(known.blocks)
        self._digest = known.digest
        self._first = known.records
        self._start = known.end
        self._tally = tally
        self._tallied = known.tallied
        """Records up to the last of a block with a tally."""
        self._due = (known.records if tally is None else known.tallied) + index.EVERY
        """Records with which the next block is made."""
        self._held: Mapping[str, Held] = {}
        self._holder = -1
        """The block of the last checkpoint, which `_held` describes."""
        self._blocks_since = self._bytes_since = self._cost = 0
        checkpoint = known.checkpoint(known.records)
        if checkpoint is not None:
            self._held, self._holder = known.blocks[checkpoint].files or {}, checkpoint
        self._begin()

    def _begin(self) -> None:
        self._lengths = array("I")
        self._checksum = 0
        self._brief: list[bytes] = []

    def passed(self, frame: bytes, record: StepRecord) -> None:
        """A record, packed and unpacked, at which no checkpoint can be taken."""
        self._lengths.append(len(frame))
        self._checksum = zlib.crc32(frame, self._checksum)
        self._brief.append(brief.line(record))

    def add(self, frame: bytes, record: StepRecord) -> bytes:
        """A record. Returns a block when it is time for one, else nothing."""
        self.passed(frame, record)
        if self._first + len(self._lengths) < self._due:
            return b""
        block = self._block(self._snapshot)
        self._due = self._first + index.EVERY
        return block

    def rest(self) -> bytes:
        """A block of the records that are in none yet, without a checkpoint; nothing when there are none."""
        return self._block(None) if self._lengths else b""

    def _block(self, snapshot: Callable[[], Mapping[str, str]] | None) -> bytes:
        length = sum(self._lengths)
        self._blocks_since += 1
        self._bytes_since += length
        files: dict[str, list[Any]] | None = None
        content = b""
        if snapshot is not None and (
            self._cost * index.SHARE <= self._bytes_since or self._blocks_since >= index.SPARSEST
        ):
            files, content = self._checkpoint(snapshot())
            self._blocks_since = self._bytes_since = 0
            self._cost = len(content)
        compressor = zstandard.ZstdCompressor(level=3)
        packed = compressor.compress(b"".join(self._brief))
        tally = self._packed_tally()
        content = packed + tally + content
        said = {
            "first": self._first,
            "start": self._start,
            "checksum": self._checksum,
            "scaffold": self._scaffold,
            "brief": len(packed),
            "tally": len(tally),
            "files": files,
        }
        header = compressor.compress(orjson.dumps(said) + b"\n" + self._lengths.tobytes())
        self._digest, block = packed_block(self._digest, header, content)
        self._first += len(self._lengths)
        self._start += length
        self._number += 1
        self._begin()
        return block

    def _packed_tally(self) -> bytes:
        """The tally at the last record, before what it led to is known; nothing when it is not there."""
        last = self._first + len(self._lengths) - 1
        if self._tally is None or self._tally.steps != last:
            return b""
        since, self._tallied = max(self._tallied - 1, 0), last + 1
        return self._tally.pack(since)

    def _checkpoint(self, texts: Mapping[str, str]) -> tuple[dict[str, list[Any]], bytes]:
        """What the header says of every file, and the contents that are new."""
        compressor = zstandard.ZstdCompressor(level=3)
        parts: list[bytes] = []
        held = {}
        for name, text in texts.items():
            data = memoryview(text.encode())
            keep, base, digest = self._grown(name, data)
            packed = compressor.compress(data[keep:]) if keep < len(data) else b""
            held[name] = Held(base, keep, len(data), len(packed), digest)
            parts.append(packed)
        self._held, self._holder = held, self._number
        values = {name: [h.base, h.keep, h.size, h.packed, h.digest] for name, h in held.items()}
        return values, b"".join(parts)

    def _grown(self, name: str, data: memoryview) -> tuple[int, int, str]:
        """How many bytes stand as they did at the last checkpoint, the block that holds them, and the digest."""
        before = self._held.get(name)
        if before is not None and before.size <= len(data):
            digest = hashlib.sha256(data[: before.size])
            if digest.hexdigest() == before.digest:
                digest.update(data[before.size :])
                return before.size, self._holder if before.packed else before.base, digest.hexdigest()
        return 0, -1, hashlib.sha256(data).hexdigest()


class IndexWriter:
    """Keeps the index of a trace on disk while the trace is written. Never fails: an index can be made again."""

    def __init__(self, file: int, builder: Builder) -> None:
        self._file = file
        self._builder = builder

    @classmethod
    def open(
        cls, trace: Path, snapshot: Callable[[], Mapping[str, str]], scaffold: str, tally: Tally | None = None
    ) -> IndexWriter | None:
        """Go on with the index of this trace, or begin one. None when it cannot be written.

        Args: as those of `Builder`.
        """
        path = path_of(trace)
        known = load(trace, scaffold)
        try:
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            return None
        writer = cls(file, Builder(snapshot, scaffold, known, tally))
        try:
            os.ftruncate(file, known.size)
            frames = Frames(trace, known.end, known.records)
            for number, data in enumerate(frames, known.records):
                record = parsed(trace, number, frames.start, data)
                if isinstance(record, Damage):
                    break
                writer._builder.passed(frames.packed, record)
        except OSError:
            writer._give_up()
        return writer

    def add(self, frame: bytes, record: StepRecord) -> None:
        """A record was written. The memory folder must stand as it did when its PLAN began."""
        if self._file >= 0:
            self._write(self._builder.add(frame, record))

    def close(self) -> None:
        """Write down what is not yet. Safe to call twice."""
        if self._file >= 0:
            self._write(self._builder.rest())
            os.close(self._file)
            self._file = -1

    def _write(self, block: bytes) -> None:
        try:
            if block and os.write(self._file, block) != len(block):
                self._give_up()
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        """Leave the index as it is: a block that is not whole is not used, and what is missing is made again."""
        with contextlib.suppress(OSError):
            os.close(self._file)
        self._file = -1
