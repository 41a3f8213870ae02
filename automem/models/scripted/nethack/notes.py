"""What the player writes down, and what it asks of its notes.

Everything goes through the files that the scaffold plans for: a log's entry, a map's key and
entry, a note's entry are filled in as they stand there. A file that needs a value which the
player does not have is left alone. What comes back is read by the same templates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from automem.models.scripted.entries import Form, form
from automem.models.scripted.nethack.screen import WIDTH, Screen
from automem.models.scripted.nethack.terrain import OFFSETS
from automem.models.scripted.reading import Call, PlannedFile

_SHAPES = (
    ("step", r"\d+"),
    ("x", r"\d+"),
    ("y", r"\d+"),
    ("level", r"\d+"),
    ("action", r"[\w ]+?"),
)
_PLACE = re.compile(r"\(x=(\d+), y=(\d+)\)")
_LEVEL = re.compile(r"Dlvl:(\d+)")
_TURN = re.compile(r"\bT:(\d+)")
_SEARCHED = re.compile(r"\bsearched((?: \d+,\d+x\d+)+)")
_BEEN = re.compile(r"\bbeen((?: \d+,\d+(?:x\d+)?)+)")
_TIMES = re.compile(r"(\d+),(\d+)(?:x(\d+))?")
_AT = re.compile(r"\bat (\d+),(\d+)")
_IN_VAIN = re.compile(r"(\d+),(\d+) (\w+) x(\d+) in step (\d+)")
_STATE_LEVEL = re.compile(r"\bDlvl (\d+)")
_STAIRS = re.compile(r"\bdown (\d+),(\d+)")
_PRAYED = re.compile(r"\bprayed (\d+)")
PLAN_MARK = "Boulder plan"
PRAYING = "You begin praying"


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of a log, read back; what the line does not hold is None or empty."""

    step: int | None
    action: str | None
    at: int | None
    level: int | None
    text: str


@dataclass
class Past:
    """What is known of earlier steps, by cell of the present level.

    Attributes:
        recent: the newest moments, oldest first.
        visits: how often a cell is known to have been stood on.
        searched: how many search actions were made there.
        asked: cells whose visits were looked up.
        prayed: the turn of the last prayer; None where none is known.
        plan: the text of a plan for the boulders.
        stairs: cells that are known to hold stairs down.
        sees_stairs: notes are kept from which stairs under one's own feet can be told.
        said: file -> its newest line, of files that take only what changed.
        stood: where a line of state says that the player stands on this level; None where none does.
        vain: move (from, to) -> how often it led nowhere, and the newest step in which it did.
    """

    recent: list[Moment] = field(default_factory=list)
    visits: dict[int, int] = field(default_factory=dict)
    searched: dict[int, int] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    prayed: int | None = None
    plan: str = ""
    stairs: set[int] = field(default_factory=set)
    sees_stairs: bool = True
    said: dict[str, str] = field(default_factory=dict)
    stood: int | None = None
    vain: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)


def log_files(call: Call) -> list[PlannedFile]:
    """Logs whose entries this player can fill."""
    return [f for f in call.briefing.files if f.kind == "log" and f.entry]


def keeps_stairs(call: Call) -> bool:
    """The files hold what was next to the player, or where the stairs are."""
    return any(
        "{seen}" in file.entry or "{observation}" in file.entry or (file.kind != "log" and "{what}" in file.entry)
        for file in call.briefing.files
    )


def plan_file(call: Call) -> PlannedFile | None:
    """The note that is meant for plans, if the scaffold has one."""
    notes = [f for f in call.briefing.files if f.kind == "note" and not f.entry]
    return next((f for f in notes if "plan" in f.name.lower() or "plan" in f.describe.lower()), None)


def values(call: Call, screen: Screen, what: str | None) -> dict[str, object]:
    """Values for the fields of entries, keys and file names."""
    here = screen.here
    return {
        "step": call.step,
        "action": call.last_action,
        "observation": call.observation,
        "message": screen.message,
        "status": screen.status or "-",
        "inventory": ", ".join(f"{letter}: {item}" for letter, item in screen.inventory.items()),
        "seen": "; ".join(screen.seen),
        "x": screen.x if here else None,
        "y": screen.y if here else None,
        "level": screen.level if screen.level >= 0 else None,
        "what": what,
    }


