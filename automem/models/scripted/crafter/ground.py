"""The ground around the player as costs of walking, and the cheapest ways over it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from automem.models.scripted.crafter.rules import ANY, BIT, COLLECT, DIRECTIONS, EDGE, SEEN, WALKABLE
from automem.models.scripted.crafter.world import Cell, World

REACH = 18
"""Cells to each side that a plan looks at."""
_SIDE = 2 * REACH + 1
_CENTRE = REACH * _SIDE + REACH
_STEPS = ((-_SIDE, (-1, 0)), (-1, (0, -1)), (1, (0, 1)), (_SIDE, (1, 0)))

NEVER = 999
"""Cost of a cell that cannot be entered."""
_WALK, _UNSEEN, _BLOCKED = 2, 4, 14
LIMIT = 90
"""Ways that cost more are not looked at. A step costs 2."""


class Ground:
    """Costs of the cells within `REACH` of the player, and the cheapest way to each.

    A step over open ground costs 2; clearing an obstacle that the tools at hand can clear
    costs more; a cell of which little is known costs what it may turn out to be.
    """

    def __init__(self, world: World, x: int, y: int, tools: frozenset[str], dangers: Mapping[Cell, int]) -> None:
        """`tools`: carried items that matter; `dangers`: cell -> cost added, e.g. of a zombie near it."""
        self.x, self.y = x, y
        self.bits: list[int] = world.window(x, y, REACH).ravel().tolist()
        price = _prices(tools)
        costs = []
        for bits in self.bits:
            cost = price.get(bits)
            if cost is None:
                cost = price[bits] = _price(bits, tools)
            costs.append(cost)
        for (cx, cy), more in dangers.items():
            i = self.index(cx, cy)
            if i is not None:
                costs[i] = min(NEVER, costs[i] + more)
        for delta, _ in _STEPS:
            # The next step must be safe for certain; further cells will be better known before they are reached.
            if self.bits[_CENTRE + delta] & BIT["lava"]:
                costs[_CENTRE + delta] = NEVER
        self.costs = costs
        self._search()

    def index(self, x: int, y: int) -> int | None:
        """Position of a cell in the flat lists, or None when it is further than `REACH` away."""
        dx, dy = x - self.x, y - self.y
        return (dx + REACH) * _SIDE + dy + REACH if abs(dx) <= REACH and abs(dy) <= REACH else None

    def cell(self, i: int) -> Cell:
        """The cell of a position in the flat lists."""
        dx, dy = divmod(i, _SIDE)
        return self.x + dx - REACH, self.y + dy - REACH

    def _search(self) -> None:
        """Cheapest cost from the player to every cell, by buckets of equal cost."""
        far = [NEVER] * len(self.costs)
        came: list[int] = [-1] * len(self.costs)
        far[_CENTRE] = 0
        buckets: list[list[int]] = [[] for _ in range(LIMIT + 1)]
        buckets[0].append(_CENTRE)
        costs = self.costs
        order: list[int] = []
        deltas = (-_SIDE, -1, 1, _SIDE)
        last_row = _SIDE - 1
        for reached in range(LIMIT + 1):
            for i in buckets[reached]:
                if far[i] != reached:
                    continue
                order.append(i)
                row = i % _SIDE
                for delta in deltas:
                    j = i + delta
                    if not 0 <= j < len(costs) or (row == 0 and delta == -1) or (row == last_row and delta == 1):
                        continue
                    cost = reached + costs[j]
                    if cost < far[j] and cost <= LIMIT:
                        far[j] = cost
                        came[j] = i
                        buckets[cost].append(j)
        self.far = far
        self._came = came
        self.order = order
        """Positions that can be reached, nearest first (a position may appear twice)."""

    def cost_to(self, x: int, y: int) -> int:
        """Cost of the way to a cell, entering it."""
        i = self.index(x, y)
        return NEVER if i is None else self.far[i]

    def cost_beside(self, x: int, y: int) -> int:
        """Cost of the way to the cheapest cell beside (x, y); 0 when the player is there."""
        i = self.index(x, y)
        if i is None:
            return NEVER
        return min((self.far[i + d] for d, _ in _STEPS if 0 <= i + d < len(self.far)), default=NEVER)

    def step_to(self, x: int, y: int) -> tuple[int, int] | None:
        """First unit step of the way to a cell; None when it is here or cannot be reached."""
        i = self.index(x, y)
        if i is None or i == _CENTRE:
            return None
        if self.far[i] >= NEVER:
            return None
        while self._came[i] != _CENTRE:
            i = self._came[i]
        return next(step for delta, step in _STEPS if _CENTRE + delta == i)

    def step_beside(self, x: int, y: int) -> tuple[int, int] | None:
        """First unit step of the way to a cell and into it, though it may not be open; None if unreachable."""
        i = self.index(x, y)
        if i is None:
            return None
        beside = [(self.far[i + d], i + d, step) for d, step in _STEPS if 0 <= i + d < len(self.far)]
        cost, j, _ = min(beside, default=(NEVER, 0, (0, 0)))
        if cost >= NEVER:
            return None
        if j == _CENTRE:
            return x - self.x, y - self.y
        return self.step_to(*self.cell(j))

    def nearest(self, cells: Iterable[Cell]) -> tuple[int, Cell] | None:
        """Cost and place of the cell that can be stood beside most cheaply."""
        best = min(((self.cost_beside(*cell), cell) for cell in cells), default=None)
        return best if best and best[0] < NEVER else None


@lru_cache(maxsize=64)
def _prices(tools: frozenset[str]) -> dict[int, int]:
    """Cost by set of materials, filled as sets are met (a cache of `_price`)."""
    return {}


@lru_cache(maxsize=4096)
def _price(bits: int, tools: frozenset[str]) -> int:
    """What entering a cell costs that may be any of these materials."""
    if bits in (ANY, SEEN):
        return _UNSEEN
    if bits & EDGE or not bits:
        return NEVER
    singles = [name for name, bit in BIT.items() if bits & bit]
    prices = [_single(name, tools) for name in singles]
    if len(prices) == 1:
        return prices[0]
    if "lava" in singles:
        return _BLOCKED * 2
    mean = sum(min(price, _BLOCKED) for price in prices) // len(prices)
    return NEVER if min(prices) >= NEVER else max(_WALK, mean)


def _single(material: str, tools: frozenset[str]) -> int:
    if BIT[material] & WALKABLE:
        return _WALK
    if material == "tree":
        return 6
    if material == "water":
        return 8 if "stone" in tools and "wood_pickaxe" in tools else NEVER
    needed = COLLECT.get(material)
    if needed is not None and tools.issuperset(needed):
        return 5
    return NEVER


def solid(bits: int) -> bool:
    """Whether a cell certainly cannot be walked into by anyone."""
    return not bits & WALKABLE


def neighbours(x: int, y: int) -> list[Cell]:
    """The four cells beside a cell."""
    return [(x + dx, y + dy) for dx, dy in DIRECTIONS.values()]
