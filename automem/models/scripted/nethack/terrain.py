"""What the characters of the map mean: where one can walk, what a step costs, where doors are.

The same character stands for different things (``|`` is a wall or an open door, ``+`` a
closed door or a book), so neighbours decide; what is next to the player is named in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from automem.models.scripted.nethack.screen import DIRECTIONS, FIRST_ROW, HEIGHT, LAST_ROW, WIDTH, Screen

ORTHOGONAL = (1, -1, WIDTH, -WIDTH)
DIAGONAL = (1 - WIDTH, 1 + WIDTH, WIDTH - 1, -WIDTH - 1)
AROUND = ORTHOGONAL + DIAGONAL
"""Offsets to the eight neighbours in a map of rows joined end to end."""

OFFSETS = {name: dx + dy * WIDTH for name, (dx, dy) in DIRECTIONS.items()}
NAMES = {offset: name for name, offset in OFFSETS.items()}

BLOCKED = 0
"""Cost of a cell that cannot be entered."""

_OPEN = frozenset(".<>_{\\#!?/=()[*$%0,")
MONSTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ@&:;~'")
_COSTLY = {"`": 6, "^": 25, '"': 40}
_WALL = frozenset("|-+")
_FLOOR = frozenset(".<>_{")
_OBSTACLES = ("statue", "bars", "tree", "lava", "water", "pool", "moat", "wall of", "raised drawbridge")
_SESSILE = ("floating eye", "blue jelly", "acid blob", "spotted jelly", "cockatrice", "chickatrice", "green mold",
            "yellow mold", "brown mold", "red mold", "violet fungus", "shrieker", "gas spore")  # fmt: skip


_SESSILE_CLASSES = frozenset("Fje")
_KEEPERS = ("shopkeeper", "watchman", "watch captain", "guard", "aligned priest", "Oracle")


@dataclass(frozen=True, slots=True, eq=False)
class Terrain:
    """The map, read. Compared by identity, so that it can stand in caches.

    Attributes:
        cells: the map's characters, rows joined; under the player, what was probably there.
        cost: what entering each cell costs, in steps; `BLOCKED` where one cannot.
        doors: cells that are entered and left straight only.
        closed: doors that are shut.
        hostile: direction -> name, for monsters next to the player that one should fight.
        harmful: cells next to the player whose monster is better not touched.
    """

    cells: str
    cost: tuple[int, ...]
    doors: frozenset[int]
    closed: frozenset[int]
    hostile: dict[str, str]
    harmful: frozenset[int]

    def find(self, character: str) -> list[int]:
        """Cells that show `character`."""
        return [i for i, shown in enumerate(self.cells) if shown == character]


@lru_cache(maxsize=16)
def read_terrain(screen: Screen) -> Terrain:
    """Read the map of a screen."""
    cells = "".join(row if FIRST_ROW <= y <= LAST_ROW else " " * WIDTH for y, row in enumerate(screen.rows[:HEIGHT]))
    if screen.here:
        cells = _uncovered(cells, screen.at)
    cost = [BLOCKED] * len(cells)
    doors: set[int] = set()
    closed: set[int] = set()
    for i, shown in enumerate(cells):
        if shown == " ":
            continue
        if shown in _OPEN:
            cost[i] = 1
        elif shown in MONSTERS:
            cost[i] = BLOCKED if shown in _SESSILE_CLASSES else 3
        elif shown in _COSTLY:
            cost[i] = _COSTLY[shown]
        elif shown in _WALL:
            door = _door(cells, i, shown)
            if door:
                doors.add(i)
                cost[i] = 4 if door == "closed" else 1
                if door == "closed":
                    closed.add(i)
            elif shown == "+":
                cost[i] = 1
    hostile: dict[str, str] = {}
    harmful: set[int] = set()
    if screen.here:
        cost[screen.at] = 1
        if _in_gap(cells, cost, screen.at):
            doors.add(screen.at)
        for direction, names in screen.adjacent().items():
            if direction in OFFSETS:
                cell = screen.at + OFFSETS[direction]
                _look_beside(cell, direction, names, cells, cost, doors, closed, hostile, harmful)
    return Terrain(cells, tuple(cost), frozenset(doors), frozenset(closed), hostile, frozenset(harmful))


def _door(cells: str, i: int, shown: str) -> str:
    """ "open", "closed" or nothing, for a character that may be a door or a wall."""
    west, east, north, south = cells[i - 1], cells[i + 1], cells[i - WIDTH], cells[i + WIDTH]
    across = west in _WALL and east in _WALL
    along = north in _WALL and south in _WALL
    if shown == "+":
        return "" if sum(beside in _FLOOR for beside in (west, east, north, south)) >= 3 else "closed"
    if shown == "|":
        return "open" if across and north != "|" and south != "|" else ""
    return "open" if along and west != "-" and east != "-" else ""


def _uncovered(cells: str, i: int) -> str:
    """The map with what the player most likely stands on in the player's place."""
    around = cells[i - 1] + cells[i + 1] + cells[i - WIDTH] + cells[i + WIDTH]
    diagonal = cells[i - WIDTH - 1] + cells[i - WIDTH + 1] + cells[i + WIDTH - 1] + cells[i + WIDTH + 1]
    flanked = (around[0] in "|-" and around[1] in "|-") or (around[2] in "|-" and around[3] in "|-")
    corridor = "#" in around + diagonal and not flanked and not any(c in _FLOOR for c in around)
    return cells[:i] + ("#" if corridor else ".") + cells[i + 1 :]


def _in_gap(cells: str, cost: list[int], i: int) -> bool:
    """A place between two walls may be a door, which the player standing in it hides.

    Corridors meet a real door straight: where a way leads on aslant only, there is none.
    """
    if cells[i - 1] in "|-" and cells[i + 1] in "|-":
        ahead, aside = WIDTH, 1
    elif cells[i - WIDTH] in "|-" and cells[i + WIDTH] in "|-":
        ahead, aside = 1, WIDTH
    else:
        return False
    sides = (i - ahead, i + ahead)
    return not any(not cost[side] and (cost[side - aside] or cost[side + aside]) for side in sides)


def _look_beside(
    cell: int,
    direction: str,
    names: list[str],
    cells: str,
    cost: list[int],
    doors: set[int],
    closed: set[int],
    hostile: dict[str, str],
    harmful: set[int],
) -> None:
    """Correct one neighbour of the player by what the text calls it."""
    shown = cells[cell] if 0 <= cell < len(cells) else " "
    for name in names:
        if "open door" in name or "closed door" in name:
            doors.add(cell)
            cost[cell] = 4 if "closed" in name else 1
            if "closed" in name:
                closed.add(cell)
        elif any(obstacle in name for obstacle in _OBSTACLES) and "corpse" not in name:
            cost[cell] = BLOCKED
        elif "trap door" in name or name == "hole":
            cost[cell] = 1
        elif shown in MONSTERS:
            if name.startswith(("tame ", "peaceful ")):
                cost[cell] = 2 if name.startswith("tame ") else 8
            elif any(other in name for other in _SESSILE + _KEEPERS):
                cost[cell] = BLOCKED
                harmful.add(cell)
            elif _is_monster(name, shown):
                hostile[direction] = name
                cost[cell] = 3


_THINGS = ("wall", "corner", "dark area", "door", "stairs", "fountain", "altar", "corpse", "boulder", "corridor")


def _is_monster(name: str, shown: str) -> bool:
    return not any(thing in name for thing in _THINGS)
