"""One episode, asked through its trace: its steps, and its memory folder as it was at any of them."""

from __future__ import annotations

import contextlib
import os
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
import zstandard

import games
from automem import runs
from automem import scaffold as scaffolds
from automem.episode import RESULT, STEPS, EpisodeResult, load_result
from automem.errors import UserError
from automem.memory import Memory
from automem.records import StepRecord, from_json
from automem.scaffold import Scaffold
from automem.trace import brief, folder, index
from automem.trace import search as searching
from automem.trace.diff import FileDiff, between
from automem.trace.frames import Damage, Frames, parsed, unpacked
from automem.trace.index import Index
from automem.trace.indexing import Builder
from automem.trace.search import Found
from automem.trace.tally import Tally
from automem.trace.tally import unpacked as unpacked_tally


class NoSuchStep(UserError):
    """The trace has no step of this number."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """What is known of a trace.

    Attributes:
        ends: byte at which each readable record ends.
        index: its checkpoints.
        damage: why reading stops, if it does.
        tail: the records that the index does not know, in brief.
    """

    ends: array[int]
    index: Index
    damage: Damage | None
    tail: list[bytes]


class EpisodeTrace:
    """An episode on disk, finished or not.

    It shows the trace as it was when it was first asked something; make another one to see later steps.

    Attributes:
        folder: ``runs/<run>/episodes/<task>/seed-<n>``.
        path: its ``steps.jsonl.zst``.
    """

    def __init__(self, folder: Path | str, scaffold: Scaffold | None = None) -> None:
        """
        Args:
            folder: the episode's folder.
            scaffold: what was played; found through the run that the folder belongs to when not given.

        Raises `UserError` when there is no trace.
        """
        self.folder = Path(folder)
        self.path = self.folder / STEPS
        self._scaffold = scaffold
        if not self.path.is_file():
            raise UserError(f"{self.folder}: no episode here, there is no {STEPS}")

    @property
    def task(self) -> str:
        """The task, by the folder's name."""
        return self.folder.absolute().parent.name

    @property
    def seed(self) -> int:
        """The seed, by the folder's name; 0 when that names none."""
        number = self.folder.absolute().name.removeprefix("seed-")
        return int(number) if number.isdecimal() else 0

    @cached_property
    def result(self) -> EpisodeResult | None:
        """What the episode came to; None while it is not finished. Raises `UserError` when it is damaged."""
        return load_result(self.folder)

    @property
    def damage(self) -> Damage | None:
        """What is wrong with the trace and from which record on; None when it is whole."""
        return self._opened.damage

    def __len__(self) -> int:
        """Readable steps."""
        return len(self._opened.ends)

    @property
    def size(self) -> int:
        """Bytes of the trace that hold the readable steps."""
        return self._opened.ends[-1] if len(self) else 0

    def cuts(self, pieces: int) -> list[int]:
        """Bytes at which it can be cut into about so many pieces of whole records; the last is `size`."""
        ends = self._opened.ends
        most = -(-len(ends) // pieces)
        return [ends[min(first + most, len(ends)) - 1] for first in range(0, len(ends), most)]

    def briefs(self) -> list[bytes]:
        """The readable records in brief (`automem.trace.brief`), as zstd frames of lines of JSON, in order."""
        opened = self._opened
        tail = [zstandard.ZstdCompressor().compress(b"".join(opened.tail))] if opened.tail else []
        return [*opened.index.briefs(), *tail]

    def step(self, number: int) -> StepRecord:
        """A step, from 0. Raises `NoSuchStep`."""
        self._check(number)
        return next(self.steps(number, number + 1))

    def steps(self, start: int = 0, stop: int | None = None) -> Iterator[StepRecord]:
        """Steps `start` to `stop` - 1, as far as there are any. Raises `NoSuchStep` when there is no `start`."""
        if start:
            self._check(start)
        return (from_json(data) for data in self.raw(start, stop))

    def raw(self, start: int = 0, stop: int | None = None) -> Iterator[dict[str, Any]]:
        """The same as plain values, as they stand in the trace."""
        return (orjson.loads(data) for data in self.lines(start, stop))

    def lines(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """The same as lines of JSON."""
        ends = self._opened.ends
        stop = len(ends) if stop is None else min(stop, len(ends))
        decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        with self.path.open("rb", buffering=0) as file:
            for first in range(start, stop, index.EVERY):
                last = min(first + index.EVERY, stop)
                offset = ends[first - 1] if first else 0
                data = os.pread(file.fileno(), ends[last - 1] - offset, offset)
                at = 0
                for number in range(first, last):
                    end = ends[number] - offset
                    yield self._line(decompressor, data[at:end], number)
                    at = end

    def _line(self, decompressor: zstandard.ZstdDecompressor, packed: bytes, number: int) -> bytes:
        with contextlib.suppress(zstandard.ZstdError):
            line = unpacked(decompressor, packed)
            if line is not None:
                return line
        raise UserError(f"{self.path}: was changed while it was read, at record {number}; ask again")

    def memory(self, step: int) -> dict[str, str]:
        """Memory files by name, sorted, as they stood when PLAN of this step began: LOG and `maintain` were over.

        Raises `NoSuchStep`; `automem.trace.folder.Diverged` when the scaffold is not the one that was played.
        """
        self._check(step)
        known = self._opened.index
        checkpoint = known.checkpoint(step)
        if checkpoint is None:
            memory = folder.fresh(self.scaffold)
            for number, data in enumerate(self.raw(0, step + 1)):
                folder.carry_out(memory, folder.operations(data), number)
            return memory.snapshot()
        block = known.blocks[checkpoint]
        assert block.files is not None
        first = block.last + 1
        ops = [(n, op) for n, data in enumerate(self.raw(first, step + 1), first) for op in folder.operations(data)]
        if not ops:
            return {name: known.text(checkpoint, name) for name in sorted(block.files)}
        since = folder.Since(self.scaffold, ops, block.files)
        return since.texts(lambda name, more: known.text(checkpoint, name, more))

    def tally(self) -> tuple[Tally, StepRecord | None]:
        """What all readable steps but the last come to, and the last; it does not say what its action led to."""
        tally, before = unpacked_tally(self._opened.index.tallies()), None
        if tally.steps >= len(self):
            tally = Tally()
        for record in self.steps(tally.steps):
            if before is not None:
                tally.add(before, record.observation)
            before = record
        return tally, before

    def memory_diff(self, a: int, b: int) -> dict[str, FileDiff]:
        """What changed in the memory folder from step `a` to step `b`, by file. Raises as `memory` does."""
        return between(self.memory(a), self.memory(b))

    def search(
        self, pattern: str, *, regex: bool = False, where: Sequence[str] = searching.EVERYWHERE, limit: int = 50
    ) -> Found:
        """Texts that contain a pattern, with step, phase, turn and an excerpt (`automem.trace.search.search`)."""
        return searching.search([self], pattern, regex=regex, where=where, limit=limit)

    @cached_property
    def scaffold(self) -> Scaffold:
        """The scaffold that was played. Raises `UserError` when it is not known."""
        if self._scaffold is not None:
            return self._scaffold
        run = run_of(self.folder)
        if run is None:
            raise UserError(f"{self.folder}: belongs to no run, so the scaffold that was played is not known")
        played = run.config.scaffolds.get(games.game_of(self.task))
        if played is None:
            raise UserError(f"{self.folder}: agent {run.config.agent} plays without a scaffold and keeps no memory")
        return scaffolds.load(str(run.folder / played.folder))

    def _check(self, step: int) -> None:
        if not 0 <= step < len(self):
            there = f"steps 0 to {len(self) - 1}" if len(self) else "no step"
            more = f" ({self.damage})" if self.damage is not None else ""
            raise NoSuchStep(f"{self.folder}: there is no step {step}; the trace has {there}{more}")

    @cached_property
    def _opened(self) -> _Opened:
        known = self._known_scaffold()
        found = index.load(self.path, known.identity if known is not None else "")
        if found.widest() <= (index.SPARSEST + 1) * index.EVERY:
            opened = self._with_tail(found)
            if len(opened.tail) <= index.EVERY:
                if not opened.tail and opened.damage is None and self.is_finished:
                    index.seal(self.path, found)
                return opened
        return self._made_anew(known)

    @property
    def is_finished(self) -> bool:
        """Nobody writes to the trace any more."""
        return (self.folder / RESULT).exists()

    def _known_scaffold(self) -> Scaffold | None:
        with contextlib.suppress(UserError):
            return self.scaffold
        return None

    def _with_tail(self, found: Index) -> _Opened:
        """The records that the index knows, and those after it."""
        ends = array("Q")
        for block in found.blocks:
            ends.extend(block.ends)
        tail: list[bytes] = []
        frames = Frames(self.path, found.end, found.records)
        for data in frames:
            record = parsed(self.path, len(ends), frames.start, data)
            if isinstance(record, Damage):
                return _Opened(ends, found, record, tail)
            ends.append(frames.end)
            tail.append(brief.line(record))
        return _Opened(ends, found, frames.damage, tail)

    def _made_anew(self, scaffold: Scaffold | None) -> _Opened:
        """Everything from the trace alone; the index is kept for the next time if that is possible."""
        made, memory = Index(), None if scaffold is None else folder.fresh(scaffold)
        tally, before = Tally(), None
        builder = _builder(memory, scaffold, made, tally)
        ends = array("Q")
        frames = Frames(self.path)
        damage = None
        for data in frames:
            record = parsed(self.path, len(ends), frames.start, data)
            if isinstance(record, Damage):
                damage = record
                break
            if before is not None:
                tally.add(before, record.observation)
            before = record
            if memory is not None:
                try:
                    folder.carry_out(memory, folder.done(record), len(ends))
                except UserError:
                    # No checkpoints from here on; whoever asks for memory is told why.
                    memory = None
                    if rest := builder.rest():
                        made.add(rest)
                    builder = _builder(None, scaffold, made, tally)
            ends.append(frames.end)
            if block := builder.add(frames.packed, record):
                made.add(block)
        if block := builder.rest():
            made.add(block)
        self._keep(made)
        return _Opened(ends, made, damage or frames.damage, [])

    def _keep(self, made: Index) -> None:
        """Write the index down, unless somebody may be playing the episode."""
        if not self.is_finished:
            return
        with contextlib.suppress(OSError):
            handle, scratch = tempfile.mkstemp(dir=self.folder, prefix=".index-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(made.data)
                Path(scratch).replace(index.path_of(self.path))
            except OSError:
                Path(scratch).unlink(missing_ok=True)


def _builder(memory: Memory | None, scaffold: Scaffold | None, made: Index, tally: Tally) -> Builder:
    identity = "" if scaffold is None else scaffold.identity
    return Builder(None if memory is None else memory.snapshot, identity, made, tally)


def run_of(folder: Path) -> runs.Run | None:
    """The run that an episode's folder belongs to. Raises `UserError` when its ``run.toml`` is damaged."""
    for parent in list(folder.absolute().parents)[:3]:
        if (parent / runs.RUN).is_file():
            return runs.load(str(parent))
    return None
