"""A room that nothing can enter: where to make one, and the next action towards it.

A stone can only be placed in front, and to face an open cell one has to have walked
towards it. In a room of two by two cells every wall can be faced from inside; in a room of
two cells only its ends, so its sides must be solid already.
"""

from __future__ import annotations

from dataclasses import dataclass

from automem.models.scripted.crafter.ground import CENTRE, NEVER, SIDE, Ground, solid
from automem.models.scripted.crafter.rules import BIT, DIRECTIONS, MOVE_OF, WALKABLE
from automem.models.scripted.crafter.world import Cell, World

_OPENABLE = BIT["stone"] | BIT["path"] | BIT["grass"] | BIT["sand"] | BIT["tree"] | BIT["coal"]
_LAVA = BIT["lava"]
_SQUARE = ((0, 0), (1, 0), (0, 1), (1, 1))
_SHAPES: tuple[tuple[Cell, ...], ...] = (((0, 0), (1, 0)), ((0, 0), (0, 1)), _SQUARE)
_PLANS: tuple[tuple[tuple[int, ...], tuple[tuple[int, bool], ...]], ...] = tuple(
    (
        tuple(dx * SIDE + dy for dx, dy in shape),
        tuple(
            ((dx + sx) * SIDE + dy + sy, (dx - sx, dy - sy) in shape)
            for dx, dy in shape
            for sx, sy in DIRECTIONS.values()
            if (dx + sx, dy + sy) not in shape
        ),
    )
    for shape in _SHAPES
)
"""For each shape, in positions of `Ground`'s lists: its cells, and its walls, each with whether it can be faced."""


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


def closed_room(
    world: World, x: int, y: int, enemies: frozenset[Cell] = frozenset(), passable: int = WALKABLE, most: int = 60
) -> set[Cell] | None:
    """The open cells around the player when nothing can reach it there; None when something can.

    `passable` are the materials that something to be feared can cross.
    """
    inside = {(x, y)}
    edge = [(x, y)]
    while edge:
        cx, cy = edge.pop()
        for dx, dy in DIRECTIONS.values():
            cell = (cx + dx, cy + dy)
            if cell not in inside and world.at(*cell) & passable:
                inside.add(cell)
                edge.append(cell)
                if len(inside) > most or cell in enemies:
                    return None
    return inside


def best_shelter(
    world: World, ground: Ground, stones: int, can_dig: bool, passable: int = WALKABLE, reach: int = 3
) -> Shelter | None:
    """The room that is closed soonest with the stones at hand, or None."""
    best: tuple[int, int, int] | None = None
    bits, far = ground.bits, ground.far
    for ax in range(-reach - 1, reach + 1):
        for ay in range(-reach - 1, reach + 1):
            corner = CENTRE + ax * SIDE + ay
            for number, (cells, walls) in enumerate(_PLANS):
                way, door = min([(far[corner + cell], corner + cell) for cell in cells])
                cost = way // 2 + (len(cells) == 4)
                if way >= NEVER or (best is not None and cost >= best[0]):
                    continue
                measured = _measure(bits, corner, cells, walls, can_dig, passable)
                if measured is None:
                    continue
                dug, gaps = measured
                cost += 2 * dug + 3 * gaps
                if door != CENTRE:
                    # Whoever comes in leaves an opening behind, which has to be faced from inside.
                    if 2 * door - ground.came[door] - corner not in cells:
                        continue
                    cost += 4
                if gaps <= stones + dug and (best is None or cost < best[0]):
                    best = (cost, corner, number)
    if best is None:
        return None
    cost, corner, number = best
    room = frozenset(ground.cell(corner + cell) for cell in _PLANS[number][0])
    openings = tuple(
        ((x, y), (dx, dy))
        for x, y in sorted(room)
        for dx, dy in DIRECTIONS.values()
        if (x + dx, y + dy) not in room and world.at(x + dx, y + dy) & passable
    )
    return Shelter(room, openings, cost, len(openings))


def _measure(
    bits: list[int],
    corner: int,
    cells: tuple[int, ...],
    walls: tuple[tuple[int, bool], ...],
    can_dig: bool,
    passable: int,
) -> tuple[int, int] | None:
    """Cells to dig and gaps to fill of a room; None where it cannot be made."""
    dug = gaps = 0
    for cell in cells:
        there = bits[corner + cell]
        if there & ~_OPENABLE:
            return None
        if not there & WALKABLE:
            if not can_dig:
                return None
            dug += 1
    for wall, faced in walls:
        there = bits[corner + wall]
        if there & passable:
            if not faced or there & _LAVA:
                return None
            gaps += 1
    return dug, gaps


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
