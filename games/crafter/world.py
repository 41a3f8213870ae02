"""Crafter's own simulator, made repeatable and freed from drawing.

Two things in crafter 1.8.3 stand between a seed and a repeatable game: creatures of a
chunk live in a set, which Python iterates by memory address; and pictures of the night
take their noise from the world's random numbers, so a game that draws no pictures plays
differently from one that does.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache

import numpy as np
from crafter import constants, engine, env, objects

from games.crafter.tables import VIEW

AREA = (64, 64)
IMAGE = (64, 64)
"""Cells of the map and pixels of the picture: the simulator's defaults."""

_CHUNK = (12, 12)
_NIGHT = 0.5
"""Below this daylight a picture is noisy."""


class _Insertion(dict):
    """As much of a set as the simulator uses, in the order in which things were added."""

    def add(self, item: object) -> None:
        self[item] = None

    def remove(self, item: object) -> None:
        del self[item]


class World(engine.World):
    """The simulator's world, whose chunks keep their creatures in order of arrival."""

    def reset(self, seed: int | None = None) -> None:
        super().reset(seed)
        self._chunks: defaultdict[tuple[int, int, int, int], _Insertion] = defaultdict(_Insertion)


class Env(env.Env):
    """The simulator's environment: the same game as `crafter.Env(seed=seed)`, without pictures.

    Bit for bit the game that draws one picture of `IMAGE` pixels per step: at night the
    noise of that picture is drawn from the world's random numbers and thrown away.
    """

    def __init__(self, seed: int) -> None:
        # Not calling the parent, which loads every texture and makes its own world.
        self._area = AREA
        self._view = np.array(VIEW)
        self._size = np.array(IMAGE)
        self._reward = True
        self._length = None
        self._seed = seed
        self._episode = 0
        self._world = World(AREA, constants.materials, _CHUNK)
        self._item_rows = -(-len(constants.items) // VIEW[0])
        self._sem_view = engine.SemanticView(
            self._world,
            [objects.Player, objects.Cow, objects.Zombie, objects.Skeleton, objects.Arrow, objects.Plant],
        )
        unit = self._size // self._view
        self._noise_shape = tuple(int(n) for n in (self._view - (0, self._item_rows)) * unit)

    @property
    def world(self) -> World:
        """Materials, objects, daylight and random numbers."""
        return self._world

    @property
    def player(self) -> objects.Player:
        """The player; there from `reset` on."""
        return self._player

    def semantic(self) -> np.ndarray:
        """Kind of every cell, uint8, indexed [x, y]; see `games.crafter.tables.KINDS`."""
        return self._sem_view()

    def _obs(self) -> None:
        if self._world.daylight < _NIGHT:
            self._world.random.uniform(32, 127, self._noise_shape)

    def draw(self, size: tuple[int, int]) -> np.ndarray:
        """The simulator's picture for a size (width, height), uint8 (height, width, 3).

        Draws from the world's random numbers at night: the caller puts them back.
        """
        textures = _textures()
        grid = self._view - (0, self._item_rows)
        self._local_view = engine.LocalView(self._world, textures, grid)
        self._item_view = engine.ItemView(textures, [VIEW[0], self._item_rows])
        return self.render(size)


@cache
def _textures() -> engine.Textures:
    """The simulator's pictures of things, loaded when first drawn."""
    return engine.Textures(constants.root / "assets")
