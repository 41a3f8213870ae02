"""What is written down in LOG: entries as the scaffold's templates say."""

from __future__ import annotations

from collections.abc import Iterable

from automem.memory.changes import said
from automem.models.scripted.crafter.belief import Belief
from automem.models.scripted.crafter.recall import ASLEEP, ME, Memory, Operation, material_of, needs_marker
from automem.models.scripted.crafter.rules import BIT, MATERIALS, NAME, REACH, WALKABLE
from automem.models.scripted.crafter.scene import Scene, read_scene, short_inventory, short_seen, short_status
from automem.models.scripted.crafter.shelves import Shelf, shelves
from automem.models.scripted.crafter.world import Cell
from automem.models.scripted.reading import Call

_ALWAYS = ("diamond", "iron", "table", "furnace", "plant", "lava", "coal")
_SOME = ("water", "tree", "stone")
MOST_THINGS = 6
"""Things written in one step."""


def write_notes(call: Call, memory: Memory, belief: Belief | None) -> list[Operation]:
    """The writes of this step."""
    scene = read_scene(call.observation)
    values = step_values(call, scene, belief)
    known = shelves(call.briefing)
    marked = needs_marker(known)
    operations: list[Operation] = []
    for shelf in known:
        if shelf.role == "things":
            if belief is not None:
                operations += _things(call, shelf, memory, belief, marked)
        else:
            operation = _step_entry(call, shelf, values, memory.said.get(shelf.file.name))
            if operation:
                operations.append(operation)
    return operations


def step_values(call: Call, scene: Scene, belief: Belief | None) -> dict[str, object]:
    """The fields of an entry for a step."""
    values: dict[str, object] = {
        "step": call.step,
        "action": call.last_action,
        "observation": call.observation,
        "seen": short_seen(scene),
        "status": short_status(scene),
        "inventory": short_inventory(scene),
    }
    if belief is not None:
        x, y = belief.here
        values |= {
            "x": x,
            "y": y,
            "facing": belief.track.facing or "unknown",
            "achieved": " ".join(sorted(belief.done)) or "none",
            "planted": " ".join(f"{x},{y}@{since}" for (x, y), since in sorted(belief.plants.items())) or "none",
        }
    return values


def _step_entry(call: Call, shelf: Shelf, values: dict[str, object], newest: str | None) -> Operation | None:
    able = call.briefing.operations
    text = shelf.entry.fill(values)
    if text is None or (newest is not None and said(text, shelf.file.entry) == said(newest, shelf.file.entry)):
        return None
    name = shelf.file.name
    if shelf.key is not None:
        key = shelf.key.fill(values)
        return ("UPSERT", name, key, text) if key is not None and "UPSERT" in able else None
    if shelf.role == "state":
        return ("WRITE", name, text) if "WRITE" in able else None
    return ("APPEND", name, text) if "APPEND" in able else None


def _things(call: Call, shelf: Shelf, memory: Memory, belief: Belief, marked: bool) -> list[Operation]:
    """Entries for what is new or has changed in view."""
    world = belief.world
    x0, y0 = belief.here
    changes: list[tuple[int, int, Cell, str]] = []
    written: dict[str, list[Cell]] = {}
    for cell, what in memory.things.items():
        material = material_of(what)
        if material:
            written.setdefault(material, []).append(cell)
    for dx in range(-REACH[0], REACH[0] + 1):
        for dy in range(-REACH[1], REACH[1] + 1):
            cell = (x0 + dx, y0 + dy)
            bits = world.at(*cell)
            old = memory.things.get(cell)
            material = material_of(old) if old else None
            if material is not None:
                believed = WALKABLE if material == "ground" else BIT[material]
                if bits & believed or cell == (x0, y0):
                    continue
                name = NAME.get(bits)
                if name is None and bits & ~WALKABLE:
                    continue
                changes.append((0, abs(dx) + abs(dy), cell, name or "ground"))
            elif old is None or not marked or cell != (x0, y0):
                name = NAME.get(bits)
                if name in _ALWAYS:
                    changes.append((1, abs(dx) + abs(dy), cell, _what(name, cell, belief)))
                elif name in _SOME and not _crowded(written.get(name, ()), cell):
                    written.setdefault(name, []).append(cell)
                    changes.append((2, abs(dx) + abs(dy), cell, name))
    if (
        not _crowded([c for name in ("ground", "grass", "path", "sand") for c in written.get(name, ())], (x0, y0), 2, 1)
        and not marked
    ):
        changes.append((3, 0, (x0, y0), "ground"))
    changes.sort()
    operations = [_thing_entry(call, shelf, cell, what, belief.step) for _, _, cell, what in changes[:MOST_THINGS]]
    if marked:
        if memory.marker and memory.marker[0] != (x0, y0):
            operations.append(_thing_entry(call, shelf, memory.marker[0], "ground", belief.step))
        me = f"{ME} facing {belief.track.facing or 'unknown'}, sees {short_seen(belief.scene)}"
        me += ASLEEP if belief.scene.sleeping else ""
        if memory.things.get((x0, y0)) != me:
            operations.append(_thing_entry(call, shelf, (x0, y0), me, belief.step))
    return [operation for operation in operations if operation is not None]


def _what(name: str, cell: Cell, belief: Belief) -> str:
    if name == "plant":
        return f"plant since {belief.plants.get(cell, belief.step)}"
    return name


def _crowded(cells: Iterable[Cell], cell: Cell, reach: int = 2, most: int = 2) -> bool:
    """Whether enough of a kind is written down near a cell."""
    x, y = cell
    return sum(abs(cx - x) + abs(cy - y) <= reach for cx, cy in cells) >= most


def _thing_entry(call: Call, shelf: Shelf, cell: Cell, what: str, step: int) -> Operation | None:
    able = call.briefing.operations
    x, y = cell
    side = shelf.file.block or 1
    values = {"x": x, "y": y, "what": what, "step": step, "block": f"{x // side}_{y // side}"}
    text = shelf.entry.fill(values)
    name = shelf.name.fill(values)
    if text is None or name is None:
        return None
    if shelf.key is None:
        return ("APPEND", name, text) if "APPEND" in able else None
    key = shelf.key.fill(values)
    if key is None:
        return None
    if "UPSERT" in able:
        return "UPSERT", name, key, text
    if "UPSERT_MAP" in able and set(shelf.key.fields) == {"x", "y"}:
        return "UPSERT_MAP", f"{x},{y}", text
    return None


assert set(_ALWAYS) | set(_SOME) <= set(MATERIALS)
