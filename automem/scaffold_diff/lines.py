"""What differs between two texts, line by line and word by word.

The standard library's difflib aligns any sequences, lines as well as the words of a line; scaffold files
are short enough for it, and where one is not (`MOST_CELLS`) the whole middle counts as rewritten.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

CONTEXT = 3
"""Lines shown around a change."""

MOST_CELLS = 4_000_000
"""Old lines times new lines, after the common beginning and end, that are still aligned."""

_MOST_PAIRS = 2_500
"""Removed lines times added lines of one change that are paired by likeness; beyond it, in order."""
_MOST_WORDS = 600
"""Words of a line that are still compared."""
_WORD_WORK = 5_000_000
"""What comparing words may cost in one comparison, in matches looked at; lines after that have no words marked."""
_ALIKE = 0.5
"""Share of words in common from which a line counts as a changed one and not as another."""

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")

Part = tuple[str, bool]
"""A piece of a line, and whether it differs from the line on the other side."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of one side.

    Attributes:
        number: from 1.
        parts: the text without its newline, in pieces.
        ends: it ends with a newline; only the last line of a text may not.
    """

    number: int
    parts: tuple[Part, ...]
    ends: bool = True

    @property
    def text(self) -> str:
        """The line without its newline."""
        return "".join(text for text, _ in self.parts)


@dataclass(frozen=True, slots=True)
class Row:
    """Lines that stand side by side; one of them may be missing, both are there in an unchanged row."""

    old: Line | None
    new: Line | None
    same: bool = False


@dataclass(frozen=True, slots=True)
class Hunk:
    """Changes near each other, with the unchanged lines around them."""

    rows: tuple[Row, ...]

    @property
    def heading(self) -> str:
        """``@@ -12,4 +12,6 @@``: first line and number of lines on each side."""
        return f"@@ -{_span([row.old for row in self.rows])} +{_span([row.new for row in self.rows])} @@"

    def unified(self) -> Iterator[tuple[Literal[" ", "-", "+"], Line]]:
        """The lines one below the other; of a change, what was removed comes first."""
        added: list[Line] = []
        for row in self.rows:
            if row.same and row.new is not None:
                yield from (("+", line) for line in added)
                added = []
                yield " ", row.new
                continue
            if row.old is not None:
                # A row without a new line between two that have one still belongs to the same change.
                yield "-", row.old
            if row.new is not None:
                added.append(row.new)
        yield from (("+", line) for line in added)


def _span(lines: Sequence[Line | None]) -> str:
    there = [line.number for line in lines if line is not None]
    return f"{there[0]},{len(there)}" if there else "0,0"


@dataclass(frozen=True, slots=True)
class TextDiff:
    """What differs between two texts.

    Attributes:
        hunks: the changes; none when the texts are the same.
        added: number of lines that only the new text has.
        removed: number of lines that only the old text has.
        aligned: False when the texts were too long to be compared line by line.
    """

    hunks: tuple[Hunk, ...]
    added: int
    removed: int
    aligned: bool = True


def split(text: str) -> list[str]:
    """Lines with their newlines. Only ``\\n`` ends a line: a stray ``\\r`` or form feed is part of it, and shown."""
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def compare(old: str, new: str, context: int = CONTEXT) -> TextDiff:
    """What differs between two texts, with `context` unchanged lines around each change."""
    a, b = split(old), split(new)
    opcodes, aligned = _opcodes(a, b)
    rows: list[Row] = []
    added = removed = 0
    work = _Work(_WORD_WORK)
    for tag, i1, i2, j1, j2 in opcodes:
        if tag == "equal":
            rows += [
                Row(_line(a, i), _line(b, j), same=True) for i, j in zip(range(i1, i2), range(j1, j2), strict=True)
            ]
        else:
            rows += _changed(a, b, range(i1, i2), range(j1, j2), work)
            added, removed = added + j2 - j1, removed + i2 - i1
    return TextDiff(tuple(_hunks(rows, context)), added, removed, aligned)


def _opcodes(a: list[str], b: list[str]) -> tuple[list[tuple[str, int, int, int, int]], bool]:
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    middle_a, middle_b = a[start : len(a) - end], b[start : len(b) - end]
    aligned = len(middle_a) * len(middle_b) <= MOST_CELLS
    if aligned:
        found = [
            (tag, i1 + start, i2 + start, j1 + start, j2 + start)
            for tag, i1, i2, j1, j2 in SequenceMatcher(None, middle_a, middle_b).get_opcodes()
        ]
    else:
        found = [("replace", start, len(a) - end, start, len(b) - end)]
    before = [("equal", 0, start, 0, start)] if start else []
    after = [("equal", len(a) - end, len(a), len(b) - end, len(b))] if end else []
    return [*before, *found, *after], aligned


def _line(lines: list[str], i: int, parts: tuple[Part, ...] | None = None) -> Line:
    text = lines[i].removesuffix("\n")
    return Line(i + 1, parts if parts is not None else ((text, False),), lines[i].endswith("\n"))


@dataclass
class _Work:
    """What may still be spent on comparing words."""

    left: int


def _changed(a: list[str], b: list[str], old: range, new: range, work: _Work) -> Iterator[Row]:
    """Rows of one change: lines that are alike side by side, the others in order between them."""
    i, j = old.start, new.start
    for x, y in [*_pairs(a, b, old, new), (old.stop, new.stop)]:
        for left, right in zip_longest(range(i, x), range(j, y)):
            yield Row(
                None if left is None else _line(a, left),
                None if right is None else _line(b, right),
            )
        if x < old.stop and y < new.stop:
            before, after = _words(a[x].removesuffix("\n"), b[y].removesuffix("\n"), work)
            yield Row(_line(a, x, before), _line(b, y, after))
        i, j = x + 1, y + 1


def _pairs(a: list[str], b: list[str], old: range, new: range) -> list[tuple[int, int]]:
    """Which removed line became which added one, in order: the choice with the most likeness in all."""
    if len(old) * len(new) > _MOST_PAIRS:
        return [(i, j) for i, j in zip(old, new, strict=False) if _likeness(_count(a[i]), _count(b[j])) >= _ALIKE]
    left, right = [_count(a[i]) for i in old], [_count(b[j]) for j in new]
    alike = [[_likeness(x, y) for y in right] for x in left]
    best = [[0.0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in reversed(range(len(left))):
        for j in reversed(range(len(right))):
            pair = alike[i][j] + best[i + 1][j + 1] if alike[i][j] >= _ALIKE else 0.0
            best[i][j] = max(pair, best[i + 1][j], best[i][j + 1])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if alike[i][j] >= _ALIKE and best[i][j] == alike[i][j] + best[i + 1][j + 1]:
            pairs.append((old[i], new[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _count(line: str) -> Counter[str]:
    return Counter(word for word in _WORDS.findall(line[:4_000]) if not word.isspace())


def _likeness(a: Counter[str], b: Counter[str]) -> float:
    """Share of words in common, in [0, 1]; their order does not count."""
    total = a.total() + b.total()
    return 2 * (a & b).total() / total if total else 1.0


def words(old: str, new: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Two lines in pieces, with those marked that differ between them."""
    return _words(old, new, _Work(_WORD_WORK))


