"""A Boxoban level, and the text files that hold them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

SIDE = 10
BOXES = 4

LEVEL_SETS = {"hard": Path("hard"), "medium": Path("medium/train")}
"""Name of a set, and the folder of its files below the folder of all levels."""

Cell = tuple[int, int]
"""Column and row, from 0 at the upper left."""


class BoxobanError(RuntimeError):
    """Level files are missing, broken, or cannot be fetched; the message says where and what to do."""


@dataclass(frozen=True, slots=True)
class Level:
    """One room.

    Attributes:
        rows: ten strings of ten: ``#`` wall, space floor, ``.`` goal, ``$`` box, ``@`` player.
        name: where it comes from, e.g. ``hard/000.txt 17``.
    """

    rows: tuple[str, ...]
    name: str

    def find(self, symbol: str) -> tuple[Cell, ...]:
        """Cells that hold `symbol`, row by row."""
        return tuple((x, y) for y, row in enumerate(self.rows) for x, cell in enumerate(row) if cell == symbol)


def cache_folder() -> Path:
    """Where fetched levels are kept for this user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "automem" / "boxoban-levels"


def parse(text: str, name: str) -> tuple[Level, ...]:
    """All levels of one file: each a line ``; number``, ten rows, an empty line.

    Raises:
        BoxobanError: naming `name` and the line, at the first thing that is not so.
    """
    lines = text.splitlines()
    levels = []
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        if not lines[at].startswith(";"):
            raise BoxobanError(f"{name}, line {at + 1}: expected '; number' before a level, found {lines[at]!r}")
        number = lines[at][1:].strip()
        rows = tuple(lines[at + 1 : at + 1 + SIDE])
        _check(rows, name, at + 2)
        levels.append(Level(rows, f"{name} {number}"))
        at += 1 + SIDE
        if at < len(lines) and lines[at].strip():
            raise BoxobanError(f"{name}, line {at + 1}: expected an empty line after {SIDE} rows, found {lines[at]!r}")
    if not levels:
        raise BoxobanError(f"{name}, line 1: no level in this file")
    return tuple(levels)


def _check(rows: tuple[str, ...], name: str, first: int) -> None:
    for line, row in enumerate(rows, first):
        if len(row) != SIDE or not set(row) <= set("# .$@"):
            raise BoxobanError(f"{name}, line {line}: a row has {SIDE} cells out of '# .$@', not {row!r}")
    if len(rows) < SIDE:
        raise BoxobanError(f"{name}, line {first + len(rows)}: the file ends within a level of {len(rows)} rows")
    text = "".join(rows)
    for symbol, count, meaning in (("@", 1, "player"), ("$", BOXES, "boxes"), (".", BOXES, "goals")):
        if text.count(symbol) != count:
            raise BoxobanError(
                f"{name}, line {first}: a level has {count} {meaning} ('{symbol}'), this one {text.count(symbol)}"
            )


def read(path: Path, name: str) -> tuple[Level, ...]:
    """The levels of a file, parsed once per process and version of the file."""
    try:
        stat = path.stat()
        return _read(path, name, stat.st_mtime_ns, stat.st_size)
    except (OSError, UnicodeDecodeError) as error:
        raise BoxobanError(f"cannot read Boxoban levels from {path}: {error}") from error


@lru_cache(maxsize=8)
def _read(path: Path, name: str, changed: int, size: int) -> tuple[Level, ...]:
    return parse(path.read_text("utf-8"), name)
