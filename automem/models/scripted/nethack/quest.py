"""The quests: a wand and a horn lie where one starts, and cold is the way over lava.

The two lie on one square, and MiniHack answers the menu of a pile with nothing. A kick moves
only the topmost thing, so it takes the pile apart; then each can be picked up alone. What
is where, and what is carried, is always in view: none of this needs a note.
"""

from __future__ import annotations

from automem.models.scripted.nethack import questions
from automem.models.scripted.nethack.keys import direction, key, walk
from automem.models.scripted.nethack.lines import aim, crowd, kicks
from automem.models.scripted.nethack.paths import Reach
from automem.models.scripted.nethack.scene import Scene
from automem.models.scripted.nethack.screen import Screen
from automem.models.scripted.nethack.terrain import OFFSETS

_THINGS = "(/"


def is_quest(scene: Scene) -> bool:
    """The tasks with tools: the status of MiniHack shows no turn, and only here one can zap and kick."""
    return scene.screen.turn < 0 and all(scene.has(name) for name in ("zap", "apply", "kick", "pickup"))


def tool(screen: Screen, actions: frozenset[str]) -> str | None:
    """The command that lets out cold, given what is carried and which letters can be typed."""
    letter = questions.horn(screen)
    if letter and key(letter, actions):
        return "apply"
    letter = questions.wand(screen)
    return "zap" if letter and key(letter, actions) else None


def fetch(scene: Scene, ways: Reach) -> str | None:
    """Get a tool that can be used: take the pile apart, then pick up."""
    screen, terrain = scene.screen, scene.terrain
    if tool(screen, scene.actions):
        return None
    if "You see here" in screen.message and any(thing in screen.message for thing in ("horn", "wand")):
        return "pickup"
    things = [cell for cell, shown in enumerate(terrain.cells) if shown in _THINGS and cell in ways.distance]
    if not things:
        return _step_off(scene) if not _has_any(screen) and scene.past_steps < 3 else None
    if len(things) > 1 or _has_any(screen):
        goal = min(things, key=lambda cell: (terrain.cells[cell] != "/", ways.distance[cell], cell))
        return walk(ways.start, ways.path(goal), terrain, scene.actions, scene.last)
    return _kick(scene, ways, things[0])


def freeze(scene: Scene, ways: Reach) -> str | None:
    """Use the tool on lava, from a place that has it straight ahead."""
    screen, terrain = scene.screen, scene.terrain
    command = tool(screen, scene.actions)
    if command is None or any(word in screen.message for word in ("othing happens", "too worn out")):
        return None
    if "}" not in terrain.cells or not screen.names("lava"):
        return None
    if aim(terrain, ways.start):
        return command
    for cell in ways.order:
        if ways.distance[cell] and aim(terrain, cell):
            return walk(ways.start, ways.path(cell), terrain, scene.actions, scene.last)
    return None


def blast(scene: Scene) -> str | None:
    """Use the tool on enemies who come in numbers."""
    if not scene.terrain.hostile or len(crowd(scene.terrain, scene.screen.at)) < 2:
        return None
    return tool(scene.screen, scene.actions)


def _has_any(screen: Screen) -> bool:
    return questions.horn(screen) is not None or questions.wand(screen) is not None


def _step_off(scene: Scene) -> str | None:
    """A pile under one's own feet comes into view from the next square."""
    for name in ("east", "south", "north", "west"):
        if name in scene.actions and scene.terrain.cells[scene.screen.at + OFFSETS[name]] == ".":
            return name
    return None


def _kick(scene: Scene, ways: Reach, pile: int) -> str | None:
    sides = [pile - offset for offset in kicks(scene.terrain, pile)]
    if scene.screen.at in sides:
        return "kick"
    near = [cell for cell in sides if cell in ways.distance and cell != ways.start]
    if not near:
        return None
    goal = min(near, key=lambda cell: (ways.distance[cell], cell))
    path = ways.path(goal)
    if pile in path:
        return _step_off(scene)
    name = direction(ways.start, path[0])
    return name if name in scene.actions else None
