"""What each cell may be, narrowed by every look around.

An observation names only the nearest thing of each kind, with its distance and rough
direction. So it says for each cell in view what it cannot be: anything that is not listed,
or is listed further away. Intersecting these sets over looks from several places tells most
cells exactly. A new look that contradicts an old belief wins: the world has changed.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from automem.models.scripted.crafter.rules import (
    ANY,
    AREA,
    BIT,
    DIRECTIONS,
    EDGE,
    NAME,
    REACH,
    SEEN,
    STANDS_ON,
    WALKABLE,
)
from automem.models.scripted.crafter.scene import Scene, Sight

SIZE = 160
"""Cells of the grid to each side; the start of the reckoning is in its middle."""
_MIDDLE = SIZE // 2
_RX, _RY = REACH

Cell = tuple[int, int]


@lru_cache(maxsize=512)
def _places(distance: int, dx: int, dy: int) -> tuple[np.ndarray, tuple[Cell, ...]]:
    """For the nearest thing of a kind: cells of the view where that kind may be, and where this one may be."""
    allowed = np.zeros((2 * _RX + 1, 2 * _RY + 1), bool)
    candidates = []
    for x in range(-_RX, _RX + 1):
        for y in range(-_RY, _RY + 1):
            steps = abs(x) + abs(y)
            if steps == distance and (x > 0) - (x < 0) == dx and (y > 0) - (y < 0) == dy:
                candidates.append((x, y))
            # Of several equally near the westernmost is named, then the northernmost.
            allowed[x + _RX, y + _RY] = steps > distance or (steps == distance and bool(candidates))
    return allowed, tuple(candidates)


@lru_cache(maxsize=8192)
def _possible(sights: tuple[Sight, ...]) -> np.ndarray:
    """What each cell of the view may be, as bits, shape (9, 7), indexed [x, y]."""
    bits = np.zeros((2 * _RX + 1, 2 * _RY + 1), np.uint16)
    for sight in sights:
        bit = STANDS_ON.get(sight.kind) or BIT.get(sight.kind, 0)
        bits |= _places(sight.distance, sight.dx, sight.dy)[0] * np.uint16(bit)
    bits[_RX, _RY] = WALKABLE
    return bits


def places_of(sight: Sight) -> tuple[Cell, ...]:
    """Offsets at which the named thing may be."""
    return _places(sight.distance, sight.dx, sight.dy)[1]


class World:
    """A grid of sets of materials around the place where the reckoning began (0, 0)."""

    def __init__(self, edges: bool = False) -> None:
        """`edges`: the reckoning began where the game did, so the ends of the world are known."""
        self.grid = np.full((SIZE, SIZE), ANY, np.uint16)
        if edges:
            west, north = _MIDDLE - AREA[0] // 2, _MIDDLE - AREA[1] // 2
            inside = self.grid[west : west + AREA[0], north : north + AREA[1]].copy()
            self.grid[:] = EDGE
            self.grid[west : west + AREA[0], north : north + AREA[1]] = inside

    def at(self, x: int, y: int) -> int:
        """What a cell may be, as bits."""
        x, y = x + _MIDDLE, y + _MIDDLE
        return int(self.grid[x, y]) if 0 <= x < SIZE and 0 <= y < SIZE else EDGE

    def visited(self, x: int, y: int, width: int, height: int = 0) -> None:
        """Mark cells that were in view once, though nothing was kept of them."""
        left, top = max(0, x + _MIDDLE), max(0, y + _MIDDLE)
        part = self.grid[left : max(0, x + _MIDDLE + width), top : max(0, y + _MIDDLE + (height or width))]
        part[part == ANY] = SEEN

    def set(self, x: int, y: int, bits: int) -> None:
        """Replace what is believed of a cell."""
        x, y = x + _MIDDLE, y + _MIDDLE
        if 0 <= x < SIZE and 0 <= y < SIZE:
            self.grid[x, y] = bits

    def window(self, x: int, y: int, reach: int) -> np.ndarray:
        """The square of cells within `reach` of a place, indexed [x, y]; beyond the grid lies the edge."""
        x, y = x + _MIDDLE, y + _MIDDLE
        side = 2 * reach + 1
        part = self.grid[max(0, x - reach) : x + reach + 1, max(0, y - reach) : y + reach + 1]
        if part.shape == (side, side):
            return part
        whole = np.full((side, side), EDGE, np.uint16)
        left, top = max(0, reach - x), max(0, reach - y)
        whole[left : left + part.shape[0], top : top + part.shape[1]] = part
        return whole

    def _view(self, x: int, y: int) -> np.ndarray | None:
        x, y = x + _MIDDLE, y + _MIDDLE
        if not (_RX <= x < SIZE - _RX and _RY <= y < SIZE - _RY):
            return None
        return self.grid[x - _RX : x + _RX + 1, y - _RY : y + _RY + 1]

    def contradictions(self, x: int, y: int, scene: Scene, facing: str | None) -> int:
        """How badly a look from (x, y) would fit what is believed; 0 fits."""
        view = self._view(x, y)
        if view is None or not scene.sights:
            return 0
        fits = view & _possible(scene.sights)
        wrong = int(np.count_nonzero((fits == 0) & (view != EDGE)))
        for sight in scene.sights:
            bit = BIT.get(sight.kind)
            if bit and not any(view[dx + _RX, dy + _RY] & bit for dx, dy in places_of(sight)):
                wrong += 1
        if facing and scene.ahead:
            dx, dy = DIRECTIONS[facing]
            if not self.at(x + dx, y + dy) & (BIT.get(scene.ahead) or WALKABLE):
                wrong += 1
        if not view[_RX, _RY] & WALKABLE:
            wrong += 3
        return wrong

    def see(self, x: int, y: int, scene: Scene, facing: str | None) -> str | None:
        """Take in a look from (x, y). Returns the facing, worked out from what is in front when None was given."""
        view = self._view(x, y)
        if view is None:
            return facing
        if scene.sights:
            possible = _possible(scene.sights)
            fits = view & possible
            np.copyto(fits, possible, where=fits == 0)
            np.copyto(view, fits, where=(view != EDGE) & (fits != 0))
            for sight in scene.sights:
                bit = BIT.get(sight.kind)
                if not bit:
                    continue
                places = [(dx + _RX, dy + _RY) for dx, dy in places_of(sight)]
                able = [place for place in places if view[place] & bit]
                if len(able) == 1:
                    view[able[0]] = bit
                elif not able:
                    for place in places:
                        view[place] |= bit
        if facing is None and scene.ahead:
            facing = self._facing(x, y, scene)
        if facing and scene.ahead:
            dx, dy = DIRECTIONS[facing]
            self.set(x + dx, y + dy, BIT.get(scene.ahead) or STANDS_ON.get(scene.ahead, WALKABLE))
        return facing

    def _facing(self, x: int, y: int, scene: Scene) -> str | None:
        """The one direction in which the thing in front can be."""
        creature = scene.ahead in STANDS_ON
        fitting = []
        for name, (dx, dy) in DIRECTIONS.items():
            if creature:
                sight = scene.nearest(scene.ahead)
                if sight and sight.distance == 1 and (sight.dx, sight.dy) == (dx, dy):
                    fitting = [name]
                    break
            elif self.at(x + dx, y + dy) & BIT.get(scene.ahead, 0):
                fitting.append(name)
        return fitting[0] if len(fitting) == 1 else None

    def all_of(self, bit: int) -> list[Cell]:
        """Every cell that certainly holds a material."""
        return [(int(x) - _MIDDLE, int(y) - _MIDDLE) for x, y in np.argwhere(self.grid == bit)]

    def exactly(self, x: int, y: int) -> str | None:
        """The material of a cell where it is known for certain."""
        return NAME.get(self.at(x, y))
