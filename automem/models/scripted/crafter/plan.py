"""The choice of an action: dangers first, then what can be made here, then needs and wishes by worth and way."""

from __future__ import annotations

import numpy as np

from automem.models.scripted.crafter.belief import Belief
from automem.models.scripted.crafter.goals import DISCOUNT, Wish, dark, level, wishes
from automem.models.scripted.crafter.ground import CENTRE, NEVER, REACH, SIDE, Ground, solid
from automem.models.scripted.crafter.rules import (
    ANY,
    BIT,
    CREATURES,
    DIRECTIONS,
    MAKE,
    MOVE_OF,
    PLACE,
    RIPE_AFTER,
    WALKABLE,
    tool_action,
)
from automem.models.scripted.crafter.rules import REACH as SIGHT
from automem.models.scripted.crafter.shelter import best_shelter, sealed, towards
from automem.models.scripted.crafter.world import Cell, places_of

WAIT = "Noop"


def choose(belief: Belief) -> str:
    """The action for this step."""
    if belief.scene.sleeping:
        return WAIT
    return (
        _fight(belief)
        or _dodge(belief)
        or _make(belief)
        or _place(belief)
        or _rest(belief)
        or _pursue(belief)
        or _explore(belief)
        or WAIT
    )


def _ground(belief: Belief) -> Ground:
    """The ground around, made once for a belief."""
    if belief.ground is None:
        belief.ground = _make_ground(belief)
    return belief.ground


def _make_ground(belief: Belief) -> Ground:
    dangers: dict[Cell, int] = {}
    for kind, own, beside in (("zombie", 8, 4), ("skeleton", 8, 2), ("cow", 6, 0), ("arrow", 6, 2)):
        cells = belief.creatures(kind)
        if len(cells) > 3:
            continue
        for x, y in cells:
            dangers[x, y] = dangers.get((x, y), 0) + own
            if beside:
                for dx, dy in DIRECTIONS.values():
                    dangers[x + dx, y + dy] = dangers.get((x + dx, y + dy), 0) + beside
    tools = frozenset(
        item for item in ("wood_pickaxe", "stone_pickaxe", "iron_pickaxe", "stone") if belief.scene.has(item)
    )
    return Ground(belief.world, *belief.here, tools, dangers, belief.facing)


def _turn_or_do(belief: Belief, step: Cell, action: str = "Do") -> str:
    return action if belief.facing == step else MOVE_OF[step]


def _walk(belief: Belief, step: Cell | None) -> str | None:
    """The action that takes one step, clearing what is in the way."""
    if step is None or step not in MOVE_OF:
        return None
    x, y = belief.here[0] + step[0], belief.here[1] + step[1]
    bits = belief.world.at(x, y)
    if not solid(bits) or belief.facing != step:
        return MOVE_OF[step]
    if bits == BIT["water"]:
        return "Place Stone" if belief.scene.has("stone") else None
    return "Do"


def _fight(belief: Belief) -> str | None:
    """Strike what stands beside."""
    for kind in ("zombie", "skeleton"):
        sight = belief.scene.nearest(kind)
        if sight and sight.distance == 1:
            return _turn_or_do(belief, (sight.dx, sight.dy))
    return None


def _dodge(belief: Belief) -> str | None:
    """Put a stone between oneself and what shoots or comes, when health is low and it is in line ahead."""
    scene = belief.scene
    health = scene.vitals.get("health", 9)
    for kind, most in (("skeleton", 5), ("arrow", 4), ("zombie", 2)):
        sight = scene.nearest(kind)
        if sight is None or sight.distance > most or sight.distance < 2 or (sight.dx and sight.dy):
            continue
        step = (sight.dx, sight.dy)
        if health <= (4 if kind == "zombie" else 5) and belief.facing == step and scene.has("stone"):
            return "Place Stone"
    return None


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
    if belief.ahead is None:
        return None
    scene = belief.scene
    front = belief.world.at(*belief.ahead)
    if scene.ahead in CREATURES or front & ~WALKABLE:
        return None
    wood, stone = scene.items.get("wood", 0), scene.items.get("stone", 0)
    pickaxe, sword = level(belief, "pickaxe"), level(belief, "sword")
    if not belief.near("table"):
        spare = wood - PLACE["table"]["wood"]
        first = pickaxe == 0 and spare >= 2
        stones = pickaxe == 1 and stone >= 1 and spare >= 1
        metal = pickaxe >= 2 and min(pickaxe, sword) < 3 and spare >= 1 and scene.has("iron") and scene.has("coal")
        if (first or stones or metal) and not _close(belief, "table", 7):
            return "Place Table"
    elif stone > PLACE["furnace"]["stone"] - 1 and pickaxe >= 2 and not belief.near("furnace"):
        if belief.missing("place_furnace") or scene.has("iron"):
            return "Place Furnace"
    if stone and belief.missing("place_stone") and pickaxe >= 1:
        return "Place Stone"
    if scene.has("sapling") and front == BIT["grass"] and "place_plant" not in belief.done:
        return "Place Plant"
    return None


def _close(belief: Belief, material: str, steps: int) -> bool:
    """Whether a material is known within so many steps."""
    x, y = belief.here
    area = belief.world.window(x, y, steps)
    if (area == BIT[material]).any():
        return True
    return belief.distance(material) <= steps


