"""The kinds of memory file, as they are kept while an episode runs.

`TextFile` holds notes and logs, `MapFile` holds one ``key: value`` line a key. Both know
what has to be written to disk to bring it level: new bytes at the end, or the whole file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from automem.memory.lines import Lines, Slot

_BREAKS = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_UNPRINTABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def clean(text: str) -> str:
    """`text` as memory keeps it: every kind of line break is a newline, other control
    characters and lone surrogates are U+FFFD. Tabs stay. The result is valid UTF-8, safe to print."""
    if text.isprintable():
        return text
    return _UNPRINTABLE.sub("\ufffd", _BREAKS.sub("\n", text))


def utf8_size(line: str) -> int:
    """Bytes of a line on disk, its newline included."""
    return 1 + (len(line) if line.isascii() else len(line.encode()))


@dataclass(frozen=True, slots=True)
class Change:
    """What a write did.

    Attributes:
        growth: bytes that the file grew by.
        duplicate: the file already held what was written.
        dropped: lines that `max_lines` pushed out.
    """

    growth: int
    duplicate: bool = False
    dropped: int = 0


class MemoryFile:
    """What all kinds share.

    Attributes:
        lines: the contents, in the order of writing.
        appended: bytes to add on disk; only of use while `stale` is False.
        stale: the file has to be written anew.
    """

    def __init__(self) -> None:
        self.lines = Lines()
        self.appended: list[bytes] = []
        self.stale = True

    @property
    def size(self) -> int:
        """UTF-8 bytes."""
        return self.lines.size

    def level(self) -> None:
        """The disk now holds what this holds."""
        self.appended = []
        self.stale = False

    def _replaced(self) -> None:
        self.appended = []
        self.stale = True


class TextFile(MemoryFile):
    """A note or a log."""

    def __init__(self, max_lines: int | None = None) -> None:
        super().__init__()
        self.max_lines = max_lines
        self._times: dict[str, int] = {}
        """How often each line stands here, without surrounding white space."""

    def append(self, text: str, seq: int) -> Change:
        """Add `text`, which may hold several lines."""
        before = self.size
        duplicate = True
        for line in text.split("\n"):
            duplicate = self._add(line, seq) and duplicate
        if not self.stale:
            self.appended.append(f"{text}\n".encode())
        dropped = self._drop_oldest()
        return Change(self.size - before, duplicate, dropped)

    def replace(self, text: str, seq: int) -> Change:
        """Hold `text` only; empty for an empty file."""
        before, same = self.size, self.lines.text() == (f"{text}\n" if text else "")
        self.lines = Lines()
        self._times = {}
        for line in text.split("\n") if text else ():
            self._add(line, seq)
        self._replaced()
        dropped = self._drop_oldest()
        return Change(self.size - before, same, dropped)

    def remove(self, line: str) -> int:
        """Remove every line that equals `line`, surrounding white space aside; how many there were."""
        if line not in self._times:
            return 0
        found = [slot for slot in self.lines.matches(line.lower()) if (slot[0].lines[slot[1]] or "").strip() == line]
        for slot in found:
            self._remove(slot)
        self._replaced()
        self._compact()
        return len(found)

    def _add(self, line: str, seq: int) -> bool:
        """Add one line; True if it stood here already."""
        self.lines.add(line, utf8_size(line), seq)
        key = line.strip()
        times = self._times.get(key, 0)
        self._times[key] = times + 1
        return times > 0

    def _remove(self, slot: Slot) -> None:
        line = slot[0].lines[slot[1]] or ""
        self.lines.remove(slot, utf8_size(line))
        key = line.strip()
        if self._times[key] == 1:
            del self._times[key]
        else:
            self._times[key] -= 1

    def _drop_oldest(self) -> int:
        dropped = 0
        while self.max_lines is not None and self.lines.live > self.max_lines:
            self._remove(self.lines.oldest())
            dropped += 1
        if dropped:
            self._replaced()
            self._compact()
        return dropped

    def _compact(self) -> None:
        if self.lines.sparse:
            old, self.lines = self.lines, Lines()
            for _, line, seq in old.forward():
                self.lines.add(line, utf8_size(line), seq)


class MapFile(MemoryFile):
    """One line a key, the key that changed last at the end."""

    def __init__(self) -> None:
        super().__init__()
        self._slots: dict[str, Slot] = {}

    def line(self, key: str) -> str | None:
        """The line of a key; None if it is not there."""
        slot = self._slots.get(key)
        return None if slot is None else slot[0].lines[slot[1]]

    def upsert(self, key: str, value: str, seq: int) -> Change:
        """Set a key's value. One that it already has leaves everything as it is."""
        line = map_line(key, value)
        before = self.size
        if key in self._slots:
            if self.line(key) == line:
                return Change(0, duplicate=True)
            self._remove(key)
        self._slots[key] = self.lines.add(line, utf8_size(line), seq)
        self._compact()
        self._replaced()
        return Change(self.size - before)

    def replace(self, entries: Mapping[str, str], seq: int) -> Change:
        """Hold `entries` only."""
        before, old = self.size, self.lines.text()
        self.lines = Lines()
        self._slots = {}
        for key, value in entries.items():
            line = map_line(key, value)
            self._slots[key] = self.lines.add(line, utf8_size(line), seq)
        self._replaced()
        return Change(self.size - before, self.lines.text() == old)

    def remove(self, entry: str) -> int:
        """Remove a key, named alone or by its exact line; 0 if it is not there."""
        key = entry
        if key not in self._slots:
            parsed = map_entry(entry)
            if parsed is None or self.line(parsed[0]) != map_line(*parsed):
                return 0
            key = parsed[0]
        self._remove(key)
        self._compact()
        self._replaced()
        return 1

    def _remove(self, key: str) -> None:
        slot = self._slots.pop(key)
        self.lines.remove(slot, utf8_size(slot[0].lines[slot[1]] or ""))

    def _compact(self) -> None:
        if self.lines.sparse:
            old, self.lines = self.lines, Lines()
            # Keys are re-inserted whenever their line is, so both are in the same order.
            for key, (_, line, seq) in zip(self._slots, old.forward(), strict=True):
                self._slots[key] = self.lines.add(line, utf8_size(line), seq)


def map_line(key: str, value: str) -> str:
    """How a map file writes an entry."""
    return f"{key}: {value}" if value else f"{key}:"


def map_entry(line: str) -> tuple[str, str] | None:
    """Key and value of a line of a map file; None if it is none."""
    key, colon, value = line.partition(": ")
    if not colon:
        key, colon, value = line.removesuffix(":"), line[-1:] if line.endswith(":") else "", ""
    return (key.strip(), value.strip()) if colon and key.strip() else None
