"""LOG: what is written down after an action has shown its outcome."""

from __future__ import annotations

from collections.abc import Mapping

from automem.memory.changes import said
from automem.models.scripted.entries import form
from automem.models.scripted.nethack import boulders
from automem.models.scripted.nethack.notes import (
    PLAN_MARK,
    PRAYING,
    Past,
    Questions,
    failed_move,
    log_files,
    pinned_past,
    plan_file,
    state_files,
    values,
)
from automem.models.scripted.nethack.paths import ends, looks_new, reach
from automem.models.scripted.nethack.screen import DIRECTIONS, WIDTH, Screen
from automem.models.scripted.nethack.terrain import NAMES, read_terrain
from automem.models.scripted.reading import Call, PlannedFile

MOST_PLACES = 80
"""Visited places that a state line keeps, newest last; those that the map cannot tell from new ones before others."""

MOST_SEARCHED = 24

MOST_IN_VAIN = 6


def write(call: Call, screen: Screen) -> str:
    """The reply of one LOG turn: a read where an entry needs the older one, else everything and DONE."""
    past = Past()
    pinned_past(call, screen, past)
    questions = _reads(call, screen)
    if questions.operations and not call.turns and call.replies_left != 1:
        return "\n".join(questions.operations)
    if call.turns:
        questions.answered(call.turns[0][1], past)
    operations = [op for file in call.briefing.files for op in _entry(call, screen, file, past)]
    operations += _plan(call, screen, past)
    return "\n".join([*operations, "<|DONE|><|END|>"])


def _reads(call: Call, screen: Screen) -> Questions:
    """What the new entries build upon."""
    questions = Questions(call, screen)
    if call.last_action == "search" and any(f.kind == "map" and "{what}" in f.entry for f in call.briefing.files):
        questions.maps()
    if any("{what}" in f.entry for f in state_files(call)):
        questions.state()
    if boulders.is_boxoban(screen):
        questions.plan()
    for file in call.briefing.files:
        if file.changes and file.entry:
            questions.newest(file)
    return questions


def _entry(call: Call, screen: Screen, file: PlannedFile, past: Past) -> list[str]:
    if not file.entry or (not screen.here and file.kind != "log"):
        return []
    can = call.briefing.operations
    if file.kind == "log":
        filled = values(call, screen, _moment(call, screen))
        line = form(file.entry).fill(filled)
        if not line or (file.name in past.said and said(line, file.entry) == said(past.said[file.name], file.entry)):
            return []
        return [f"<|APPEND|>{file.name}|{line}<|END|>"] if "APPEND" in can else []
    if file.kind == "note":
        text = form(file.entry).fill(values(call, screen, state(call, screen, past)))
        if text and file.name in past.said and said(text, file.entry) == said(past.said[file.name], file.entry):
            return []
        return [f"<|WRITE|>{file.name}|{text}<|END|>"] if text and "WRITE" in can else []
    return _map_entries(call, screen, file, past)


def _moment(call: Call, screen: Screen) -> str:
    """In a few words, what this step showed."""
    return screen.message or "nothing new"


def _map_entries(call: Call, screen: Screen, file: PlannedFile, past: Past) -> list[str]:
    """This place, and stairs in view, as entries of a map."""
    can = call.briefing.operations
    if not file.key:
        return []
    places: dict[tuple[int, int], str] = {}
    if screen.level >= 0:
        known = past.searched.get(screen.at, 0)
        if call.last_action == "search":
            places[screen.x, screen.y] = f"Dlvl {screen.level}, searched {known + 1}"
        elif _worth_a_note(screen):
            places[screen.x, screen.y] = f"Dlvl {screen.level}, been here"
        for direction, things in screen.adjacent().items():
            if "stairs down" in things and direction in DIRECTIONS:
                dx, dy = DIRECTIONS[direction]
                places[screen.x + dx, screen.y + dy] = f"Dlvl {screen.level}, stairs down"
    operations = []
    for (x, y), what in places.items():
        filled: Mapping[str, object] = {**values(call, screen, what), "x": x, "y": y}
        if file.block:
            filled = {**filled, "block": f"{x // file.block}_{y // file.block}"}
        key, value, name = (form(template).fill(filled) for template in (file.key, file.entry, file.name))
        if key is None or value is None or name is None:
            continue
        if "UPSERT" in can:
            operations.append(f"<|UPSERT|>{name}|{key}|{value}<|END|>")
        elif "UPSERT_MAP" in can and key == f"{x},{y}":
            operations.append(f"<|UPSERT_MAP|>{x},{y}|{value}<|END|>")
    return operations


