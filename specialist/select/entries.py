"""What stands in the memory files, by entry, and which phase wrote it: so that a read can be credited to it.

A line of a trace is followed from the write that made it to the reads that showed it. The texts are those that
memory keeps (`automem.memory`), so that what a read shows is found by a look-up, however old the entry is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from automem.memory.files import clean, map_line
from automem.records import Executed, Phase
from automem.scaffold import Scaffold
from automem.vocabulary import EVERY_FILE

_PARTS = ("[the end of the newest line]", "[part of the newest match]")
"""What stands above a line that was too long to be shown whole."""


@dataclass(slots=True, eq=False)
class Note:
    """An entry that a phase wrote, and what became of it.

    Attributes:
        step, phase: when it was written.
        pinned: its file is shown in every prompt, so that nobody needs to read it.
        read: the step of the first phase after its own that read it back; None for never.
        helped: progress was made soon after a phase that read it.
        ended: the step at which it was replaced or removed; None while it stands.
    """

    step: int
    phase: Phase
    pinned: bool = False
    read: int | None = None
    helped: bool = False
    ended: int | None = None


@dataclass(frozen=True)
class Layout:
    """What a scaffold says of memory files, as far as it matters here.

    Attributes:
        initial: files before the first step.
        pinned: names of pinned files, as `automem.memory.FileSpec` matches them.
        coordinate: how the key of the coordinate map looks.
        operations: every operation that the model may use; None where that is not known.
    """

    initial: Mapping[str, str] = field(default_factory=dict)
    pinned: tuple[str, ...] = ()
    coordinate: str = "{x},{y}"
    operations: frozenset[str] | None = None

    @classmethod
    def of(cls, scaffold: Scaffold) -> Layout:
        """The layout of a scaffold."""
        specs = [file.spec() for file in scaffold.schema.files]
        return cls(
            initial=scaffold.initial,
            pinned=tuple(spec.name for spec in specs if spec.pin),
            coordinate=next((spec.key for spec in specs if spec.by_coordinate), "{x},{y}"),
            operations=frozenset(scaffold.schema.ops.names),
        )

    def is_pinned(self, file: str) -> bool:
        """Whether the file of this name is shown in every prompt."""
        return any(_fits(name, file) for name in self.pinned)


def _fits(planned: str, file: str) -> bool:
    before, block, after = planned.partition("{block}")
    return file.startswith(before) and file.endswith(after) if block else file == planned


@dataclass(slots=True)
class _File:
    """The entries of a file by the line that shows them; None for one that no phase wrote."""

    lines: dict[str, Note | None] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)


class Entries:
    """The memory files of an episode, told of every operation in order."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._files: dict[str, _File] = {}
        for name, text in layout.initial.items():
            lines = _lines(text)
            self._files[name] = _File(dict.fromkeys(lines), {_key(line): line for line in lines if ": " in line})

    def holds(self, op: Executed) -> bool:
        """Before a write: whether there is an entry that it replaces."""
        file = self._files.get(op.file)
        if file is None:
            return False
        return bool(file.lines) if op.name == "WRITE" else self._key_of(op) in file.keys

    def line(self, op: Executed) -> str | None:
        """Before a DELETE: the line that it names; None when there is none, or it names a whole file."""
        file = self._files.get(op.file)
        if file is None or len(op.args) < 2:
            return None
        entry = clean(op.args[1]).strip()
        return file.keys.get(entry, entry if entry in file.lines else None)

    def write(self, op: Executed, note: Note | None, step: int) -> list[str]:
        """A write was carried out; `note` is what the phase wrote, None for a hook. The lines that it made."""
        file = self._files.setdefault(op.file, _File())
        if op.name in ("UPSERT", "UPSERT_MAP"):
            key = self._key_of(op)
            lines = [map_line(key, _folded(op.args[-1]))]
            before = file.keys.get(key)
            if before is not None and before != lines[0]:
                self._end(file, before, step)
            file.keys[key] = lines[0]
        else:
            lines = _lines(op.args[-1])
            if op.name == "WRITE":
                for line in list(file.lines):
                    self._end(file, line, step)
                file.keys = {_key(line): line for line in lines if ": " in line}
        for line in lines:
            # Whoever wrote a line first keeps the credit for it: saying it again adds nothing.
            file.lines.setdefault(line, note)
        return lines

    def delete(self, op: Executed, step: int) -> None:
        """A DELETE was carried out."""
        if len(op.args) < 2:
            for note in self._files.pop(op.file, _File()).lines.values():
                if note is not None:
                    note.ended = step
            return
        line = self.line(op)
        file = self._files.get(op.file)
        if file is not None and line is not None:
            file.keys.pop(_key(line), None)
            self._end(file, line, step)

    def shown(self, op: Executed) -> Iterator[Note]:
        """The notes of which this read showed a line."""
        lines = op.result.split("\n")
        if lines[0] in _PARTS:
            yield from self._part(op.file, lines[-1].removeprefix("…"))
            return
        if op.file == EVERY_FILE:
            for line in lines:
                name, _, text = line.partition(": ")
                yield from self._in(name, text)
            return
        # What an operation of the scaffold shows may come from any file.
        for name in [op.file] if op.file else list(self._files):
            for line in lines:
                yield from self._in(name, line)

    def _in(self, name: str, line: str) -> Iterable[Note]:
        file = self._files.get(name)
        note = None if file is None else file.lines.get(line)
        return () if note is None else (note,)

    def _part(self, name: str, part: str) -> Iterator[Note]:
        for file in [self._files[name]] if name in self._files else self._files.values():
            for line, note in file.lines.items():
                if note is not None and part.removesuffix("…") in line:
                    yield note

    def _key_of(self, op: Executed) -> str:
        if op.name == "UPSERT_MAP":
            x, _, y = op.args[0].partition(",")
            return self._layout.coordinate.replace("{x}", x).replace("{y}", y)
        return _folded(op.args[-2])

    @staticmethod
    def _end(file: _File, line: str, step: int) -> None:
        note = file.lines.pop(line, None)
        if note is not None:
            note.ended = step


def _lines(text: str) -> list[str]:
    return [line for line in clean(text).split("\n") if line.strip()]


def _folded(text: str) -> str:
    """On one line, as keys and values stand in a map."""
    return clean(text).replace("\n", " ").strip()


def _key(line: str) -> str:
    return line.partition(": ")[0]
