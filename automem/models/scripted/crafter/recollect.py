"""From what was read back and what is seen now to a belief: place, facing, world and past."""

from __future__ import annotations

from automem.models.scripted.crafter.belief import Belief
from automem.models.scripted.crafter.recall import Memo, Memory, material_of
from automem.models.scripted.crafter.rules import BIT, DIRECTIONS, FACING, MOVES, WALKABLE
from automem.models.scripted.crafter.scene import Scene, read_scene
from automem.models.scripted.crafter.tracking import START_FACING, Track
from automem.models.scripted.crafter.world import Cell, World, places_of
from automem.models.scripted.reading import Call

TOLD_BY = {
    "Place Plant": "place_plant",
    "Place Stone": "place_stone",
    "Place Furnace": "place_furnace",
    "Sleep": "wake_up",
}
"""Actions whose entries in a log tell that an achievement was reached."""
_UNTOLD = frozenset(
    {*TOLD_BY.values(), "collect_drink", "eat_cow", "defeat_zombie", "defeat_skeleton", "collect_sapling"}
)
"""Achievements that what is carried does not show."""
EARLY = 60
"""Up to this step what nothing tells is taken as not reached, later as reached."""


def believe(call: Call, memory: Memory) -> Belief:
    """The belief at this step."""
    now = read_scene(call.observation)
    start = call.step <= 1 and not memory.memos and memory.marker is None
    placed = memory.newest is not None or memory.marker is not None
    world = World(edges=start or placed)
    for x, y, side in memory.visited:
        world.visited(x, y, side)
    for cell, what in memory.things.items():
        _put(world, cell, what)
    track, looks = _follow(call, memory, world, now, start)
    belief = Belief(call.step, track)
    belief.plants = dict(memory.planted)
    belief.trail = tuple((x, y) for _, x, y, _, _ in looks)
    belief.cows = _cows(looks, call.step) if not now.nearest("cow") else ()
    belief.done = _done(call, memory, looks, now, belief.plants)
    return belief


Look = tuple[int | None, int, int, Memo, str | None]
"""Step, place, memo and facing of something remembered."""


def _put(world: World, cell: Cell, what: str) -> None:
    material = material_of(what)
    if material is None:
        return
    if material == "ground" or BIT[material] & WALKABLE:
        world.visited(cell[0] - 3, cell[1] - 2, 7, 5)
    world.set(*cell, WALKABLE if material == "ground" else BIT[material])


def _follow(call: Call, memory: Memory, world: World, now: Scene, start: bool) -> tuple[Track, list[Look]]:
    """Replay what was written down, then what is seen now."""
    placed = [(memo, memo.place) for memo in memory.memos if memo.place is not None]
    looks: list[Look] = []
    track = Track(world, 0, 0, START_FACING if start else None)
    if placed:
        for memo, (x, y) in placed:
            if memo.scene is not None:
                world.see(x, y, memo.scene, memo.facing or _moved_facing(memo))
            looks.append((memo.step, x, y, memo, memo.facing))
        last, (track.x, track.y) = placed[-1]
        track.facing = last.facing or _moved_facing(last)
        track.scene = last.scene
        newest = last.step
    elif memory.marker is not None:
        (x, y), facing, scene = memory.marker
        track.place(x, y, facing, scene)
        newest = None
    else:
        run = _run(memory, call.step)
        for i, memo in enumerate(run):
            if i == 0:
                track.facing = _moved_facing(memo) or (START_FACING if memo.step == 0 else None)
                track.look(memo.scene or Scene())
            else:
                track.advance(memo.action, memo.scene or Scene())
            looks.append((memo.step, track.x, track.y, memo, track.facing))
        newest = run[-1].step if run else None
    kept_current = bool(placed) or memory.marker is not None
    arrived = newest == call.step if newest is not None else call.phase == "plan" and kept_current
    if arrived or call.last_action is None:
        track.look(now)
    elif placed or memory.marker or looks or start:
        track.advance(call.last_action, now)
    else:
        track.facing = _facing_of(call.last_action)
        track.look(now)
    return track, looks


def _run(memory: Memory, step: int) -> list[Memo]:
    """The remembered scenes up to this step or the one before, back to where a move may be missing."""
    by_step = {memo.step: memo for memo in memory.memos if memo.step is not None and memo.scene is not None}
    run: list[Memo] = []
    after = step
    for known in sorted(by_step, reverse=True):
        complete = memory.moves_since is not None and known >= memory.moves_since
        if known < after - 1 and not complete:
            break
        run.append(by_step[known])
        after = known
    return run[::-1]


