"""A room that nothing can enter: where to make one, and the next action towards it.

A stone can only be placed in front, and to face an open cell one has to have walked
towards it. In a room of two by two cells every wall can be faced from inside; in a room of
two cells only its ends, so its sides must be solid already.
"""

from __future__ import annotations

from dataclasses import dataclass

from automem.models.scripted.crafter.rules import BIT, DIRECTIONS, MOVE_OF
from automem.models.scripted.crafter.ground import NEVER, Ground, solid
from automem.models.scripted.crafter.world import Cell, World

_OPENABLE = BIT["stone"] | BIT["path"] | BIT["grass"] | BIT["sand"] | BIT["tree"] | BIT["coal"]
_SQUARE = ((0, 0), (1, 0), (0, 1), (1, 1))
_SHAPES: tuple[tuple[Cell, ...], ...] = tuple(
    tuple((dx - ox, dy - oy) for dx, dy in shape)
    for shape in (((0, 0), (1, 0)), ((0, 0), (0, 1)), _SQUARE)
    for ox, oy in shape
)


@dataclass(frozen=True, slots=True)
class Shelter:
    """A room and what is missing.

    Attributes:
        cells: the room.
        gaps: (cell of the room, direction of an open side).
        cost: steps until it is closed, roughly; 0 when it is closed and the player is inside.
        stones: stones that it takes.
    """

    cells: frozenset[Cell]
    gaps: tuple[tuple[Cell, Cell], ...]
    cost: int
    stones: int


def sealed(world: World, x: int, y: int, most: int = 9) -> bool:
    """Whether nothing can walk to the player: the open cells around it are few and closed in."""
    inside = {(x, y)}
    edge = [(x, y)]
    while edge:
        cx, cy = edge.pop()
        for dx, dy in DIRECTIONS.values():
            cell = (cx + dx, cy + dy)
            if cell not in inside and not solid(world.at(*cell)):
                inside.add(cell)
                edge.append(cell)
                if len(inside) > most:
                    return False
    return True


def best_shelter(world: World, ground: Ground, stones: int, can_dig: bool, reach: int = 3) -> Shelter | None:
    """The room that is closed soonest with the stones at hand, or None."""
    best = None
    for ax in range(-reach, reach + 1):
        for ay in range(-reach + abs(ax), reach + 1 - abs(ax)):
            x, y = ground.x + ax, ground.y + ay
            way = ground.cost_to(x, y)
            if way >= NEVER:
                continue
            for shape in _SHAPES:
                room = _measure(world, frozenset((x + dx, y + dy) for dx, dy in shape), can_dig)
                if room is None:
                    continue
                dug, gaps = room
                if len(gaps) > stones + dug:
                    continue
                cost = way // 2 + 2 * dug + 3 * len(gaps) + (1 if len(shape) == 4 else 0)
                if best is None or cost < best.cost:
                    best = Shelter(frozenset((x + dx, y + dy) for dx, dy in shape), gaps, cost, len(gaps))
    return best


def _measure(world: World, cells: frozenset[Cell], can_dig: bool) -> tuple[int, tuple[tuple[Cell, Cell], ...]] | None:
    """Cells to dig and gaps to fill of a room; None where it cannot be made."""
    dug = 0
    gaps = []
    for x, y in cells:
        bits = world.at(x, y)
        if bits & ~_OPENABLE:
            return None
        if solid(bits):
            if not can_dig:
                return None
            dug += 1
        for step in DIRECTIONS.values():
            beside = (x + step[0], y + step[1])
            if beside in cells:
                continue
            wall = world.at(*beside)
            if not solid(wall):
                if (x - step[0], y - step[1]) not in cells or wall & BIT["lava"]:
                    return None
                gaps.append(((x, y), step))
    return dug, tuple(gaps)


def towards(shelter: Shelter, world: World, ground: Ground, facing: Cell | None) -> str | None:
    """The next action that brings a shelter nearer to being closed; None when it is closed."""
    here = (ground.x, ground.y)
    if here not in shelter.cells:
        target = min(shelter.cells, key=lambda cell: (ground.cost_to(*cell), cell))
        return _go(target, world, ground, facing)
    for x, y in sorted(shelter.cells):
        if solid(world.at(x, y)):
            return _go((x, y), world, ground, facing)
    if facing and (here, facing) in shelter.gaps:
        return "Place Stone"
    options = []
    for (x, y), step in shelter.gaps:
        start = (x - step[0], y - step[1])
        options.append((abs(start[0] - here[0]) + abs(start[1] - here[1]), start, (x, y)))
    if not options:
        return None
    _, start, cell = min(options)
    if start == here:
        return MOVE_OF[cell[0] - here[0], cell[1] - here[1]]
    # Inside the room only, so that no gap is walked through.
    for step in DIRECTIONS.values():
        beside = (here[0] + step[0], here[1] + step[1])
        if beside in shelter.cells and _nearer(beside, here, start):
            return MOVE_OF[step]
    return None


def _nearer(a: Cell, b: Cell, target: Cell) -> bool:
    return abs(a[0] - target[0]) + abs(a[1] - target[1]) < abs(b[0] - target[0]) + abs(b[1] - target[1])


def _go(target: Cell, world: World, ground: Ground, facing: Cell | None) -> str | None:
    step = ground.step_to(*target) or ground.step_beside(*target)
    if step is None or step not in MOVE_OF:
        return None
    ahead = world.at(ground.x + step[0], ground.y + step[1])
    return "Do" if facing == step and solid(ahead) else MOVE_OF[step]