def _rest(belief: Belief) -> str | None:
    """Sleep when tired, in a closed room; make one when it is near or night falls."""
    vitals = belief.scene.vitals
    energy, health = vitals.get("energy", 9), vitals.get("health", 9)
    food, drink = vitals.get("food", 9), vitals.get("drink", 9)
    night = dark(belief.step)
    starving = food <= 1 or drink <= 1
    closed = sealed(belief.world, *belief.here)
    if closed and energy < 9 and not starving:
        if night or energy <= 5 or health <= 6 or "wake_up" not in belief.done:
            return "Sleep"
    if closed and health <= 4 and min(food, drink) >= 3:
        return WAIT
    if closed:
        return None
    if starving:
        return None
    patience = 0
    if energy <= 2:
        patience = 40
    elif night and energy <= 7 and min(food, drink) >= 3:
        patience = 24
    elif health <= 3 and min(food, drink) >= 3:
        patience = 10
    elif "wake_up" not in belief.done and energy <= 8:
        patience = 4
    if patience:
        ground = _ground(belief)
        shelter = best_shelter(
            belief.world, ground, belief.scene.items.get("stone", 0), belief.scene.has("wood_pickaxe")
        )
        if shelter is not None and shelter.cost <= patience:
            action = towards(shelter, belief.world, ground, belief.facing)
            if action:
                return action
    if energy <= 1 and belief.distance("zombie") > 4:
        return "Sleep"
    return None


def _pursue(belief: Belief) -> str | None:
    """The wish that is worth most for its way."""
    ground = _ground(belief)
    best: tuple[float, str] | None = None
    for wish in wishes(belief):
        found = _reach(belief, ground, wish)
        if found is None:
            continue
        steps, action = found
        worth = wish.worth * DISCOUNT**steps
        if best is None or worth > best[0]:
            best = (worth, action)
    for worth, steps, action in _errands(belief, ground):
        worth *= DISCOUNT**steps
        if best is None or worth > best[0]:
            best = (worth, action)
    if best is None or best[0] < 0.12:
        return None
    return best[1]


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
        action = _towards(belief, ground, target)
        return (abs(target[0] - x) + abs(target[1] - y) + 2, action) if action else None
    cost, cell = way
    step = ground.step_beside(*cell)
    if step is None:
        return None
    if cost == 0:
        exact = len(cells) == 1 or belief.world.at(*cell) == BIT.get(wish.kind)
        action = _turn_or_do(belief, step) if exact or hunted else MOVE_OF[step]
        return 1, action
    action = _walk(belief, step)
    return (cost // 2 + 1 + doubt, action) if action else None


def _known(belief: Belief, kind: str) -> tuple[list[Cell], int]:
    """Cells that certainly hold a material, or those where the nearest in view may be; and steps of doubt."""
    bit = BIT[kind]
    x, y = belief.here
    spots = np.argwhere(belief.world.window(x, y, REACH) == bit)
    cells = [(x + int(dx) - REACH, y + int(dy) - REACH) for dx, dy in spots]
    sight = belief.scene.nearest(kind)
    if sight and not any(abs(cx - x) + abs(cy - y) <= sight.distance for cx, cy in cells):
        unsure = [(x + dx, y + dy) for dx, dy in places_of(sight) if belief.world.at(x + dx, y + dy) & bit]
        if unsure and sight.distance < min((abs(cx - x) + abs(cy - y) for cx, cy in cells), default=99):
            return unsure, 1
    if not cells:
        return belief.world.all_of(bit), 0
    return cells, 0


def _towards(belief: Belief, ground: Ground, target: Cell) -> str | None:
    """The first action on the way to something beyond the horizon."""
    best = None
    for i, cost in enumerate(ground.far):
        if cost >= NEVER:
            continue
        cx, cy = ground.cell(i)
        score = cost // 2 + 2 * (abs(cx - target[0]) + abs(cy - target[1]))
        if best is None or score < best[0]:
            best = (score, (cx, cy))
    return _walk(belief, ground.step_to(*best[1])) if best else None


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
    if not scene.has("sapling") and "place_plant" not in belief.done:
        x, y = belief.here
        if belief.ahead and belief.world.at(*belief.ahead) == BIT["grass"] and scene.ahead == "grass":
            found.append((1.0, 3, "Do"))
    for cell, since in belief.plants.items():
        if belief.step - since > RIPE_AFTER + 5 and belief.world.at(*cell) & BIT["plant"]:
            cost = ground.cost_beside(*cell)
            step = ground.step_beside(*cell)
            if cost < NEVER and step:
                action = _turn_or_do(belief, step) if cost == 0 else _walk(belief, step)
                if action:
                    found.append((2.0, cost // 2 + 1, action))
    return found


def _explore(belief: Belief) -> str | None:
    """Walk to where most of what was never seen comes into view for the way."""
    ground = _ground(belief)
    unseen = (np.array(ground.bits, np.int32).reshape(SIDE, SIDE) == ANY).astype(np.int32)
    rx, ry = SIGHT
    total = np.zeros((SIDE + 2 * rx + 1, SIDE + 2 * ry + 1), np.int32)
    total[rx + 1 : rx + 1 + SIDE, ry + 1 : ry + 1 + SIDE] = unseen
    total = total.cumsum(0).cumsum(1)
    w, h = 2 * rx + 1, 2 * ry + 1
    gain = total[w:, h:] - total[:-w, h:] - total[w:, :-h] + total[:-w, :-h]
    far = np.array(ground.far, np.float64).reshape(SIDE, SIDE)
    score = np.where(far < NEVER, gain / (far + 10.0), -1.0)
    if belief.facing:
        # Keep going rather than turn back.
        fx, fy = belief.facing
        away = np.arange(SIDE) - REACH - 1
        along = away[:, None] * fx + away[None, :] * fy
        score *= 1 + 0.5 * along / np.maximum(1, np.abs(away)[:, None] + np.abs(away)[None, :])
    score.flat[CENTRE] = -1.0
    best = int(score.argmax())
    if score.flat[best] <= 0:
        return None
    return _walk(belief, ground.step_to(*ground.cell(best)))
