"""The names and looks of Crafter's things, read from ``crafter.toml`` beside this file."""

from __future__ import annotations

import tomllib
from importlib import resources

_DATA = tomllib.loads(resources.files(__package__).joinpath("crafter.toml").read_text(encoding="utf-8"))

KINDS: tuple[str, ...] = tuple(_DATA["kinds"])
"""What a cell of the semantic map holds, by its number."""

VITALS: tuple[str, ...] = tuple(_DATA["vitals"])
"""Inventory items that are the player's state, each from 0 to 9."""

VIEW = (9, 9)
"""Width and height of the view in cells; the lowest two rows show the inventory."""

ACTIONS: dict[str, str] = _DATA["actions"]
"""BALROG's action names in the simulator's order, each with what it does."""

Look = tuple[str, str]
"""Two characters and their style."""

CELLS: dict[str, Look] = {kind: (look[0], look[1]) for kind, look in _DATA["cells"].items()}
PLAYER: dict[str, Look] = {facing: (look[0], look[1]) for facing, look in _DATA["player"].items()}

DIRECTIONS: dict[tuple[int, int], str] = {(-1, 0): "west", (1, 0): "east", (0, -1): "north", (0, 1): "south"}
"""Unit step (x to the east, y to the south) -> its name."""
