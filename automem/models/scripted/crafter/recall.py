"""What is asked of memory in a phase, and what came back.

The plan of reading follows from the shelves: the one-line state and the newest entries of a
trail first; once the place is known, the parts of a map around it; and lines that name a
thing which is needed but not in sight.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from automem.models.scripted.crafter.rules import MATERIALS, MOVES
from automem.models.scripted.crafter.scene import Scene, read_scene, scene_of
from automem.models.scripted.crafter.shelves import Shelf, shelves
from automem.models.scripted.crafter.world import Cell
from automem.models.scripted.reading import Call, answers, read_limit

WINDOW = 8
"""Steps of a trail without places that a plan wants to see, to reckon from."""
LONG_WINDOW = 24
"""Steps of a trail with places."""
LOG_WINDOW = 5
"""Steps that are enough to reckon one more."""
MOST_READS = 3
"""Replies of a phase that may be spent on reading."""
ME = "player"
ASLEEP = ", asleep"
ASLEEP_STATUS = "h9 f9 d9 e0 asleep"

Operation = tuple[str, ...]
Ask = Callable[..., str | None]
"""Takes an operation; returns its answer, or None and notes that it is wanted."""
_TRUNCATED = re.compile(r"\[the newest|\[part of|\[the end")
_MARKER = re.compile(rf"{ME} facing (\w+), sees (.*)$")
_SINCE = re.compile(r"plant since (\d+)$")


@dataclass(slots=True)
class Memo:
    """One step as it was written down; what was not written is None."""

    step: int | None = None
    action: str | None = None
    place: Cell | None = None
    facing: str | None = None
    scene: Scene | None = None


@dataclass(slots=True)
class Memory:
    """What was read back in this phase.

    Attributes:
        memos: steps, oldest first, each step once where entries give the step.
        things: cell -> (what stood there as written).
        complete: names of things files that were read whole.
        counts: action -> how many entries of the trail name it.
        visited: (x, y, side) of blocks that have a file which was not read.
        moves_since: step from which on every move is among the memos.
        achieved: achievements written down; None where nothing says.
        planted: cell -> step.
        marker: the player's place, facing and what it saw, as a map of things holds it where nothing else does.
        said: file -> its newest line, of files that take only what changed.
        unbroken: steps between two of the memos that are not among them brought nothing new.
    """

    memos: list[Memo] = field(default_factory=list)
    things: dict[Cell, str] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    visited: list[tuple[int, int, int]] = field(default_factory=list)
    moves_since: int | None = None
    achieved: frozenset[str] | None = None
    planted: dict[Cell, int] = field(default_factory=dict)
    marker: tuple[Cell, str | None, Scene] | None = None
    said: dict[str, str] = field(default_factory=dict)
    unbroken: bool = False

    @property
    def newest(self) -> Memo | None:
        """The newest entry that says where the player was."""
        return next((memo for memo in reversed(self.memos) if memo.place is not None), None)


def needs_marker(all_shelves: tuple[Shelf, ...]) -> bool:
    """Whether only a map can hold the player's own place."""
    return any(s.role == "things" for s in all_shelves) and not any(s.placed for s in all_shelves)


def read_memory(call: Call) -> tuple[Memory, list[Operation]]:
    """What is known from memory so far, and the reads that are still worth making (none: go on)."""
    known = shelves(call.briefing)
    given = answers(call)
    memory = Memory()
    wanted: list[Operation] = []
    able = call.briefing.operations
    if call.phase == "log" and not any(shelf.reckoned or shelf.file.changes for shelf in known):
        return memory, []

    def ask(*operation: str) -> str | None:
        if operation in given:
            return given[operation]
        if operation[0] in able and operation not in wanted:
            wanted.append(operation)
        return None

    for shelf in known:
        if shelf.role == "things":
            continue
        for text in _step_texts(call, shelf, memory, ask):
            _take_steps(memory, shelf, text)
    memory.memos.sort(key=lambda memo: -1 if memo.step is None else memo.step)
    if call.phase == "plan":
        _count_actions(call, known, memory, ask)
    marked = needs_marker(known)
    for shelf in known:
        if shelf.role == "things" and marked:
            _find_marker(call, shelf, memory, ask)
    pending_place = bool(wanted) and any(s.placed or marked for s in known)
    around = _place(memory)
    for shelf in known:
        if shelf.role == "things":
            memory.visited += _blocks(call, shelf)
            for name, text in _thing_texts(call, shelf, ask, around, pending_place):
                _take_things(memory, shelf, name, text)
    # One reply is kept for what the phase is for.
    may_ask = len(call.turns) < MOST_READS and (call.replies_left is None or call.replies_left > 1)
    return memory, wanted if may_ask else []


