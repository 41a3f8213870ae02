"""On which line of a TOML file each key and each element stands.

``tomllib`` gives values without their places. This reads a text that ``tomllib`` has accepted,
so it only has to find its way, not to judge.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

Path = tuple[str | int, ...]
"""Keys and indices from the top: ``("files", 2, "kind")``."""

_DEEPEST = 8
"""Parts of a key that are kept; a scaffold.toml has four at most."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_STRING = re.compile(
    r'"""(?:[^\\"]|\\.|"{1,2}(?!"))*"{3,5}'
    r"|'''(?:[^']|'{1,2}(?!'))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_BARE = re.compile(r"[^\s=.\[\]{},#\"']+")
_VALUE = re.compile(r"[^,\]}#\n]*")
_ESCAPE = re.compile(r'\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|["\\bfnrt])')
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}


class Positions:
    """Lines of the keys and elements of a TOML text."""

    def __init__(self, text: str) -> None:
        """Args: text: the file, one that ``tomllib`` has accepted."""
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._lines: dict[Path, int] = {(): 1}
        try:
            _Reader(text, self).read()
        except (IndexError, RecursionError):
            pass  # lines found until here are right; what is asked for beyond them gets its parent's line

    def note(self, path: Path, offset: int) -> None:
        """`path` stands at `offset`; where it stands several times (a table's own header), the first counts."""
        line = bisect_right(self._starts, offset)
        for end in range(1, len(path) + 1):
            self._lines.setdefault(path[:end], line)

    def line(self, path: Sequence[str | int]) -> int:
        """The line of a path, or of the nearest thing around it that is there; 1 when nothing of it is."""
        wanted = tuple(path)
        while wanted not in self._lines:
            wanted = wanted[:-1]
        return self._lines[wanted]


class _Reader:
    """One pass over the text."""

    def __init__(self, text: str, positions: Positions) -> None:
        self.text = text
        self.positions = positions
        self.at = 0
        self.counts: dict[Path, int] = {}

    def read(self) -> None:
        table: Path = ()
        while True:
            self._skip(_BLANK)
            if self.at >= len(self.text):
                return
            start = self.at
            if self.text.startswith("[[", self.at):
                self.at += 2
                name = self._within_arrays(self._key())
                self.at += 2
                index = self.counts.get(name, -1) + 1
                self.counts[name] = index
                table = (*name, index)
                self.positions.note(table, start)
            elif self.text[self.at] == "[":
                self.at += 1
                table = self._within_arrays(self._key())
                self.at += 1
                self.positions.note(table, start)
            else:
                self._pair(table)

    def _within_arrays(self, key: Path) -> Path:
        """A header's key with the index of the newest element where it goes through an array of tables."""
        path: Path = ()
        for i, part in enumerate(key):
            path = (*path, part)
            if i < len(key) - 1 and path in self.counts:
                path = (*path, self.counts[path])
        return path

    def _pair(self, table: Path) -> None:
        start = self.at
        path = (*table, *self._key())
        self.positions.note(path, start)
        self.at += 1  # =
        self._skip(_SPACE)
        self._value(path)

    def _key(self) -> Path:
        parts: list[str | int] = []
        while True:
            self._skip(_SPACE)
            if self.text[self.at] in "\"'":
                part = self._quoted()
            else:
                found = _BARE.match(self.text, self.at)
                if found is None:
                    raise IndexError("no key")
                part = found[0]
                self.at = found.end()
            if len(parts) < _DEEPEST:
                parts.append(part)
            self._skip(_SPACE)
            if self.text[self.at] != ".":
                return tuple(parts)
            self.at += 1

    def _quoted(self) -> str:
        """The text of a quoted key."""
        written = self._string()
        if written[0] == "'":
            return written[1:-1]
        return _ESCAPE.sub(lambda m: _SHORT.get(m[1]) or chr(int(m[1][1:], 16)), written[1:-1])

    def _string(self) -> str:
        """A string as it is written, with its quotes."""
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise IndexError("no string")
        self.at = found.end()
        return found[0]

    def _value(self, path: Path) -> None:
        first = self.text[self.at]
        if first in "\"'":
            self._string()
        elif first == "[":
            self._array(path)
        elif first == "{":
            self._inline(path)
        else:
            self._skip(_VALUE)

    def _array(self, path: Path) -> None:
        self.at += 1
        index = 0
        while True:
            self._skip(_BLANK)
            if self.text[self.at] == "]":
                self.at += 1
                return
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self.positions.note((*path, index), self.at)
            self._value((*path, index))
            index += 1

    def _inline(self, path: Path) -> None:
        self.at += 1
        while True:
            self._skip(_BLANK)
            if self.text[self.at] == "}":
                self.at += 1
                return
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self._pair(path)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
