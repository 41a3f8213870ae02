"""Writing the trace of an episode as it is played."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import orjson
import zstandard

from automem.errors import UserError
from automem.memory import Memory
from automem.records import StepRecord
from automem.trace.indexing import IndexWriter
from automem.trace.tally import Tally

LEVEL = 3
"""zstd's default; higher levels gain a few percent on records this short and cost several times more."""


class TraceWriteFailed(UserError):
    """A record could not be written; everything before it is intact."""


class TraceWriter:
    """Appends records to a trace, and keeps its index (`automem.trace.index`) up to date.

    Every record is written with one call: a process that is killed loses at most the step in flight.
    """

    def __init__(
        self, path: Path, memory: Memory | None = None, scaffold: str = "", tally: Tally | None = None
    ) -> None:
        """Open `path` for appending; its folder must exist.

        Args:
            memory: the episode's memory folder, as it stands after the records that are there; the index then
                remembers it every so many steps. Without it no index is written.
            scaffold: identity of the scaffold that is played.
            tally: what the records that are there come to, and later those before the one that is appended; the
                index then remembers that, too.
        """
        self._path = path
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise TraceWriteFailed(f"{path}: cannot be written: {error.strerror}") from error
        self._size = os.fstat(self._file).st_size
        self._index = None if memory is None else IndexWriter.open(path, memory.snapshot, scaffold, tally)

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
        if self._index is not None:
            self._index.add(frame, record)

    def _undo(self) -> None:
        os.ftruncate(self._file, self._size)

    def close(self) -> None:
        """Bring it to the disk and close it. Safe to call twice."""
        if self._file >= 0:
            with contextlib.suppress(OSError):  # what was written stays written; a full disk was told before
                os.fsync(self._file)
            os.close(self._file)
            self._file = -1
        if self._index is not None:
            self._index.close()
            self._index = None