def read_line(entry: Form, line: str) -> Moment | None:
    """A log's line by its template; None where it is not one (cut off, or written by another hand)."""
    found = entry.read(line) or entry.read(line + " ")  # a line loses the space before an empty last field
    return moment(found, line) if found else None


def moment(found: Mapping[str, str], line: str) -> Moment:
    """A moment from the fields of a line, with what the rest of the line says of place and level."""
    at = None
    if "x" in found and "y" in found:
        at = int(found["y"][:3]) * WIDTH + int(found["x"][:3])
    elif place := _PLACE.search(line):
        at = int(place[2][:3]) * WIDTH + int(place[1][:3])
    level = int(found["level"][:4]) if "level" in found else None
    if level is None and (shown := _LEVEL.search(line)):
        level = int(shown[1][:4])
    step = int(found["step"][:9]) if "step" in found else None
    return Moment(step, found.get("action"), at, level, line)


class Questions:
    """Reads for one turn, and what to do with their answers; made anew, and alike, in every call."""

    def __init__(self, call: Call, screen: Screen) -> None:
        self.call = call
        self.screen = screen
        self.operations: list[str] = []
        self._takers: list = []

    @property
    def can(self) -> frozenset[str]:
        return self.call.briefing.operations

    def recent(self) -> None:
        """Ask for the newest lines of the first log that has any, unless the prompt shows them."""
        for file in log_files(self.call):
            lines, size = self.call.listing.get(file.name, (0, 0))
            if not lines:
                continue
            if file.name in self.call.pinned:
                return
            if "TAIL" in self.can:
                count = max(1, min(40, 1_900 // max(1, size // lines)))
                self._ask(f"<|TAIL|>{file.name}|{count}<|END|>", self._take_lines(file))
            elif "READ" in self.can:
                self._ask(f"<|READ|>{file.name}<|END|>", self._take_lines(file))
            return

    def maps(self) -> None:
        """Ask for maps that are not in the prompt; of maps in blocks, for the blocks around the player."""
        for file in self.call.briefing.files:
            if file.kind != "map" or not file.key or "READ" not in self.can:
                continue
            for name in _names(file, self.screen):
                if name in self.call.listing and name not in self.call.pinned:
                    self._ask(f"<|READ|>{name}<|END|>", self._take_map(file))

    def state(self) -> None:
        """Ask for one-line notes that are not in the prompt."""
        for file in state_files(self.call):
            if file.name not in self.call.pinned and file.name in self.call.listing and "READ" in self.can:
                self._ask(f"<|READ|>{file.name}<|END|>", self._take_state)

    def plan(self) -> None:
        """Ask for the plan for the boulders."""
        file = plan_file(self.call)
        if file is not None and file.name in self.call.listing and file.name not in self.call.pinned:
            if "READ" in self.can:
                self._ask(f"<|READ|>{file.name}<|END|>", _take_plan)
        elif file is None and "SEARCH" in self.can:
            for log in log_files(self.call)[:1]:
                self._ask(f"<|SEARCH|>{log.name}|{PLAN_MARK}<|END|>", _take_plan)

    def prayers(self) -> None:
        """Ask when the last prayer was: the message tells, where the log keeps messages."""
        for log in log_files(self.call)[:1]:
            told = "{message}" in log.entry or "{observation}" in log.entry
            if told and "SEARCH" in self.can and log.name in self.call.listing:
                self._ask(f"<|SEARCH|>{log.name}|{PRAYING}<|END|>", _take_prayers)

    def visits(self, cells: Sequence[int], searched: bool = False) -> None:
        """Ask how often the log tells of these cells, or of searches there."""
        for log in log_files(self.call)[:1]:
            if "COUNT" not in self.can or log.name not in self.call.listing:
                return
            for cell in cells:
                query = place_query(log.entry, cell, self.screen, searched)
                if query:
                    self._ask(f"<|COUNT|>{log.name}|{query}<|END|>", _take_count(cell, searched))

    def newest(self, file: PlannedFile) -> None:
        """Ask for the newest line of a file that is not in the prompt."""
        if "TAIL" in self.can and file.name in self.call.listing and file.name not in self.call.pinned:

            def take(past: Past, answer: str) -> None:
                past.said[file.name] = answer

            self._ask(f"<|TAIL|>{file.name}|1<|END|>", take)

    def answered(self, answers: Sequence[str], past: Past) -> None:
        """Put the answers, in the order of the questions, into the past."""
        for take, answer in zip(self._takers, answers, strict=False):
            take(past, answer)

    def _ask(self, operation: str, taker) -> None:
        self.operations.append(operation)
        self._takers.append(taker)

    def _take_lines(self, file: PlannedFile):
        entry = form(file.entry, _SHAPES)

        def take(past: Past, answer: str) -> None:
            for line in answer.split("\n"):
                found = read_line(entry, line)
                if found is None:
                    continue
                past.recent.append(found)
                if found.at is not None and found.level in (None, self.screen.level):
                    past.visits[found.at] = past.visits.get(found.at, 0) + 1
                    if found.action == "search":
                        past.searched[found.at] = past.searched.get(found.at, 0) + 1

        return take

    def _take_state(self, past: Past, answer: str) -> None:
        _take_state(past, answer, self.screen.level)

    def _take_map(self, file: PlannedFile):
        def take(past: Past, answer: str) -> None:
            read_map(file, answer, self.screen, past)

        return take


def _names(file: PlannedFile, screen: Screen) -> list[str]:
    if not file.block:
        return [file.name]
    column, row = screen.x // file.block, screen.y // file.block
    blocks = [f"{column + dx}_{row + dy}" for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
    return [name for block in blocks if (name := form(file.name).fill({"block": block}))]


def state_files(call: Call) -> list[PlannedFile]:
    """Notes whose whole content is one entry."""
    return [f for f in call.briefing.files if f.kind == "note" and f.entry]


def pinned_past(call: Call, screen: Screen, past: Past) -> None:
    """Take what the prompt itself shows of the files; lines of state last, which say most exactly."""
    for file in sorted(call.briefing.files, key=lambda file: file.kind == "note" and bool(file.entry)):
        names = _names(file, screen) if file.kind == "map" else [file.name]
        text = "\n".join(call.pinned[name] for name in names if name in call.pinned)
        if not text:
            continue
        if file.changes:
            past.said[file.name] = text.rpartition("\n")[2]
        if file.kind == "map" and file.key:
            read_map(file, text, screen, past)
        elif file.kind == "note" and file.entry:
            _take_state(past, text, screen.level)
        elif file == plan_file(call):
            _take_plan(past, text)
        elif file.kind == "log" and file.entry:
            questions = Questions(call, screen)
            questions._take_lines(file)(past, text)


def read_map(file: PlannedFile, text: str, screen: Screen, past: Past) -> None:
    """Read a map's lines ``key: value`` that speak of this level."""
    key = form(file.key, _SHAPES)
    for line in text.split("\n"):
        head, _, value = line.partition(": ")
        found = key.read(head)
        if found is None or "x" not in found or "y" not in found:
            continue
        level = int(found["level"][:4]) if "level" in found else None
        if level is None and (told := _STATE_LEVEL.search(value)):
            level = int(told[1][:4])
        if level not in (None, screen.level):
            continue
        cell = int(found["y"][:3]) * WIDTH + int(found["x"][:3])
        past.visits[cell] = past.visits.get(cell, 0) + 1
        if "stairs down" in value:
            past.stairs.add(cell)
            past.visits.pop(cell, None)
        if count := re.search(r"searched (\d+)", value):
            past.searched[cell] = max(past.searched.get(cell, 0), int(count[1][:6]))


def place_query(entry: str, cell: int, screen: Screen, searched: bool = False) -> str:
    """What to count in a log to learn of a cell: the part of its entry that holds the place.

    ``search at 12,5 Dlvl:1`` where the entry puts action, place and status side by side.
    """
    x, y = cell % WIDTH, cell // WIDTH
    if "{x}" not in entry or "{y}" not in entry:
        return f"(x={x}, y={y})" if "{observation}" in entry and not searched else ""
    low, high = sorted((entry.index("{x}"), entry.index("{y}")))
    between = entry[low + 3 : high]
    if "{" in between:
        return ""
    known = {"{x}": str(x), "{y}": str(y)}
    query = known[entry[low : low + 3]] + between + known[entry[high : high + 3]]
    before = re.split(r"(\{\w+\})", entry[:low])
    after = re.split(r"(\{\w+\})", entry[high + 3 :])
    query = before[-1] + query + after[0]
    if len(after) > 1 and after[1] == "{status}" and screen.level >= 0:
        query += f"Dlvl:{screen.level} $"
    elif len(after) > 1 and after[1] == "{level}" and screen.level >= 0:
        query += str(screen.level)
    if searched:
        if len(before) < 2 or before[-2] != "{action}":
            return ""
        query = "search" + query
    return query.strip()


def _take_count(cell: int, searched: bool):
    def take(past: Past, answer: str) -> None:
        found = re.search(r"\d+", answer)
        if found is None:
            return
        count = int(found[0][:9])
        kept = past.searched if searched else past.visits
        kept[cell] = max(kept.get(cell, 0), count)
        if not searched:
            past.asked.add(cell)

    return take


def _take_state(past: Past, text: str, level: int) -> None:
    told = _STATE_LEVEL.search(text)
    if prayed := _PRAYED.search(text):
        past.prayed = int(prayed[1][:9])
    if told is not None and int(told[1][:4]) != level:
        return
    if at := _AT.search(text):
        past.stood = _cell(at[1], at[2])
    for x, y, count in _places(_BEEN, text):
        # Those of the line come last, in its order: the newest.
        cell = _cell(x, y)
        past.visits[cell] = max(past.visits.pop(cell, 0), int(count[:6] or 1))
    for x, y in _STAIRS.findall(text):
        past.stairs.add(_cell(x, y))
    for x, y, count in _places(_SEARCHED, text):
        past.searched.pop(_cell(x, y), None)
        past.searched[_cell(x, y)] = int(count[:6] or 1)
    for x, y, name, count, step in _IN_VAIN.findall(text):
        if name in OFFSETS:
            past.vain[_cell(x, y), _cell(x, y) + OFFSETS[name]] = (int(count[:6]), int(step[:9]))


def _places(section: re.Pattern[str], text: str) -> list[tuple[str, str, str]]:
    """Places of a part of a line of state, each with its count."""
    found = section.search(text)
    return _TIMES.findall(found[1]) if found else []


def _cell(x: str, y: str) -> int:
    return int(y[:3]) * WIDTH + int(x[:3])


def _take_plan(past: Past, text: str) -> None:
    lines = [line for line in text.split("\n") if PLAN_MARK in line]
    if lines:
        past.plan = lines[-1]


def _take_prayers(past: Past, text: str) -> None:
    turns = [int(turn[:9]) for turn in _TURN.findall(text)]
    if turns:
        past.prayed = max([*turns, past.prayed or 0])


def failed_moves(recent: Sequence[Moment]) -> set[tuple[int, int]]:
    """Moves (from, to) that led nowhere: lately, or more than once as far as the notes go back."""
    failed: dict[tuple[int, int], int] = {}
    pairs = list(pairwise(recent))
    for age, (earlier, later) in zip(range(len(pairs), 0, -1), pairs, strict=True):
        if earlier.at is None or earlier.at != later.at or earlier.level != later.level:
            continue
        move = failed_move(later.action, earlier.at, later.text)
        if move is None:
            continue
        failed[move] = failed.get(move, 0) + (2 if age <= _LATELY else 1)
    return {move for move, weight in failed.items() if weight >= 2}


def failed_move(action: str | None, at: int, told: str) -> tuple[int, int] | None:
    """The move (from, to) that this action was, given that the player still stands where it began.

    None for what is no move, and where the game says what held the player: there the next try may succeed.
    """
    offset = OFFSETS.get((action or "").removeprefix("far "))
    if offset is None or any(word in told.lower() for word in _HELD):
        return None
    return at, at + offset


def left_out(vain: Mapping[tuple[int, int], tuple[int, int]], step: int) -> set[tuple[int, int]]:
    """Moves that are not to be tried again yet: each failure doubles the steps until the next try."""
    return {move for move, (count, newest) in vain.items() if step - newest < _LATELY << min(count - 1, 6)}


_LATELY = 4
_HELD = (" pit", "web", "bear trap", "you hit", "you miss", "you kill", "you destroy", "you swap", "stuck to",
         "you stop", "door opens", "this door is locked", "the door", "you bite", "you kick")  # fmt: skip
