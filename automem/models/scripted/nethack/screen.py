"""The text of a NetHack or MiniHack observation, taken apart.

The text names the message, what is in view in words, the cursor, the terminal's map and
the inventory; nothing here knows the game itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

WIDTH = 80
HEIGHT = 24
FIRST_ROW, LAST_ROW = 1, 21
"""Terminal rows that hold the map; row 0 is the message, 22 and 23 the status."""

DIRECTIONS: Mapping[str, tuple[int, int]] = {
    "north": (0, -1),
    "east": (1, 0),
    "south": (0, 1),
    "west": (-1, 0),
    "northeast": (1, -1),
    "southeast": (1, 1),
    "southwest": (-1, 1),
    "northwest": (-1, -1),
}

_SECTION = re.compile(r"^(message|language observation|cursor|map|inventory):$", re.M)
_CURSOR = re.compile(r"\(x=(\d+), y=(\d+)\)")
_SEEN = re.compile(r"^(.+?) (adjacent|very near|near|very far|far) ([a-z, ]+)$")
_ITEM = re.compile(r"^(\S): (.+)$", re.M)
_LEVEL = re.compile(r"(?:Dlvl:|Home |Astral)(\d+)?")
_HP = re.compile(r"HP:(-?\d+)\((\d+)\)")
_TURN = re.compile(r"\bT:(\d+)")
_EXPERIENCE = re.compile(r"(?:Xp|Exp):(\d+)")


@dataclass(frozen=True, slots=True, eq=False)
class Screen:
    """One observation. Compared by identity, so that it can stand in caches for its text.

    Attributes:
        message: what the game says, pages joined; may hold a prompt.
        seen: lines of the view in words.
        here: the cursor is on the player, so that `x` and `y` are the player's place.
        x, y: the cursor, in terminal columns and rows.
        rows: 24 terminal rows of 80 characters; row 0 is empty.
        status: the second status line, as shown.
        level, turn, hp, max_hp, experience: read from it; -1 where it does not say.
        inventory: letter -> item.
    """

    message: str
    seen: tuple[str, ...]
    here: bool
    x: int
    y: int
    rows: tuple[str, ...]
    status: str
    level: int
    turn: int
    hp: int
    max_hp: int
    experience: int
    inventory: Mapping[str, str]

    @property
    def at(self) -> int:
        """The cursor as an index into the map, row by row."""
        return self.y * WIDTH + self.x

    def adjacent(self) -> dict[str, list[str]]:
        """Direction -> names of what is next to the player there, in the order of the text."""
        around: dict[str, list[str]] = {}
        for line in self.seen:
            found = _SEEN.match(line)
            if found is None or found[2] != "adjacent":
                continue
            for direction in re.split(r", and |, | and ", found[3]):
                around.setdefault(direction.strip(), []).append(found[1])
        return around

    def names(self, part: str) -> bool:
        """True where any line of the view names `part`."""
        return any(part in line for line in self.seen)


@lru_cache(maxsize=64)
def read_screen(text: str) -> Screen:
    """Take an observation apart. Missing parts are empty; nothing raises."""
    parts: dict[str, str] = {}
    marks = list(_SECTION.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    for mark, end in zip(marks, ends, strict=False):
        if mark[1] == "inventory" or mark[1] not in parts:
            parts[mark[1]] = text[mark.end() + 1 : end]
    cursor = parts.get("cursor", "")
    place = _CURSOR.search(cursor)
    x, y = (min(int(place[1][:3]), WIDTH - 1), min(int(place[2][:3]), HEIGHT - 1)) if place else (0, 0)
    drawn = parts.get("map", "").split("\n")[: HEIGHT - 1]
    rows = ["".ljust(WIDTH), *(row[:WIDTH].ljust(WIDTH) for row in drawn)]
    rows += ["".ljust(WIDTH)] * (HEIGHT - len(rows))
    status = rows[HEIGHT - 1].strip()
    return Screen(
        message=" ".join(parts.get("message", "").split()),
        seen=tuple(line for line in parts.get("language observation", "").split("\n") if line),
        here=cursor.startswith("Yourself") and FIRST_ROW <= y <= LAST_ROW,
        x=x,
        y=y,
        rows=tuple(rows),
        status=status,
        level=_number(_LEVEL, status),
        turn=_number(_TURN, status),
        hp=_number(_HP, status),
        max_hp=_number(_HP, status, 2),
        experience=_number(_EXPERIENCE, status),
        inventory=dict(_ITEM.findall(parts.get("inventory", ""))),
    )


def _number(pattern: re.Pattern[str], text: str, group: int = 1) -> int:
    found = pattern.search(text)
    return int(found[group][:9]) if found and found[group] else -1


_ACTION = re.compile(r"^- ([^\n:]+): ", re.M)


@lru_cache(maxsize=16)
def actions_in(system: str) -> frozenset[str]:
    """Names of the actions that the system message lists, and of anything else listed alike."""
    return frozenset(_ACTION.findall(system))
