"""How to get down: fight what stands in the way, take the stairs, look for more of the level.

`decide` chooses one action from the screen and from what notes say of the past; it remembers
nothing itself. Experience is no aim: deeper is.
"""

from __future__ import annotations

from itertools import pairwise

from automem.models.scripted.nethack import quest, questions
from automem.models.scripted.nethack.exploring import OFTEN, SEARCH_TURNS, anything, explore, search, unvisited
from automem.models.scripted.nethack.keys import direction, key, walk
from automem.models.scripted.nethack.lines import crowd
from automem.models.scripted.nethack.paths import Reach
from automem.models.scripted.nethack.scene import Scene
from automem.models.scripted.nethack.screen import DIRECTIONS, WIDTH, Screen
from automem.models.scripted.nethack.terrain import DIAGONAL, MONSTERS, OFFSETS, Terrain

PRAYER_PAUSE = 900
"""Turns between two prayers."""

FIRST_PRAYER = 101
"""Before this turn a god is not to be disturbed."""

_RETREAT = 6
_NEAR, _WITHIN_REACH = 3, 10
"""Distances at which stairs are better than a fight: for the sound, for the wounded."""

_TOO_HARD = ("stairs are too hard", "cannot dig", "too hard to dig", "here is too hard", "staircase", "ladder")


def urgent(screen: Screen, terrain: Terrain, last: str | None, actions: frozenset[str]) -> str | None:
    """The action that needs no look at the notes: an answer, or the rest of a count."""
    if "Count:" in screen.message and not screen.here:
        return "search" if "search" in actions else None
    if questions.asks(screen):
        return questions.answer(screen, terrain, last, actions)
    if last == SEARCH_TURNS[0] and SEARCH_TURNS[1] in actions and "search" in actions:
        return SEARCH_TURNS[1]
    return None


