"""The ground around the player as costs of walking, and the cheapest ways over it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from automem.models.scripted.crafter.rules import ANY, BIT, COLLECT, EDGE, SEEN, WALKABLE
from automem.models.scripted.crafter.world import Cell, World

REACH = 15
"""Cells to each side that a plan looks at."""
SIDE = 2 * REACH + 3
"""Cells of a side of the flat lists: one more than the reach to each side, closed, spares checks of bounds."""
CENTRE = (REACH + 1) * SIDE + REACH + 1
STEPS: tuple[tuple[int, Cell], ...] = ((-SIDE, (-1, 0)), (-1, (0, -1)), (1, (0, 1)), (SIDE, (1, 0)))
"""Difference of positions in the flat lists -> unit step."""

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

    def __init__(
        self,
        world: World,
        x: int,
        y: int,
        tools: frozenset[str],
        dangers: Mapping[Cell, int],
        facing: Cell | None = None,
    ) -> None:
        """`tools`: carried items that matter; `dangers`: cell -> cost added, e.g. of a zombie near it."""
        self.x, self.y = x, y
        window = world.window(x, y, REACH + 1).copy()
        window[0, :] = window[-1, :] = window[:, 0] = window[:, -1] = EDGE
        self.bits: list[int] = window.ravel().tolist()
        self.costs = list(map(_prices(tools).__getitem__, self.bits))
        for (cx, cy), more in dangers.items():
            i = self.index(cx, cy)
            if i is not None:
                self.costs[i] = min(NEVER, self.costs[i] + more)
        for delta, _ in STEPS:
            # The next step must be safe for certain; further cells will be better known before they are reached.
            if self.bits[CENTRE + delta] & BIT["lava"]:
                self.costs[CENTRE + delta] = NEVER
        if facing is not None:
            # No turn is needed; and whoever keeps going does not waver between two ways as good.
            i = CENTRE + facing[0] * SIDE + facing[1]
            self.costs[i] = max(1, self.costs[i] - 2) if self.costs[i] < NEVER else NEVER
        self.far, self.came = _search(self.costs)

    def keep_to_rock(self, inside: Collection[Cell]) -> None:
        """Leave only ways that open no way in: through a closed room and rock with rock all around it."""
        bits, rooms = self.bits, {i for cell in inside if (i := self.index(*cell)) is not None}
        shut = [i in rooms or not there & WALKABLE for i, there in enumerate(bits)]
        for i, there in enumerate(bits):
            if i in rooms or self.costs[i] >= NEVER:
                continue
            if there & (WALKABLE | BIT["water"] | BIT["lava"]) or not all(shut[i + delta] for delta, _ in STEPS):
                self.costs[i] = NEVER
        self.far, self.came = _search(self.costs)

    def index(self, x: int, y: int) -> int | None:
        """Position of a cell in the flat lists, or None when it is further than `REACH` away."""
        dx, dy = x - self.x, y - self.y
        return CENTRE + dx * SIDE + dy if abs(dx) <= REACH and abs(dy) <= REACH else None

    def cell(self, i: int) -> Cell:
        """The cell of a position in the flat lists."""
        dx, dy = divmod(i, SIDE)
        return self.x + dx - REACH - 1, self.y + dy - REACH - 1

    def cost_to(self, x: int, y: int) -> int:
        """Cost of the way to a cell, entering it."""
        i = self.index(x, y)
        return NEVER if i is None else self.far[i]

    def cost_beside(self, x: int, y: int) -> int:
        """Cost of the way to the cheapest cell beside (x, y); 0 when the player is there."""
        i = self.index(x, y)
        if i is None:
            return NEVER
        far = self.far
        return min(far[i - SIDE], far[i - 1], far[i + 1], far[i + SIDE])

    def step_to(self, x: int, y: int) -> tuple[int, int] | None:
        """First unit step of the way to a cell; None when it is here or cannot be reached."""
        i = self.index(x, y)
        if i is None or i == CENTRE or self.far[i] >= NEVER:
            return None
        while self.came[i] != CENTRE:
            i = self.came[i]
        return next(step for delta, step in STEPS if CENTRE + delta == i)

    def step_beside(self, x: int, y: int) -> tuple[int, int] | None:
        """First unit step of the way to a cell and into it, though it may not be open; None if unreachable."""
        i = self.index(x, y)
        if i is None:
            return None
        cost, j = min((self.far[i + delta], i + delta) for delta, _ in STEPS)
        if cost >= NEVER:
            return None
        if j == CENTRE:
            return x - self.x, y - self.y
        return self.step_to(*self.cell(j))

    def nearest(self, cells: Iterable[Cell]) -> tuple[int, Cell] | None:
        """Cost and place of the cell that can be stood beside most cheaply."""
        best = min(((self.cost_beside(*cell), cell) for cell in cells), default=None)
        return best if best and best[0] < NEVER else None


def _search(costs: list[int]) -> tuple[list[int], list[int]]:
    """Cheapest cost from the centre to every cell, and the cell before it on the way; by buckets of equal cost."""
    far = [LIMIT + 1] * len(costs)
    came = [-1] * len(costs)
    far[CENTRE] = 0
    buckets: list[list[int]] = [[] for _ in range(LIMIT + 1)]
    buckets[0].append(CENTRE)
    for reached, bucket in enumerate(buckets):
        for i in bucket:
            if far[i] != reached:
                continue
            for j in (i - SIDE, i - 1, i + 1, i + SIDE):
                cost = reached + costs[j]
                if cost < far[j]:
                    far[j] = cost
                    came[j] = i
                    buckets[cost].append(j)
    return [cost if cost <= LIMIT else NEVER for cost in far], came


class _Prices(dict[int, int]):
    """Cost by set of materials, worked out when a set is first met."""

    def __init__(self, tools: frozenset[str]) -> None:
        super().__init__()
        self.tools = tools

    def __missing__(self, bits: int) -> int:
        cost = self[bits] = _price(bits, self.tools)
        return cost


@lru_cache(maxsize=64)
def _prices(tools: frozenset[str]) -> _Prices:
    return _Prices(tools)


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
        return 6  # turn, clear, step
    return NEVER


def solid(bits: int) -> bool:
    """Whether a cell certainly cannot be walked into by anyone."""
    return not bits & WALKABLE
