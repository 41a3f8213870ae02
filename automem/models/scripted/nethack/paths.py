"""Ways over the map: cheapest paths, and places from which more of the level may be seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from automem.models.scripted.nethack.screen import FIRST_ROW, LAST_ROW, WIDTH
from automem.models.scripted.nethack.terrain import AROUND, BLOCKED, DIAGONAL, ORTHOGONAL, Terrain

_FARTHEST = 400


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """What can be reached from a place. Compared by identity, so that it can stand in caches.

    Attributes:
        start: where from.
        order: reachable cells, nearest first.
        distance: cell -> cost of the way there.
        before: cell -> the cell before it on that way.
    """

    start: int
    order: tuple[int, ...]
    distance: dict[int, int]
    before: dict[int, int]

    def path(self, goal: int) -> list[int]:
        """Cells of the way to `goal`, without the start; empty where there is none."""
        if goal not in self.before:
            return []
        way = [goal]
        while (cell := self.before[way[-1]]) != self.start:
            way.append(cell)
        return way[::-1]


@lru_cache(maxsize=32)
def reach(
    terrain: Terrain, start: int, blocked: frozenset[tuple[int, int]] = frozenset(), straight: bool = False
) -> Reach:
    """Cheapest ways from `start` to everywhere.

    Args:
        blocked: moves (from, to) that are known to fail.
        straight: only the four compass directions can be walked.
    """
    cost, doors = terrain.cost, terrain.doors
    distance = {start: 0}
    before: dict[int, int] = {}
    order: list[int] = []
    buckets: dict[int, list[int]] = {0: [start]}
    reached = 0
    while buckets and reached < _FARTHEST:
        bucket = buckets.pop(reached, None)
        reached += 1
        if bucket is None:
            continue
        for cell in bucket:
            here = distance[cell]
            if here != reached - 1:
                continue
            order.append(cell)
            steps = ORTHOGONAL if straight or cell in doors else AROUND
            for step in steps:
                other = cell + step
                if not 0 <= other < len(cost) or cost[other] == BLOCKED:
                    continue
                if step in DIAGONAL and other in doors:
                    continue
                total = here + cost[other]
                if total < distance.get(other, 1 << 30) and (cell, other) not in blocked:
                    distance[other] = total
                    before[other] = cell
                    buckets.setdefault(total, []).append(other)
    seen: set[int] = set()
    unique = tuple(cell for cell in order if not (cell in seen or seen.add(cell)))  # type: ignore[func-returns-value]
    return Reach(start, unique, distance, before)


@lru_cache(maxsize=32)
def frontiers(terrain: Terrain, way: Reach) -> tuple[int, ...]:
    """Reachable places from which unknown squares may come into view, nearest first.

    Two kinds: the edge of a dark or half-seen room, and the end of something narrow (a
    corridor, a doorway, a maze). Whether the end was visited already cannot be seen on the map.
    """
    return tuple(cell for cell in way.order if cell != way.start and _is_frontier(terrain, cell))


@lru_cache(maxsize=32)
def ends(terrain: Terrain, way: Reach) -> tuple[int, ...]:
    """Reachable narrow places that lead nowhere, nearest first, the start included."""
    return tuple(cell for cell in way.order if _is_narrow(terrain, cell) and _is_end(terrain, cell))


def looks_new(terrain: Terrain, cell: int) -> bool:
    """The map shows no sign that anybody looked around here, or next to it: only notes can tell."""
    around = (cell, *(cell + step for step in AROUND))
    return any(0 <= c < len(terrain.cost) and terrain.cost[c] and _is_frontier(terrain, c) for c in around)


def _is_frontier(terrain: Terrain, cell: int) -> bool:
    cells = terrain.cells
    row = cell // WIDTH
    if not (FIRST_ROW < row < LAST_ROW and 0 < cell % WIDTH < WIDTH - 1):
        return False
    if not any(" " in cells[middle - 1 : middle + 2] for middle in (cell - WIDTH, cell, cell + WIDTH)):
        return False
    return not _is_narrow(terrain, cell) or _is_end(terrain, cell)


def _is_narrow(terrain: Terrain, cell: int) -> bool:
    """A corridor, a door or a passage one square wide."""
    if terrain.cells[cell] == "#" or cell in terrain.doors:
        return True
    cost = terrain.cost
    for across in (1, -1):
        for down in (WIDTH, -WIDTH):
            if cost[cell + across] and cost[cell + down] and cost[cell + across + down]:
                return False
    return True


_RING = (1, 1 + WIDTH, WIDTH, WIDTH - 1, -1, -1 - WIDTH, -WIDTH, 1 - WIDTH)
"""The eight neighbours, going round."""


def _is_end(terrain: Terrain, cell: int) -> bool:
    """No way leads through: the ways out, going round the cell, are one unbroken run of less than half a turn."""
    cost = terrain.cost
    straight = cell in terrain.doors
    out = [i for i, step in enumerate(_RING) if cost[cell + step] and not (straight and i % 2)]
    if len(out) <= 1:
        return True
    gaps = sum((i + 1) % 8 not in out for i in out)
    return gaps == 1 and len(out) <= 3