def _words(old: str, new: str, work: _Work) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    if len(a) > _MOST_WORDS or len(b) > _MOST_WORDS:
        return ((old, True),), ((new, True),)
    left, right = _count(old), _count(new)
    # Each block that is found looks at the matches that are left; how many blocks there will be is a guess.
    matches = sum(n * right[word] for word, n in left.items())
    work.left -= len(a) + len(b) + matches * min(left.total(), right.total()) // 4
    if work.left < 0:
        return ((old, False),), ((new, False),)
    before: list[Part] = []
    after: list[Part] = []
    # Spaces are alike everywhere: they belong to the words beside them, and no match begins with one.
    for tag, i1, i2, j1, j2 in SequenceMatcher(str.isspace, a, b, autojunk=False).get_opcodes():
        changed = tag != "equal"
        if i2 > i1:
            before.append(("".join(a[i1:i2]), changed))
        if j2 > j1:
            after.append(("".join(b[j1:j2]), changed))
    return tuple(before), tuple(after)


def _hunks(rows: list[Row], context: int) -> Iterator[Hunk]:
    near = [False] * len(rows)
    for i, row in enumerate(rows):
        if not row.same:
            near[max(0, i - context) : i + context + 1] = [True] * len(rows[max(0, i - context) : i + context + 1])
    hunk: list[Row] = []
    for row, shown in zip(rows, near, strict=True):
        if shown:
            hunk.append(row)
        elif hunk:
            yield Hunk(tuple(hunk))
            hunk = []
    if hunk:
        yield Hunk(tuple(hunk))