def _facing_of(action: str | None) -> str | None:
    return FACING[MOVES[action]] if action in MOVES else None


def _moved_facing(memo: Memo) -> str | None:
    if memo.scene is not None and memo.scene.sleeping:
        return None
    return _facing_of(memo.action)


def _cows(looks: list[Look], step: int) -> tuple[Cell, ...]:
    """Where cows were seen, newest first."""
    found = []
    for seen, x, y, memo, _ in reversed(looks):
        sight = memo.scene.nearest("cow") if memo.scene else None
        if sight is None or (seen is not None and step - seen > 60):
            continue
        places = places_of(sight)
        dx, dy = places[len(places) // 2]
        found.append((x + dx, y + dy))
    return tuple(found[:3])


def achievements_shown(before: Scene | None, action: str | None, after: Scene) -> set[str]:
    """Achievements that one step shows to have been reached."""
    found = set()
    if before is not None:
        for item in ("wood", "stone", "coal", "iron", "diamond", "sapling"):
            if after.items.get(item, 0) > before.items.get(item, 0):
                found.add(f"collect_{item}")
        gain = {name: after.vitals.get(name, 0) - before.vitals.get(name, 0) for name in ("food", "drink")}
        if action == "Do" and (gain["drink"] > 0 or before.ahead == "water"):
            found.add("collect_drink")
        if action == "Do" and gain["food"] > 0:
            found.add("eat_plant" if before.ahead == "plant" else "eat_cow")
        if action == "Do" and before.ahead == "cow" and after.ahead != "cow" and _far(after, "cow"):
            found.add("eat_cow")
        if before.sleeping and not after.sleeping and after.vitals.get("energy") == 9:
            found.add("wake_up")
        struck = action == "Do" and before.ahead in ("zombie", "skeleton")
        if struck and after.ahead != before.ahead and _far(after, before.ahead):
            found.add(f"defeat_{before.ahead}")
    placed = {"Place Stone": "stone", "Place Table": "table", "Place Furnace": "furnace", "Place Plant": "plant"}
    if action in placed and after.ahead == placed[action]:
        found.add(f"place_{placed[action]}")
    return found


def _far(scene: Scene, kind: str) -> bool:
    sight = scene.nearest(kind)
    return sight is None or sight.distance > 2


def achievements_implied(scene: Scene) -> set[str]:
    """Achievements without which the inventory could not be what it is."""
    items = scene.items
    found = {f"collect_{item}" for item in ("wood", "stone", "coal", "iron", "diamond", "sapling") if item in items}
    for material in ("wood", "stone", "iron"):
        for tool in ("pickaxe", "sword"):
            if f"{material}_{tool}" in items:
                found |= {f"make_{material}_{tool}", "collect_wood", "place_table"}
                if material == "stone":
                    found |= {"collect_stone"}
                if material == "iron":
                    found |= {"collect_stone", "collect_coal", "collect_iron", "place_furnace"}
    if scene.nearest("furnace"):
        found.add("place_furnace")
    if scene.nearest("plant"):
        found |= {"place_plant", "collect_sapling"}
    return found


def _done(call: Call, memory: Memory, looks: list[Look], now: Scene, plants: dict[Cell, int]) -> frozenset[str]:
    done = set(memory.achieved or ())
    before: Memo | None = None
    for step, x, y, memo, facing in looks:
        if memo.scene is None:
            continue
        follows = before is not None and before.step is not None and (step == before.step + 1 or memory.unbroken)
        found = achievements_shown(before.scene if follows and before else None, memo.action, memo.scene)
        if "place_plant" in found and facing in DIRECTIONS and step is not None:
            dx, dy = DIRECTIONS[facing]
            plants.setdefault((x + dx, y + dy), step)
        done |= found | achievements_implied(memo.scene)
        before = memo
    if before is not None and (before.step == call.step - 1 or (memory.unbroken and before.step != call.step)):
        done |= achievements_shown(before.scene, call.last_action, now)
    else:
        done |= achievements_shown(None, call.last_action, now)
    done |= achievements_implied(now)
    if plants:
        done |= {"place_plant", "collect_sapling"}
    for action, achievement in TOLD_BY.items():
        if memory.counts.get(action, 0) > (1 if action == "Sleep" else 0):
            done.add(achievement)
    if memory.achieved is None and call.step > EARLY:
        # No effort is made for what may have been reached already.
        done |= _UNTOLD - {achievement for action, achievement in TOLD_BY.items() if action in memory.counts}
    return frozenset(done)
