"""The scripted player of NetHack and MiniHack: a pure function from one call to one reply."""

from __future__ import annotations

from automem.models.scripted.nethack import boulders
from automem.models.scripted.nethack.dungeon import decide, urgent, ways_down
from automem.models.scripted.nethack.exploring import search_spots, unvisited
from automem.models.scripted.nethack.notes import (
    Past,
    Questions,
    keeps_stairs,
    log_files,
    pinned_past,
    state_files,
)
from automem.models.scripted.nethack.scene import Scene
from automem.models.scripted.nethack.screen import Screen, actions_in, read_screen
from automem.models.scripted.nethack.terrain import read_terrain
from automem.models.scripted.nethack.writing import write
from automem.models.scripted.reading import Call, consulted_answers

READ_TURNS = 4
"""Turns of PLAN that may be spent on reading."""

_NEAREST, _MORE = 4, 12


def play(call: Call) -> str:
    """The reply to one call: reads, or an action, in PLAN; entries and DONE in LOG."""
    screen = read_screen(call.observation)
    return write(call, screen) if call.phase == "log" else _plan(call, screen)


def _plan(call: Call, screen: Screen) -> str:
    actions = actions_in(call.briefing.text)
    terrain = read_terrain(screen)
    if action := urgent(screen, terrain, call.last_action, actions):
        return _act(call, action)
    past = Past(sees_stairs=keeps_stairs(call))
    pinned_past(call, screen, past)
    scene = Scene(screen, terrain, actions, call.last_action, past, call.step)
    allowed = READ_TURNS + 1 if call.replies_left is None else call.replies_left + len(call.turns)
    reading = READ_TURNS if call.consulted is not None else min(READ_TURNS, allowed - 1)
    for turn in range(reading):  # one reply is kept for the action
        questions = _questions(turn, call, scene)
        if not questions.operations:
            break
        if call.consulted is not None:
            questions.answered(consulted_answers(call.consulted, questions.operations), past)
            continue
        if turn >= len(call.turns):
            return "\n".join(questions.operations)
        questions.answered(call.turns[turn][1], past)
    if boulders.is_boxoban(screen):
        move = boulders.next_move(past.plan, call.step, screen)
        if move is None:
            move = boulders.first_move(screen)
        if move:
            return _act(call, move)
    return _act(call, decide(scene))


def _questions(turn: int, call: Call, scene: Scene) -> Questions:
    """What to read before deciding: the newest lines first, then what is open after them."""
    questions = Questions(call, scene.screen)
    if not scene.screen.here:
        return questions
    if boulders.is_boxoban(scene.screen):
        if turn == 0:
            questions.plan()
        return questions
    if turn == 0:
        questions.recent()
        questions.maps()
        questions.state()
        if scene.screen.hp >= 0 and scene.screen.hp * 7 <= scene.screen.max_hp + 35:
            questions.prayers()
    ways = scene.ways()
    if ways_down(scene, ways) or _remembers_places(call):
        return questions
    places = unvisited(scene, ways)
    if not places:
        spots = [cell for cell in search_spots(scene, ways) if cell not in scene.past.searched]
        if spots:
            questions.visits([scene.screen.at])
        questions.visits(spots, searched=True)
        return questions
    asked = scene.past.asked
    if turn and places[0] in asked and ways.before[places[0]] in asked:
        return questions
    nearest = places[: _MORE if turn else _NEAREST]
    wanted = [scene.screen.at, *(cell for place in nearest for cell in (place, ways.before[place]))]
    cells = dict.fromkeys(cell for cell in wanted if cell not in asked)
    questions.visits(list(cells))
    return questions


def _remembers_places(call: Call) -> bool:
    """The scaffold keeps places in files that are read whole, or its log is short enough for that."""
    if any("{what}" in f.entry and (f.kind == "map" or f in state_files(call)) for f in call.briefing.files):
        return True
    return any(call.listing.get(f.name, (0, 0))[1] < 1_900 for f in log_files(call)[:1])


def _act(call: Call, action: str | None) -> str:
    """The action that was chosen, else one that changes little, else any that the prompt lists."""
    if action is None:
        actions = actions_in(call.briefing.text)
        usual = [name for name in ("search", "wait", "esc", "north", "east") if name in actions]
        action = usual[call.step % len(usual)] if usual else min(actions, default="north")
    return f"<|ACTION|>{action}<|END|>"
