"""The choice of an action: dangers first, then what can be made here, then needs and wishes by worth and way."""

from __future__ import annotations

import numpy as np

from automem.models.scripted.crafter.belief import Belief
from automem.models.scripted.crafter.danger import face_danger
from automem.models.scripted.crafter.explore import explore
from automem.models.scripted.crafter.garden import garden
from automem.models.scripted.crafter.goals import DISCOUNT, Wish, level, wishes
from automem.models.scripted.crafter.ground import REACH, Ground
from automem.models.scripted.crafter.rest import rest
from automem.models.scripted.crafter.rules import BIT, CREATURES, MAKE, MOVE_OF, PLACE, tool_action
from automem.models.scripted.crafter.steps import WAIT, ground_of, open_ahead, towards, turn_or_do, walk
from automem.models.scripted.crafter.world import Cell, places_of

_SOUGHT = ("water", "cow", "tree", "stone", "coal", "iron", "diamond")
_UNKNOWN = 20
"""Steps to a thing of which no place is known, as a guess."""
_CURIOSITY = 0.12
"""Worth of seeing something new."""


def choose(belief: Belief) -> str:
    """The action for this step."""
    if belief.scene.sleeping:
        return WAIT
    return (
        _arm(belief)
        or face_danger(belief)
        or _make(belief)
        or _place(belief)
        or rest(belief)
        or _pursue(belief)
        or WAIT
    )


def _arm(belief: Belief) -> str | None:
    """A first sword when a zombie comes."""
    scene = belief.scene
    if belief.distance("zombie") > 4 or level(belief, "sword"):
        return None
    if belief.near("table"):
        return tool_action("wood_sword") if scene.has("wood") else None
    return "Place Table" if scene.has("wood", PLACE["table"]["wood"] + 1) and open_ahead(belief) else None


def _make(belief: Belief) -> str | None:
    """Make the best tool that can be made here."""
    if not belief.near("table"):
        return None
    furnace = belief.near("furnace")
    for tool, takes in MAKE.items():
        if belief.scene.has(tool) or (tool.startswith("iron") and not furnace):
            continue
        if all(belief.scene.has(item, count) for item, count in takes.items()):
            return tool_action(tool)
    return None


def _place(belief: Belief) -> str | None:
    """Place a table, a furnace or a sapling when it is time and the cell in front can take it."""
    if not open_ahead(belief):
        return None
    scene = belief.scene
    wood, stone = scene.items.get("wood", 0), scene.items.get("stone", 0)
    pickaxe, sword = level(belief, "pickaxe"), level(belief, "sword")
    if not belief.near("table"):
        spare = wood - PLACE["table"]["wood"]
        first = pickaxe == 0 and spare >= 2
        stones = pickaxe == 1 and stone >= 1 and spare >= 1
        metal = pickaxe >= 2 and min(pickaxe, sword) < 3 and spare >= 1 and scene.has("iron") and scene.has("coal")
        if (first or stones or metal) and not _close(belief, "table", 7):
            return "Place Table"
    elif stone >= PLACE["furnace"]["stone"] and pickaxe >= 2 and scene.has("iron") and not belief.near("furnace"):
        return "Place Furnace"
    if "place_furnace" not in belief.done and pickaxe >= 1 and stone > PLACE["furnace"]["stone"]:
        # Any place will do for the achievement.
        return "Place Furnace"
    if stone and "place_stone" not in belief.done and pickaxe >= 1:
        return "Place Stone"
    if scene.has("sapling") and scene.ahead == "grass" and "place_plant" not in belief.done:
        return "Place Plant"
    return None


def _close(belief: Belief, material: str, steps: int) -> bool:
    """Whether a material is known within so many steps."""
    x, y = belief.here
    area = belief.world.window(x, y, steps)
    if (area == BIT[material]).any():
        return True
    return belief.distance(material) <= steps


