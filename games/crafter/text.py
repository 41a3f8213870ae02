"""Crafter's observation in BALROG's words (arXiv 2411.13543; default settings of its wrapper).

For each kind of thing in view, the text tells where the nearest one is: the number of
steps and the direction. Kinds appear in the order in which a scan from the western
column eastwards, each from north to south, first meets them; of several equally near
things the scan's first counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from games.crafter.tables import KINDS, VITALS
from games.protocol import Observation

_PLAYER = KINDS.index("player")
_SLEEPING = "You are sleeping, and will not be able take actions until energy is full."
_DEAD = "You died."
_NOTHING_SEEN = "You see nothing away from you."
_NO_ITEMS = "You have nothing in your inventory."


def describe(info: Mapping[str, Any]) -> Observation:
    """The observation that `info` holds, character for character as BALROG words it.

    Args:
        info: ``semantic`` (width x height array of kind numbers, indexed [x, y]), ``player_pos``
            and ``player_facing`` (x, y), ``view`` (width, height in cells, inventory rows
            included), ``inventory`` (item -> number), ``sleeping`` and ``dead`` (bools);
            ``achievements`` is not shown.

    At the edge of the map the view ends where the map ends; what lies beyond is "nothing".
    """
    return Observation(_surroundings(info), _status(info["inventory"]))


def _surroundings(info: Mapping[str, Any]) -> str:
    """What happened to the player, what is in view, and what is in front."""
    semantic = np.asarray(info["semantic"])
    x, y = (int(v) for v in info["player_pos"])
    width, height = semantic.shape
    view_x, view_y = (int(v) for v in info["view"])
    # The view reaches equally far both ways; two of its rows lie under the inventory.
    reach_x, reach_y = view_x // 2, view_y // 2 - 1
    west, east = min(reach_x, x), min(reach_x, width - 1 - x)
    north, south = min(reach_y, y), min(reach_y, height - 1 - y)
    cells = semantic[x - west : x + east + 1, y - north : y + south + 1].astype(np.uint8).ravel()
    by_distance, places = _order(west, east, north, south)
    nearest = cells[by_distance].tobytes()

    lines = [
        f"- {KINDS[kind]} {places[nearest.index(kind)]}" for kind in dict.fromkeys(cells.tobytes()) if kind != _PLAYER
    ]
    seen = "\n".join(["You see:", *lines]) if lines else _NOTHING_SEEN
    ahead_x, ahead_y = x + int(info["player_facing"][0]), y + int(info["player_facing"][1])
    in_view = x - west <= ahead_x <= x + east and y - north <= ahead_y <= y + south
    ahead = KINDS[semantic[ahead_x, ahead_y]] if in_view else "nothing"

    # BALROG leaves three empty lines after the state of the player.
    state = f"{_SLEEPING}\n\n\n\n" if info["sleeping"] else f"{_DEAD}\n\n\n\n" if info["dead"] else ""
    return f"{state}{seen}\n\nYou face {ahead} at your front."


def _status(inventory: Mapping[str, int]) -> str:
    """The four vital numbers, then what is carried."""
    vitals = [f"- {name}: {inventory[name]}/9" for name in VITALS]
    items = [f"- {name}: {count}" for name, count in inventory.items() if count and name not in VITALS]
    carried = ["Your inventory:", *items] if items else [_NO_ITEMS]
    return "\n".join(["Your status:", *vitals, "", *carried])


@lru_cache(maxsize=1024)
def _order(west: int, east: int, north: int, south: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Cells of a view that reaches so far from the player, nearest first, and the words for each.

    Returns indices into the flattened view (columns from west to east, each from north to
    south), and for each of them, in the same order, how the text tells its place.
    """
    offsets = [(x, y) for x in range(-west, east + 1) for y in range(-north, south + 1)]
    distance = np.array([abs(x) + abs(y) for x, y in offsets])
    order = np.argsort(distance, kind="stable")
    return order, tuple(_place(*offsets[i]) for i in order)


def _place(x: int, y: int) -> str:
    """``3 steps to your north-east`` for an offset from the player in cells."""
    steps = abs(x) + abs(y)
    north_south = "north" if y < 0 else "south" if y > 0 else ""
    west_east = "west" if x < 0 else "east" if x > 0 else ""
    direction = "-".join(filter(None, (north_south, west_east)))
    return f"{steps} step{'s' if steps > 1 else ''} to your {direction}"
