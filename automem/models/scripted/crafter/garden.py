"""A sapling, walled in so that nothing tramples it, and eaten when it is ripe.

Only who remembers where and when it was planted can eat it: a ripe plant looks like any other.
"""

from __future__ import annotations

from collections.abc import Iterator

from automem.models.scripted.crafter.belief import Belief
from automem.models.scripted.crafter.goals import level
from automem.models.scripted.crafter.ground import NEVER, Ground, solid
from automem.models.scripted.crafter.rules import BIT, DIRECTIONS, MOVE_OF, RIPE_AFTER
from automem.models.scripted.crafter.steps import open_ahead, turn_or_do, walk
from automem.models.scripted.crafter.world import Cell

Errand = tuple[float, int, str]
"""Worth, steps, first action."""

_VISIT_EVERY, _VISIT_FOR = 90, 25
"""A plant that was not ripe when it should be grew only while one was near: look again later."""


def garden(belief: Belief, ground: Ground) -> Iterator[Errand]:
    """What there is to do about plants."""
    if "eat_plant" in belief.done:
        return
    armed = min(level(belief, "pickaxe"), level(belief, "sword")) >= 2
    plants = [cell for cell in belief.plants if belief.world.at(*cell) == BIT["plant"]]
    for cell in plants:
        overdue = belief.step - belief.plants[cell] - RIPE_AFTER - 6
        if overdue >= 0 and overdue % _VISIT_EVERY < _VISIT_FOR:
            yield from _eat(belief, ground, cell)
        if armed and belief.scene.has("stone"):
            for gap in _gaps(belief, cell):
                yield from _fill(belief, ground, cell, gap)
    ready = belief.scene.has("stone", 4) and "place_plant" in belief.done
    if armed and not plants and ready and open_ahead(belief) and belief.scene.ahead == "grass":
        yield (1.5, 0, "Place Plant") if belief.scene.has("sapling") else (0.6, 6, "Do")


def _eat(belief: Belief, ground: Ground, cell: Cell) -> Iterator[Errand]:
    cost, step = ground.cost_beside(*cell), ground.step_beside(*cell)
    if step is None or cost >= NEVER:
        return
    action = turn_or_do(belief, step) if cost == 0 else walk(belief, step)
    if action:
        yield 2.0, cost // 2 + 1, action


def _gaps(belief: Belief, plant: Cell) -> list[Cell]:
    """Open cells beside a plant."""
    beside = [(plant[0] + dx, plant[1] + dy) for dx, dy in DIRECTIONS.values()]
    return [cell for cell in beside if not solid(belief.world.at(*cell))]


def _fill(belief: Belief, ground: Ground, plant: Cell, gap: Cell) -> Iterator[Errand]:
    """Put a stone on an open cell: walk towards it and place the stone in front."""
    for step in DIRECTIONS.values():
        stand = (gap[0] - step[0], gap[1] - step[1])
        start = (stand[0] - step[0], stand[1] - step[1])
        if stand == plant or solid(belief.world.at(*stand)):
            continue
        if belief.here == stand and belief.facing == step:
            if open_ahead(belief):
                yield 1.2, 0, "Place Stone"
            continue
        if start == plant or solid(belief.world.at(*start)):
            continue
        if belief.here == start:
            yield 1.2, 2, MOVE_OF[step]
        else:
            cost = ground.cost_to(*start)
            action = walk(belief, ground.step_to(*start)) if cost < NEVER else None
            if action:
                yield 1.2, cost // 2 + 2, action