def _pursue(belief: Belief) -> str | None:
    """The wish that is worth most for its way; looking for something where no place of it is known."""
    ground = ground_of(belief)
    best: tuple[float, str] = (0.0, "")
    search: tuple[float, str] = (_CURIOSITY, "")
    for wish in wishes(belief):
        found = _reach(belief, ground, wish)
        if found is not None:
            best = max(best, (wish.worth * DISCOUNT ** found[0], found[1]))
        elif wish.kind in _SOUGHT:
            search = max(search, (wish.worth * DISCOUNT**_UNKNOWN, wish.kind))
    for worth, steps, action in _errands(belief, ground):
        best = max(best, (worth * DISCOUNT**steps, action))
    if best[0] >= search[0]:
        return best[1]
    return explore(belief, search[1]) or best[1] or None


def _reach(belief: Belief, ground: Ground, wish: Wish) -> tuple[int, str] | None:
    """Steps to a thing of a kind and the first action towards it."""
    if wish.kind in CREATURES:
        cells = belief.creatures(wish.kind) or (list(belief.cows) if wish.kind == "cow" else [])
        doubt = 2 if len(cells) > 1 else 0
        way = ground.nearest(cells)
        hunted = wish.kind
    else:
        cells, doubt = _known(belief, wish.kind)
        way = ground.nearest(cells)
        hunted = ""
    if way is None:
        far = [c for c in cells if ground.index(*c) is None]
        if not far:
            return None
        x, y = belief.here
        target = min(far, key=lambda c: abs(c[0] - x) + abs(c[1] - y))
        action = towards(belief, ground, target)
        return (abs(target[0] - x) + abs(target[1] - y) + 2, action) if action else None
    cost, cell = way
    step = ground.step_beside(*cell)
    if step is None:
        return None
    if cost == 0:
        exact = len(cells) == 1 or belief.world.at(*cell) == BIT.get(wish.kind)
        action = turn_or_do(belief, step) if exact or hunted else MOVE_OF[step]
        return 1, action
    action = walk(belief, step)
    return (cost // 2 + 1 + doubt, action) if action else None


def _known(belief: Belief, kind: str) -> tuple[list[Cell], int]:
    """Cells that certainly hold a material, or those where the nearest in view may be; and steps of doubt."""
    bit = BIT[kind]
    x, y = belief.here
    spots = np.argwhere(belief.world.window(x, y, REACH) == bit)
    cells = [(x + int(dx) - REACH, y + int(dy) - REACH) for dx, dy in spots]
    if kind == "stone":
        cells = [cell for cell in cells if not _fences(belief, cell)]
    sight = belief.scene.nearest(kind)
    if sight and not any(abs(cx - x) + abs(cy - y) <= sight.distance for cx, cy in cells):
        unsure = [(x + dx, y + dy) for dx, dy in places_of(sight) if belief.world.at(x + dx, y + dy) & bit]
        if unsure and sight.distance < min((abs(cx - x) + abs(cy - y) for cx, cy in cells), default=99):
            return unsure, 1
    if not cells:
        return belief.world.all_of(bit), 0
    return cells, 0


def _fences(belief: Belief, cell: Cell) -> bool:
    """Whether a cell lies beside a plant of one's own."""
    return any(abs(px - cell[0]) + abs(py - cell[1]) == 1 for px, py in belief.plants)


def _errands(belief: Belief, ground: Ground) -> list[tuple[float, int, str]]:
    """(worth, steps, action) of things that are not a matter of walking up to the nearest of a kind."""
    scene = belief.scene
    found: list[tuple[float, int, str]] = []
    # Back to a table, or table and furnace, with what a tool takes.
    wanted = [
        tool
        for tool, takes in MAKE.items()
        if not scene.has(tool) and all(scene.has(item, count) for item, count in takes.items())
    ]
    if wanted and not belief.near("table"):
        way = _reach(belief, ground, Wish("table", 1))
        if way:
            found.append((1.8, max(0, way[0] - 1), way[1]))
    elif wanted and all(tool.startswith("iron") for tool in wanted) and not belief.near("furnace"):
        way = _reach(belief, ground, Wish("furnace", 1))
        if way:
            found.append((1.8, max(0, way[0] - 1), way[1]))
    # A sapling is found by searching grass.
    if not scene.has("sapling") and "place_plant" not in belief.done and scene.ahead == "grass" and belief.ahead:
        found.append((2.2, 3, "Do"))
    found += garden(belief, ground)
    return found
