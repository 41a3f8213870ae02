"""What the lines of one memory file are like: what they repeat, name, begin with, and speak of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from automem.duplicates import bare
from meta.reviewers.rules.findings import WHOLE, FieldFigures
from meta.reviewers.rules.thresholds import pattern, thresholds

LONGEST = 20_000
"""Characters of one write that are looked at; an entry that is longer is not read to its end."""

_PLACE = re.compile(r"-?\d+ ?, ?-?\d+")
_FIELD = re.compile(r"\{([a-z_]+)\}")


@lru_cache(maxsize=64)
def template(entry: str) -> re.Pattern[str] | None:
    """What finds the fields of an entry in its lines; None where it names none, or cannot tell them apart."""
    parts, position, seen = [], 0, set()
    for found in _FIELD.finditer(entry):
        parts.append(re.escape(entry[position : found.start()]))
        parts.append(f"(?P={found[1]})" if found[1] in seen else f"(?P<{found[1]}>.*?)")
        seen.add(found[1])
        position = found.end()
    parts.append(re.escape(entry[position:]))
    return re.compile("".join(parts)) if seen else None


@dataclass
class Lines:
    """Sums over the lines of a file within one episode; `of` what came before is per episode.

    Attributes:
        entry: the file's, from ``scaffold.toml``.
    """

    entry: str = ""
    lines: int = 0
    chars: int = 0
    repeated_chars: int = 0
    placed: int = 0
    with_key: int = 0
    by_place: int = 0
    same_key: int = 0
    followed: int = 0
    short: int = 0
    short_again: int = 0
    topics: Counter[str] = field(default_factory=Counter)
    field_chars: Counter[str] = field(default_factory=Counter)
    field_repeated: Counter[str] = field(default_factory=Counter)
    _pieces: set[int] = field(default_factory=set)
    _keys: set[str] = field(default_factory=set)
    _shorts: set[int] = field(default_factory=set)

    def begin(self) -> None:
        """Another episode: nothing has been told yet."""
        self._pieces.clear()
        self._keys.clear()
        self._shorts.clear()

    def add(self, text: str, step: int, key: str = "") -> None:
        """Look at what one write put into the file; `key` is the key that it was filed under, if any."""
        for line in text[:LONGEST].split("\n"):
            if line.strip():
                self._add(line.strip(), step, key)

    def _add(self, line: str, step: int, key: str) -> None:
        words = thresholds()["text"]
        self.lines += 1
        self.chars += len(line)
        fields = self._fields(line)
        values = fields or {"": bare(line, step)}
        fresh: list[int] = []
        for name, value in values.items():
            repeated = self._repeated(value, fresh)
            self.repeated_chars += repeated
            if name:
                self.field_chars[name] += len(value)
                self.field_repeated[name] += repeated
        self._pieces.update(fresh)
        self._shorten(fields)
        self.placed += bool(key) or pattern(words["places"]).search(line) is not None
        key = key or self._key(line)
        self.with_key += bool(key)
        self.by_place += _PLACE.fullmatch(key) is not None
        self.same_key += bool(key) and key in self._keys
        if key:
            self._keys.add(key)
        for topic, words_of in thresholds()["topics"].items():
            self.topics[topic] += pattern(words_of).search(line) is not None

    def _fields(self, line: str) -> dict[str, str]:
        form = template(self.entry)
        found = form.fullmatch(line) or form.fullmatch(f"{line} ") if form else None
        self.followed += found is not None
        return found.groupdict() if found else {}

    def _shorten(self, fields: Mapping[str, str]) -> None:
        """Whether the short fields alone would say what they said before; a step number does not count."""
        most = thresholds()["line"]["short"]
        kept = [value for name, value in fields.items() if name != "step" and len(value) <= most]
        # What would take the place of a field that holds everything cannot be known.
        if not {"x", "y"} <= fields.keys() or WHOLE in fields:
            return
        mark = hash(bare(" | ".join(kept), 0))
        self.short += 1
        self.short_again += mark in self._shorts
        self._shorts.add(mark)

    def _repeated(self, text: str, fresh: list[int]) -> int:
        """Characters of the pieces that the file had been told before; those that it had not are added to `fresh`."""
        count = 0
        for piece in pattern(thresholds()["text"]["pieces"]).split(text):
            if piece.strip():
                mark = hash(piece.strip())
                count += len(piece) if mark in self._pieces else 0
                fresh.append(mark)
        return count

    @staticmethod
    def _key(line: str) -> str:
        words = thresholds()["text"]
        if found := pattern(words["coordinates"]).search(line):
            return f"{found[1]},{found[2]}"
        found = pattern(words["key"]).match(line)
        return found[1].lower() if found else ""

    def share(self, count: int) -> float:
        """Of the lines."""
        return count / self.lines if self.lines else 0.0

    def field_figures(self) -> dict[str, FieldFigures]:
        """Field of the entry -> figures, over the lines that follow the entry."""
        return {
            name: FieldFigures(chars / max(1, self.followed), self.field_repeated[name] / max(1, chars))
            for name, chars in self.field_chars.items()
        }