def _worth_a_note(screen: Screen) -> bool:
    """Narrow ends look the same before and after a visit: only a note can tell."""
    return screen.at in _own_end(screen)


def _own_end(screen: Screen) -> list[int]:
    terrain = read_terrain(screen)
    return [cell for cell in ends(terrain, reach(terrain, screen.at)) if cell == screen.at]


def state(call: Call, screen: Screen, past: Past) -> str:
    """Everything that is worth carrying on, in one line."""
    searched = dict(past.searched)
    if call.last_action == "search":
        searched[screen.at] = searched.pop(screen.at, 0) + 1
    stairs = {i for i, shown in enumerate(read_terrain(screen).cells) if shown == ">"} | past.stairs
    prayed = screen.turn if PRAYING in screen.message else past.prayed
    parts = [f"Dlvl {screen.level}", f"at {screen.x},{screen.y}"]
    if stairs:
        parts.append(" ".join(f"down {c % WIDTH},{c // WIDTH}" for c in sorted(stairs)[:3]))
    parts.append("been " + " ".join(_been(screen, past)))
    if searched:
        newest = list(searched.items())[-MOST_SEARCHED:]
        parts.append("searched " + " ".join(f"{c % WIDTH},{c // WIDTH}x{n}" for c, n in newest))
    if vain := _in_vain(call, screen, past):
        parts.append("in vain " + ", ".join(vain))
    if prayed is not None:
        parts.append(f"prayed {prayed}")
    return "; ".join(parts)


def _been(screen: Screen, past: Past) -> list[str]:
    """Visited places, each with how often when that is more than once."""
    visits = dict(past.visits)
    visits[screen.at] = visits.pop(screen.at, 0) + 1
    terrain = read_terrain(screen)
    newest_first = list(visits)[::-1]
    worth = sorted(newest_first, key=lambda cell: not looks_new(terrain, cell))[:MOST_PLACES]
    kept = {screen.at, *worth}
    return [_times(cell, count) for cell, count in visits.items() if cell in kept]


def _times(cell: int, count: int) -> str:
    return f"{cell % WIDTH},{cell // WIDTH}" + (f"x{count}" if count > 1 else "")


def _in_vain(call: Call, screen: Screen, past: Past) -> list[str]:
    """Moves that led nowhere, newest last."""
    vain = dict(past.vain)
    move = failed_move(call.last_action, screen.at, screen.message) if past.stood == screen.at else None
    if move:
        vain[move] = (vain.pop(move, (0, 0))[0] + 1, call.step)
    return [
        f"{at % WIDTH},{at // WIDTH} {NAMES[to - at]} x{count} in step {step}"
        for (at, to), (count, step) in list(vain.items())[-MOST_IN_VAIN:]
    ]


def _plan(call: Call, screen: Screen, past: Past) -> list[str]:
    """A new plan for the boulders, where there is none that still fits."""
    if not boulders.is_boxoban(screen) or boulders.next_move(past.plan, call.step, screen) is not None:
        return []
    text = boulders.make_plan(call.step, screen, call.last_action)
    can = call.briefing.operations
    if text is None:
        return []
    file = plan_file(call)
    if file is not None and "WRITE" in can:
        return [f"<|WRITE|>{file.name}|{PLAN_MARK} {text}<|END|>"]
    for log in log_files(call)[:1]:
        if "APPEND" in can:
            return [f"<|APPEND|>{log.name}|{PLAN_MARK} {text}<|END|>"]
    return []
