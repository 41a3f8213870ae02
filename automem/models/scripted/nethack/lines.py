"""Straight lines on the map: where to aim a ray, which way to kick a thing."""

from __future__ import annotations

from automem.models.scripted.nethack.screen import WIDTH
from automem.models.scripted.nethack.terrain import MONSTERS, NAMES, OFFSETS, Terrain

_RAY = 7
"""Squares that a ray surely covers."""

THINGS = "(/"
"""How the things of the quests are shown."""


def aim(terrain: Terrain, at: int) -> str | None:
    """Where to let out cold: straight toward lava that is near and has floor behind it."""
    for name in ("east", "west", "north", "south"):
        cells = [at + OFFSETS[name] * i for i in range(1, _RAY)]
        shown = "".join(terrain.cells[cell] for cell in cells if 0 <= cell < len(terrain.cells))
        before, lava, after = shown.partition("}")
        if lava and all(c in ".#" for c in before) and after.lstrip("}")[:1] in (".", "#", ">"):
            return name
    return None


def crowd(terrain: Terrain, at: int) -> list[int]:
    """Letters of monsters close to a place."""
    x, y = at % WIDTH, at // WIDTH
    return [
        cell
        for cell, shown in enumerate(terrain.cells)
        if shown.isalpha() and max(abs(cell % WIDTH - x), abs(cell // WIDTH - y)) <= 5
    ]


def kicks(terrain: Terrain, thing: int) -> list[int]:
    """Directions in which a thing can be kicked without reaching lava, as offsets."""
    good = []
    for offset in NAMES:
        beyond = thing + offset
        behind = thing - offset
        if not (terrain.cost[behind] and terrain.cells[beyond] == "."):
            continue
        while 0 <= beyond < len(terrain.cells) and terrain.cells[beyond] == ".":
            beyond += offset
        if terrain.cells[beyond] != "}":
            good.append(offset)
    return good


def beside(terrain: Terrain, at: int) -> str | None:
    """The direction of a monster next to a place."""
    return next((name for name, offset in OFFSETS.items() if terrain.cells[at + offset] in MONSTERS), None)


def loose_thing(terrain: Terrain, at: int) -> str | None:
    """The direction in which a thing next to a place can be kicked."""
    for name, offset in OFFSETS.items():
        if terrain.cells[at + offset] in THINGS and offset in kicks(terrain, at + offset):
            return name
    return None
