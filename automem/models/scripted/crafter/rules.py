"""What the scripted player knows of Crafter's rules, from ``rules.toml`` beside this file.

Materials are bits, so that what a cell may be is one small integer.
"""

from __future__ import annotations

import tomllib
from importlib import resources

_DATA = tomllib.loads(resources.files(__package__).joinpath("rules.toml").read_text(encoding="utf-8"))

MATERIALS: tuple[str, ...] = tuple(_DATA["materials"])
CREATURES: frozenset[str] = frozenset(_DATA["creatures"])
VITALS: tuple[str, ...] = tuple(_DATA["vitals"])
VITAL_MAX: int = _DATA["vital_max"]
REACH: tuple[int, int] = (_DATA["view"][0] // 2, _DATA["view"][1] // 2)
"""How far the view reaches to each side, in cells (x, y)."""
AREA: tuple[int, int] = tuple(_DATA["area"])
DAY: int = _DATA["day"]
RIPE_AFTER: int = _DATA["ripe_after"]
ALIVE_WITHIN: int = _DATA["alive_within"]
NEARBY: int = _DATA["nearby"]
COLLECT: dict[str, tuple[str, ...]] = {thing: tuple(tools) for thing, tools in _DATA["collect"].items()}
PLACE: dict[str, dict[str, int]] = _DATA["place"]
MAKE: dict[str, dict[str, int]] = _DATA["make"]

BIT: dict[str, int] = {name: 1 << i for i, name in enumerate(MATERIALS)}
EDGE: int = 1 << len(MATERIALS)
"""Beyond the end of the world."""
BIT["nothing"] = EDGE
ANY: int = (1 << len(MATERIALS)) - 1
"""A cell of which nothing is known (the end of the world is learned only by looking at it)."""
SEEN: int = ANY & ~BIT["plant"]
"""A cell that was in view, but of which nothing was kept."""
WALKABLE: int = sum(BIT[name] for name in _DATA["walkable"])
STANDS_ON: dict[str, int] = {name: sum(BIT[m] for m in on) for name, on in _DATA["stands_on"].items()}
NAME: dict[int, str] = {bit: name for name, bit in BIT.items()}

DIRECTIONS: dict[str, tuple[int, int]] = {"west": (-1, 0), "north": (0, -1), "south": (0, 1), "east": (1, 0)}
"""Name -> unit step, x to the east and y to the south, in the order in which the text names ties."""
FACING: dict[tuple[int, int], str] = {step: name for name, step in DIRECTIONS.items()}
MOVES: dict[str, tuple[int, int]] = {f"Move {name.capitalize()}": step for name, step in DIRECTIONS.items()}
MOVE_OF: dict[tuple[int, int], str] = {step: action for action, step in MOVES.items()}


def tool_action(tool: str) -> str:
    """``Make Wood Pickaxe`` for ``wood_pickaxe``."""
    return "Make " + " ".join(word.capitalize() for word in tool.split("_"))


def daylight(step: int) -> float:
    """Light at a step, in [0, 1]; below about 0.5 zombies grow many."""
    import math

    return 1 - abs(math.cos(math.pi * ((step / DAY) % 1 + 0.3))) ** 3
