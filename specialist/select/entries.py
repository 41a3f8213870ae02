"""What stands in the memory files, by entry, and which phase wrote it: so that a read can be credited to it.

A line of a trace is followed from the write that made it to the reads that showed it. The texts are those that
memory keeps (`automem.memory`), so that what a read shows is found by a look-up, however old the entry is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from automem.memory.files import clean, map_entry, map_line
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
        pinned, maps: names of pinned files and of maps; they may hold ``{block}``.
        coordinate: how the key of the coordinate map looks.
        operations: every operation that the model may use; None where that is not known.
    """

    initial: Mapping[str, str] = field(default_factory=dict)
    pinned: tuple[str, ...] = ()
    maps: tuple[str, ...] = ()
    coordinate: str = "{x},{y}"
    operations: frozenset[str] | None = None

    @classmethod
    def of(cls, scaffold: Scaffold) -> Layout:
        """The layout of a scaffold."""
        specs = [file.spec() for file in scaffold.schema.files]
        return cls(
            initial=scaffold.initial,
            pinned=tuple(spec.name for spec in specs if spec.pin),
            maps=tuple(spec.name for spec in specs if spec.kind == "map"),
            coordinate=next((spec.key for spec in specs if spec.by_coordinate), "{x},{y}"),
            operations=frozenset(scaffold.schema.ops.names),
        )

    def is_pinned(self, file: str) -> bool:
        """Whether the file of this name is shown in every prompt."""
        return any(_fits(name, file) for name in self.pinned)

    def is_map(self, file: str) -> bool:
        """Whether the file of this name holds a line a key."""
        return any(_fits(name, file) for name in self.maps)


def _fits(planned: str, file: str) -> bool:
    before, block, after = planned.partition("{block}")
    return file.startswith(before) and file.endswith(after) if block else file == planned


@dataclass(slots=True)
class _File:
    """The entries of a file: the line that shows each of them, and its note; None for one that no phase wrote.

    `keys` has the line of each key of a map.
    """

    lines: dict[str, Note | None] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)


class Entries:
    """The memory files of an episode, told of every operation that was carried out, in order."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._files: dict[str, _File] = {}
        for name, text in layout.initial.items():
            self._fill(self._files.setdefault(name, _File()), name, text, None)

    def lines(self, file: str) -> set[str]:
        """What stands in a file, without blank lines."""
        return set(self._files[file].lines) if file in self._files else set()

    def holds(self, op: Executed) -> bool:
        """Before a write: whether there is an entry that it replaces."""
        file = self._files.get(op.file)
        if file is None:
            return False
        return bool(file.lines) if op.name == "WRITE" else self._key_of(op) in file.keys

    def named(self, op: Executed) -> list[str]:
        """Before a DELETE: the lines of the entry that it names; none when it names a whole file."""
        file = self._files.get(op.file)
        if file is None or len(op.args) < 2:
            return []
        entry = clean(op.args[1]).strip()
        if self._layout.is_map(op.file):
            key = _key_in(file.keys, entry)
            return [] if key is None else [file.keys[key]]
        return [entry] if entry in file.lines else [line for line in file.lines if line.strip() == entry]

    def write(self, op: Executed, note: Note | None, step: int) -> list[str]:
        """A write; `note` is what the phase wrote, None for a hook. The lines that it made."""
        if op.duplicate:
            return []
        file = self._files.setdefault(op.file, _File())
        if op.name in ("UPSERT", "UPSERT_MAP"):
            key = self._key_of(op)
            self._end(file, file.keys.pop(key, ""), step)
            file.keys[key] = line = map_line(key, _folded(op.args[-1]))
            file.lines[line] = note
            return [line]
        if op.name == "WRITE":
            for line in list(file.lines):
                self._end(file, line, step)
            file.keys.clear()
        return self._fill(file, op.file, op.args[-1], note)

    def delete(self, op: Executed, step: int) -> None:
        """A DELETE."""
        if len(op.args) < 2:
            for note in self._files.pop(op.file, _File()).lines.values():
                if note is not None:
                    note.ended = step
            return
        file = self._files.get(op.file)
        if file is None:
            return
        for line in self.named(op):
            self._end(file, line, step)
        key = _key_in(file.keys, clean(op.args[1]).strip())
        if key is not None:
            del file.keys[key]

    def _fill(self, file: _File, name: str, text: str, note: Note | None) -> list[str]:
        """Add what a text holds, and say in which lines."""
        lines = [line for line in clean(text).split("\n") if line.strip()]
        if self._layout.is_map(name):
            entries = dict(entry for entry in map(map_entry, lines) if entry is not None)
            file.keys = {key: map_line(key, value) for key, value in entries.items()}
            lines = list(file.keys.values())
        for line in lines:
            # Whoever wrote a line first keeps the credit for it: saying it again adds nothing.
            file.lines.setdefault(line, note)
        return lines

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


def _folded(text: str) -> str:
    """On one line, as keys and values stand in a map."""
    return clean(text).replace("\n", " ").strip()


def _key_in(keys: Mapping[str, str], entry: str) -> str | None:
    """The key that is named, alone or by its line; None when there is none."""
    if entry in keys:
        return entry
    parsed = map_entry(entry)
    return parsed[0] if parsed is not None and keys.get(parsed[0]) == map_line(*parsed) else None
