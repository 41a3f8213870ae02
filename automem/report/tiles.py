"""Crafter's picture as what is drawn where: names of the simulator's own textures, cell by cell.

A picture of 576 x 576 pixels is some 70 bytes so, and the reader draws it from one small sheet of textures.
The one thing that is not the game's is the grain of the night, which the simulator takes from its random numbers.
"""

from __future__ import annotations

import base64
import io
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from games.crafter.tables import VIEW

if TYPE_CHECKING:
    from games.crafter.world import Env

SIDE = 16
"""Pixels of a texture, each way."""

_FIRST = 0x30
"""Character that stands for the first look of a cell."""


class Tiles:
    """Packs the pictures of an episode.

    Attributes:
        looks: what a cell can look like: names of textures, drawn over each other; none beyond the map's edge.
        items: what can be carried, in the order in which it is shown.
    """

    def __init__(self) -> None:
        self.looks: list[tuple[str, ...]] = []
        self.items: list[str] = []

    def add(self, env: Env) -> dict[str, Any]:
        """``cells``: a character a cell, row by row; ``items``: a number each; ``light``: 0 to 1; ``asleep``."""
        width, height = VIEW[0], VIEW[1] - 2
        x, y = (int(v) for v in env.player.pos)
        cells = [
            self._look(env, (column, row))
            for row in range(y - height // 2, y + height // 2 + 1)
            for column in range(x - width // 2, x + width // 2 + 1)
        ]
        inventory = env.player.inventory
        self.items = self.items or list(inventory)
        return {
            "cells": "".join(chr(_FIRST + cell) for cell in cells),
            "items": [int(inventory[item]) for item in self.items],
            "light": round(float(env.world.daylight), 2),
            "asleep": bool(env.player.sleeping),
        }

    def _look(self, env: Env, position: tuple[int, int]) -> int:
        area_x, area_y = env.world.area
        if 0 <= position[0] < area_x and 0 <= position[1] < area_y:
            material, thing = env.world[position]
            look = (material or "unknown", *([thing.texture] if thing is not None else []))
        else:
            look = ()
        if look not in self.looks:
            self.looks.append(look)
        return self.looks.index(look)


@cache
def sheet() -> dict[str, Any]:
    """The simulator's textures on one picture: ``png`` (base64), ``side`` and ``places`` (name -> column and row).

    Raises ModuleNotFoundError where crafter is not installed.
    """
    from crafter import constants
    from PIL import Image

    found = sorted((Path(constants.root) / "assets").glob("*.png"))
    columns = 8
    image = Image.new("RGBA", (columns * SIDE, -(-len(found) // columns) * SIDE))
    places = {}
    for number, path in enumerate(found):
        place = number % columns, number // columns
        with Image.open(path) as texture:
            image.paste(
                texture.convert("RGBA").resize((SIDE, SIDE), Image.Resampling.NEAREST),
                (place[0] * SIDE, place[1] * SIDE),
            )
        places[path.stem] = place
    packed = io.BytesIO()
    image.save(packed, "PNG", optimize=True)
    return {"png": base64.b64encode(packed.getvalue()).decode(), "side": SIDE, "places": places}
