"""Small moves that every plan is made of: the ground around, a step, a turn."""

from __future__ import annotations

import numpy as np

from automem.models.scripted.crafter.belief import Belief
from automem.models.scripted.crafter.ground import NEVER, REACH, SIDE, Ground, solid
from automem.models.scripted.crafter.rules import BIT, CREATURES, DIRECTIONS, MOVE_OF, WALKABLE
from automem.models.scripted.crafter.world import Cell

WAIT = "Noop"
_TOOLS = ("wood_pickaxe", "stone_pickaxe", "iron_pickaxe", "stone")
_FEARED = (("zombie", 12, 8), ("skeleton", 8, 2), ("cow", 6, 0), ("arrow", 6, 2))
"""Creature, cost of its own cell, cost of the cells beside it."""
_SHOT = 5
"""Cells in line with a skeleton that its arrows reach."""


def ground_of(belief: Belief) -> Ground:
    """The ground around, worked out once for a belief."""
    if belief.ground is None:
        belief.ground = _make_ground(belief)
    return belief.ground


def _make_ground(belief: Belief) -> Ground:
    dangers: dict[Cell, int] = {}

    def fear(x: int, y: int, more: int) -> None:
        dangers[x, y] = dangers.get((x, y), 0) + more

    for kind, own, beside in _FEARED:
        cells = belief.creatures(kind)
        if len(cells) > 3:
            continue
        for x, y in cells:
            fear(x, y, own)
            for dx, dy in DIRECTIONS.values():
                if beside:
                    fear(x + dx, y + dy, beside)
                if kind == "zombie":
                    fear(x + 2 * dx, y + 2 * dy, 3)
                    fear(x + dx + dy, y + dy - dx, 3)
                if kind in ("skeleton", "arrow"):
                    for away in range(2, _SHOT if kind == "skeleton" else 4):
                        fear(x + away * dx, y + away * dy, 2)
    for px, py in belief.plants:
        # The fence around a plant stays.
        if belief.world.at(px, py) == BIT["plant"]:
            for dx, dy in DIRECTIONS.values():
                if solid(belief.world.at(px + dx, py + dy)):
                    dangers[px + dx, py + dy] = NEVER
    tools = frozenset(item for item in _TOOLS if belief.scene.has(item))
    return Ground(belief.world, *belief.here, tools, dangers, belief.facing)


def turn_or_do(belief: Belief, step: Cell, action: str = "Do") -> str:
    """Act on the cell in a direction, turning to it first."""
    return action if belief.facing == step else MOVE_OF[step]


def walk(belief: Belief, step: Cell | None) -> str | None:
    """The action that takes one step, clearing what is in the way; None where that cannot be."""
    if step is None or step not in MOVE_OF:
        return None
    bits = belief.world.at(belief.here[0] + step[0], belief.here[1] + step[1])
    if not solid(bits) or belief.facing != step:
        return MOVE_OF[step]
    if bits == BIT["water"]:
        return "Place Stone" if belief.scene.has("stone") else None
    return "Do"


def towards(belief: Belief, ground: Ground, target: Cell) -> str | None:
    """The first action on the way to something beyond the horizon."""
    far = np.array(ground.far).reshape(SIDE, SIDE)
    cells = np.arange(SIDE) - REACH - 1
    across = np.abs(cells + ground.x - target[0])[:, None] + np.abs(cells + ground.y - target[1])[None, :]
    score = np.where(far < NEVER, far // 2 + 2 * across, NEVER * SIDE)
    best = int(score.argmin())
    return walk(belief, ground.step_to(*ground.cell(best))) if score.flat[best] < NEVER * SIDE else None


def open_ahead(belief: Belief) -> bool:
    """Whether the cell in front is free to build on."""
    if belief.ahead is None or belief.scene.ahead in CREATURES:
        return False
    bits = belief.world.at(*belief.ahead)
    return bool(bits & WALKABLE) and not bits & ~WALKABLE