def _place(memory: Memory) -> Cell | None:
    newest = memory.newest
    if newest is not None:
        return newest.place
    return memory.marker[0] if memory.marker else None


# Trails and states.


def _step_texts(call: Call, shelf: Shelf, memory: Memory, ask: Ask) -> list[str]:
    name = shelf.file.name
    if name in call.pinned:
        return [call.pinned[name]]
    if name not in call.listing:
        return []
    lines, size = call.listing[name]
    if shelf.role == "state" or lines <= 1:
        return [text for text in [ask("READ", name)] if text is not None]
    fit = max(1, read_limit(call.briefing) * lines // max(1, size))
    window = LONG_WINDOW if shelf.placed else WINDOW
    if call.phase == "log":
        window = LOG_WINDOW
    texts = []
    if "TAIL" in call.briefing.operations:
        texts.append(ask("TAIL", name, str(min(window, max(1, fit)))))
    else:
        texts.append(ask("READ", name))
    prefix = _step_prefix(shelf)
    if shelf.file.changes:
        # A step without a line is not worth a search.
        return [text for text in texts if text is not None]
    moves = _around(shelf, "Move").rstrip(":;") if "action" in shelf.fields and not shelf.placed else ""
    if moves and fit < window and call.phase == "plan" and call.last_action not in MOVES:
        # Whoever stands still learns more from the last moves than from the last steps.
        found = ask("SEARCH", name, moves)
        read = [fields for line in (found or "").splitlines() if (fields := shelf.line.read(line))]
        if read and "step" in shelf.fields:
            memory.moves_since = min(int(fields["step"]) for fields in read)
        texts.append(found)
    elif prefix and fit < window:
        newest = call.step if call.phase == "plan" else call.step - 1
        for step in range(newest - fit, max(0, newest - window), -1):
            texts.append(ask("SEARCH", name, prefix.format(step)))
    if shelf.placed and call.phase == "plan" and size > read_limit(call.briefing):
        for kind in lacking(read_scene(call.observation)):
            texts.append(ask("SEARCH", name, kind))
    return [text for text in texts if text is not None]


def _step_prefix(shelf: Shelf) -> str:
    """A search text that finds the entry of one step only, with ``{}`` for the step; empty if there is none."""
    before, found, after = shelf.line.template.partition("{step}")
    if not found or len(before.split()) < 1 or not after[:1] or after[0] in " {" or "{" in before:
        return ""
    return f"{before}{{}}{after[0]}"


def _take_steps(memory: Memory, shelf: Shelf, text: str) -> None:
    for line in text.splitlines():
        fields = shelf.line.read(line)
        if fields is None:
            continue
        if shelf.file.changes:
            memory.said[shelf.file.name] = line
            memory.unbroken = memory.unbroken or shelf.placed
        memo = Memo(
            step=int(fields["step"]) if "step" in fields else None,
            action=fields.get("action"),
            place=(int(fields["x"]), int(fields["y"])) if shelf.placed else None,
            facing=fields.get("facing") if fields.get("facing") != "unknown" else None,
        )
        if "observation" in fields:
            memo.scene = read_scene(fields["observation"])
        elif "seen" in fields or "status" in fields or "inventory" in fields:
            memo.scene = scene_of(fields.get("seen", ""), fields.get("status", ""), fields.get("inventory", ""))
        if "achieved" in fields:
            memory.achieved = frozenset(fields["achieved"].split()) - {"none"}
        if "planted" in fields and fields["planted"] != "none":
            for part in fields["planted"].split():
                place, _, since = part.partition("@")
                x, y = place.split(",")
                memory.planted[int(x), int(y)] = int(since)
        _merge(memory.memos, memo)


def _merge(memos: list[Memo], memo: Memo) -> None:
    """Add a memo, or what it adds to one of the same step."""
    if memo.step is not None:
        for other in memos:
            if other.step == memo.step:
                other.action = other.action or memo.action
                other.place = other.place or memo.place
                other.facing = other.facing or memo.facing
                if other.scene is None or not other.scene.sights:
                    other.scene = memo.scene or other.scene
                return
    memos.append(memo)


def lacking(scene: Scene) -> list[str]:
    """Kinds that are needed now and not in sight: what a look into the past may find."""
    vitals, items = scene.vitals, scene.items
    wanted = []
    if vitals.get("drink", 9) <= 4 and not scene.nearest("water"):
        wanted.append("water")
    if vitals.get("food", 9) <= 4 and not scene.nearest("cow"):
        wanted.append("cow")
    if "iron" in items and "iron_pickaxe" not in items and not scene.nearest("table"):
        wanted.append("table")
    if "stone_pickaxe" in items and "iron_pickaxe" not in items and "iron" not in items and not scene.nearest("iron"):
        wanted.append("iron")
    if "iron_pickaxe" in items and not scene.nearest("diamond"):
        wanted.append("diamond")
    if "stone_pickaxe" not in items and not scene.nearest("stone") and "wood_pickaxe" in items:
        wanted.append("stone")
    return wanted[:2]


def _count_actions(call: Call, known: tuple[Shelf, ...], memory: Memory, ask: Ask) -> None:
    """How often telling actions are written down."""
    if memory.achieved is not None:
        return
    shelf = next((s for s in known if s.role == "trail" and "action" in s.fields and s.file.name in call.listing), None)
    if shelf is None:
        return
    for action in ("Place Plant", "Place Stone", "Sleep", "Place Furnace"):
        text = ask("COUNT", shelf.file.name, _around(shelf, action))
        number = re.match(r"(\d+) ", text or "")
        if number:
            memory.counts[action] = int(number[1])


def _around(shelf: Shelf, action: str) -> str:
    """An action with the punctuation that an entry puts beside it."""
    before, _, after = shelf.line.template.partition("{action}")
    before = before[before.rfind("}") + 1 :]
    after = after.split("{")[0]
    return f"{before[-2:]}{action}{after[:1]}".strip()


# Things.


def _find_marker(call: Call, shelf: Shelf, memory: Memory, ask: Ask) -> None:
    names = [name for name in call.listing if _belongs(shelf, name)]
    if not names:
        return
    text = ask("SEARCH", "*" if shelf.in_blocks else shelf.file.name, f"{ME} facing")
    for line in (text or "").splitlines():
        if shelf.in_blocks:
            line = line.partition(": ")[2]
        fields = shelf.line.read(line)
        found = _MARKER.search(fields["what"]) if fields else None
        if fields and found:
            asleep = found[2].endswith(ASLEEP)
            memory.marker = (
                (int(fields["x"]), int(fields["y"])),
                found[1] if found[1] != "unknown" else None,
                scene_of(found[2].removesuffix(ASLEEP), ASLEEP_STATUS if asleep else ""),
            )


def _blocks(call: Call, shelf: Shelf) -> list[tuple[int, int, int]]:
    """The blocks that have been written to, as their names tell."""
    if not shelf.in_blocks:
        return []
    found = [shelf.name.read(name) for name in call.listing]
    side = shelf.file.block
    return [(int(x) * side, int(y) * side, side) for fields in found if fields for x, y in [fields["block"].split("_")]]


def _belongs(shelf: Shelf, name: str) -> bool:
    return shelf.name.read(name) is not None


def _thing_texts(call: Call, shelf: Shelf, ask: Ask, around: Cell | None, pending: bool) -> list[tuple[str, str]]:
    """(file, text) for the parts of a things file that matter here."""
    texts: list[tuple[str, str | None]] = []
    if shelf.in_blocks:
        names = {name for name in call.listing if _belongs(shelf, name)}
        pinned = [name for name in names if name in call.pinned]
        texts += [(name, call.pinned[name]) for name in pinned]
        if around is not None and not pending:
            x, y = around
            reach_x, reach_y = (4, 3) if call.phase == "log" else (6, 5)
            near = dict.fromkeys(
                shelf.block_file(x + dx, y + dy) for dx in (-reach_x, 0, reach_x) for dy in (-reach_y, 0, reach_y)
            )
            texts += [(name, ask("READ", name)) for name in near if name in names and name not in call.pinned]
    else:
        name = shelf.file.name
        if name in call.pinned:
            texts.append((name, call.pinned[name]))
        elif name in call.listing:
            texts.append((name, ask("READ", name)))
            if call.phase == "plan" and call.listing[name][1] > read_limit(call.briefing):
                texts += [(name, ask("SEARCH", name, kind)) for kind in lacking(read_scene(call.observation))]
    return [(name, text) for name, text in texts if text is not None]


def _take_things(memory: Memory, shelf: Shelf, name: str, text: str) -> None:
    lines = text.splitlines()
    if not (lines and _TRUNCATED.match(lines[0])):
        memory.complete.add(name)
    for line in lines:
        fields = shelf.line.read(line)
        if fields is None:
            continue
        cell = int(fields["x"]), int(fields["y"])
        memory.things[cell] = fields["what"]
        found = _SINCE.match(fields["what"])
        if found:
            memory.planted[cell] = int(found[1])


def material_of(what: str) -> str | None:
    """The material that a thing's entry names; "ground" for open ground; None for anything else."""
    word = what.split(" ", 1)[0]
    return word if word in MATERIALS or word == "ground" else None