def low(screen: Screen) -> bool:
    """Close to death, by the rule that gods go by."""
    return 0 < screen.hp < max(6, -(-screen.max_hp // 7))


def decide(scene: Scene) -> str | None:
    """The next action, or None where nothing useful is known."""
    if scene.has("down") and (on_stairs(scene) or _worth_a_try(scene)):
        return "down"
    if quest.is_quest(scene) and (action := quest.blast(scene)):
        return action
    for choose in (_stay_alive, _escape, _fall_back, fight, _eat, _pick_up, _rest, _dig):
        if action := choose(scene):
            return action
    ways = scene.ways()
    if quest.is_quest(scene) and (action := _cross(scene, ways)):
        return action
    for way_on in (_to_stairs, _kick, _to_tool, explore, search):
        if action := way_on(scene, ways):
            return action
    return anything(scene)


def fight(scene: Scene) -> str | None:
    """A blow at a monster that stands next to the player and is not known to be peaceful."""
    peaceful = scene.peaceful()
    for name, monster in scene.terrain.hostile.items():
        offset = OFFSETS[name]
        through_door = offset in DIAGONAL and (
            scene.screen.at in scene.terrain.doors or scene.screen.at + offset in scene.terrain.doors
        )
        if name in scene.actions and monster not in peaceful and not through_door:
            return name
    return None


def _cross(scene: Scene, ways: Reach) -> str | None:
    """Get what freezes lava, and freeze it where it bars the way."""
    if action := quest.fetch(scene, ways):
        return action
    if ways_down(scene, ways) or (">" not in scene.terrain.cells and unvisited(scene, ways)):
        return None
    return quest.freeze(scene, ways)


def _fall_back(scene: Scene) -> str | None:
    """Out of the open, into something narrow, when several come at once."""
    terrain, at = scene.terrain, scene.screen.at
    enemies = {at + OFFSETS[name] for name, monster in terrain.hostile.items() if monster not in scene.peaceful()}
    tame = sum(line.count("tame ") for line in scene.screen.seen)
    if not enemies or len(crowd(terrain, at)) - tame < 2 or terrain.cells[at] == "#":
        return None
    ways = scene.ways()
    for cell in ways.order:
        if ways.distance[cell] > _RETREAT:
            return None
        if terrain.cells[cell] == "#":
            path = ways.path(cell)
            if path and not enemies.intersection(path):
                name = direction(at, path[0])
                return name if name in scene.actions else None
    return None


def on_stairs(scene: Scene) -> bool:
    """Stairs down that one stands on cannot be seen; a walk that ended on them can be remembered."""
    screen = scene.screen
    if "staircase down here" in screen.message or "stairs down here" in screen.message:
        return True
    if ">" in scene.terrain.cells or "can't go down" in screen.message:
        return False
    if scene.last == "wait":
        return True
    if screen.at in scene.past.stairs:
        return True
    recent = [m for m in scene.past.recent if m.at is not None]
    for earlier, later in pairwise(recent):
        if later.at == screen.at and earlier.at is not None and earlier.level == screen.level:
            name = direction(earlier.at, screen.at)
            if name and _stairs_at(earlier.text, name):
                return True
    return False


def _worth_a_try(scene: Scene) -> bool:
    """Coming back here time and again may mean that stairs lie hidden under one's own feet."""
    visits = scene.past.visits.get(scene.screen.at, 0)
    return visits > 0 and visits % OFTEN == 0 and scene.screen.turn >= 0 and scene.last != "down"


def _stairs_at(text: str, name: str) -> bool:
    start = text.find("stairs down adjacent ")
    return start >= 0 and name in text[start + 21 :].split(";")[0].replace(",", " ").split()


def _stay_alive(scene: Scene) -> str | None:
    screen = scene.screen
    if not low(screen):
        return None
    letter = questions.healing(screen)
    if letter and scene.has("quaff") and key(letter, scene.actions):
        return "quaff"
    if not scene.has("pray") or (screen.turn < FIRST_PRAYER and screen.turn >= 0):
        return None
    prayed = scene.past.prayed
    if prayed is not None and screen.turn - prayed < PRAYER_PAUSE:
        return None
    return "pray"


def _eat(scene: Scene) -> str | None:
    status = scene.screen.status
    if not any(word in status for word in ("Hungry", "Weak", "Faint")):
        return None
    told = (scene.screen.message, *(m.text for m in scene.past.recent))
    letter = None if any("anything to eat" in text for text in told) else questions.food(scene.screen)
    if letter and scene.has("eat") and key(letter, scene.actions):
        return "eat"
    weak = "Weak" in status or "Faint" in status
    prayed = scene.past.prayed
    if weak and scene.has("pray") and (prayed is None or scene.screen.turn - prayed >= PRAYER_PAUSE):
        return "pray"
    return None


def _dig(scene: Scene) -> str | None:
    """Straight down, for those who have a tool or a wand for it."""
    screen = scene.screen
    if screen.turn < 0 or any(word in screen.message for word in _TOO_HARD):
        return None
    letter = questions.digger(screen)
    if letter and "mattock" in screen.inventory[letter] and questions.shield(screen):
        told = (screen.message, *(m.text for m in scene.past.recent))
        return "takeoff" if scene.has("takeoff") and not any("cursed" in text for text in told) else None
    if letter and scene.has("apply") and key(letter, scene.actions):
        return "apply"
    letter = questions.wand(screen)
    if letter is None or not scene.has("zap") or "othing happens" in screen.message:
        return None
    return "zap" if "digging" in screen.inventory[letter] and "(0:0)" not in screen.inventory[letter] else None


def _pick_up(scene: Scene) -> str | None:
    """A tool for digging that lies here."""
    if not scene.has("pickup") or questions.digger(scene.screen) or scene.last == "pickup":
        return None
    return "pickup" if any(tool in scene.screen.message for tool in questions.DIGGERS) else None


def _to_tool(scene: Scene, ways: Reach) -> str | None:
    """Toward a tool for digging that is in view, if a thing shown like it can be reached."""
    if scene.screen.turn < 0 or questions.digger(scene.screen):
        return None
    if not any(scene.screen.names(tool) for tool in questions.DIGGERS):
        return None
    visits = scene.past.visits
    things = [c for c in ways.order if scene.terrain.cells[c] in "()" and c != ways.start and not visits.get(c)]
    return walk(ways.start, ways.path(things[0]), scene.terrain, scene.actions, scene.last) if things else None


def _escape(scene: Scene) -> str | None:
    """Down rather than fight, where the stairs are close: depth is what counts."""
    screen = scene.screen
    if not scene.terrain.hostile or screen.turn < 0:
        return None
    ways = scene.ways()
    goals = [cell for cell in ways_down(scene, ways) if ways.distance[cell] <= _WITHIN_REACH]
    wounded = screen.hp * 2 < screen.max_hp
    for goal in sorted(goals, key=lambda cell: ways.distance[cell]):
        path = ways.path(goal)
        if path and (wounded or len(path) <= _NEAR) and scene.terrain.cells[path[0]] not in MONSTERS:
            return direction(ways.start, path[0])
    return None


def _rest(scene: Scene) -> str | None:
    """Long counted searches while wounded and alone: they cost three actions, and find hidden doors besides."""
    screen = scene.screen
    if not (scene.has("9") and scene.has("search")) or screen.hp * 5 >= screen.max_hp * 3 or screen.hp <= 0:
        return None
    if any(word in screen.status for word in ("Hungry", "Weak", "Faint")) or scene.company():
        return None
    return "9"


def ways_down(scene: Scene, ways: Reach) -> list[int]:
    """Stairs and holes in view that can be reached."""
    goals = [cell for cell in scene.terrain.find(">") if cell in ways.distance]
    return goals + [cell for cell in _holes(scene) if cell in ways.distance]


def _to_stairs(scene: Scene, ways: Reach) -> str | None:
    goals = ways_down(scene, ways)
    if not goals:
        return None
    goal = min(goals, key=lambda cell: (ways.distance[cell], cell))
    path = ways.path(goal)
    can_travel = scene.has("travel") and scene.has("wait") and not _travelled(scene)
    if can_travel and scene.terrain.cells[goal] == ">" and (len(path) > _NEAR or not scene.past.sees_stairs):
        return "travel"
    return walk(ways.start, path, scene.terrain, scene.actions, scene.last)


def _travelled(scene: Scene) -> bool:
    """The last travel led nowhere: walk instead."""
    recent = scene.past.recent
    if scene.last is not None and (scene.last == "wait" or scene.last.isdigit()):
        return True
    return sum(m.action == "wait" for m in recent[-4:]) >= 2


def _holes(scene: Scene) -> list[int]:
    around = scene.screen.adjacent()
    return [
        scene.screen.at + OFFSETS[name]
        for name, things in around.items()
        if name in OFFSETS and any(thing in ("hole", "trap door") for thing in things)
    ]


def _kick(scene: Scene, ways: Reach) -> str | None:
    """A door that is locked, next to the player."""
    message = scene.screen.message
    told = [message, *(m.text for m in scene.past.recent)]
    if any("losed for inventory" in text for text in told):
        return None
    if not scene.has("kick") or not any(word in message for word in ("door is locked", "WHAMM", "Whamm", "Thwwp")):
        return None
    for _, (dx, dy) in DIRECTIONS.items():
        if dx * dy == 0 and scene.screen.at + dx + dy * WIDTH in scene.terrain.closed:
            return "kick"
    return None
