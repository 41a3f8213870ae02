"""How to get down: fight what stands in the way, take the stairs, look for more of the level.

`decide` chooses one action from the screen and from what notes say of the past; it remembers
nothing itself. Experience is no aim: deeper is.
"""

from __future__ import annotations

from functools import lru_cache

from automem.models.scripted.nethack import quest, questions
from automem.models.scripted.nethack.keys import direction, key, walk
from automem.models.scripted.nethack.paths import Reach, ends, frontiers
from automem.models.scripted.nethack.scene import Scene
from automem.models.scripted.nethack.screen import DIRECTIONS, FIRST_ROW, LAST_ROW, WIDTH, Screen
from automem.models.scripted.nethack.terrain import AROUND, DIAGONAL, NAMES, OFFSETS, Terrain

PRAYER_PAUSE = 900
"""Turns between two prayers."""

FIRST_PRAYER = 101
"""Before this turn a god is not to be disturbed."""

SEARCH_TURNS = "15"
"""Turns of one search where the game takes counts."""

_WALL_DOUBT = 30
_SPOTS = 14
_OFTEN = 12
_RETREAT = 3
_DOUBT, _GIVE_UP = 4, 10


def urgent(screen: Screen, terrain: Terrain, last: str | None, actions: frozenset[str]) -> str | None:
    """The action that needs no look at the notes: an answer, or the rest of a count."""
    if "Count:" in screen.message and not screen.here:
        return "search" if "search" in actions else None
    if questions.asks(screen):
        return questions.answer(screen, terrain, last, actions)
    if last == "1" and "5" in actions and "search" in actions:
        return "5"
    return None


def low(screen: Screen) -> bool:
    """Close to death, by the rule that gods go by."""
    return 0 < screen.hp < max(6, -(-screen.max_hp // 7))


def decide(scene: Scene) -> str | None:
    """The next action, or None where nothing useful is known."""
    screen, terrain = scene.screen, scene.terrain
    if scene.has("down") and (on_stairs(scene) or _worth_a_try(scene)):
        return "down"
    if quest.is_quest(scene) and (action := quest.blast(scene)):
        return action
    for choose in (_stay_alive, _fall_back, fight, _eat, _dig, _rest):
        if action := choose(scene):
            return action
    ways = scene.ways()
    if quest.is_quest(scene) and (action := _cross(scene, ways)):
        return action
    return _to_stairs(scene, ways) or _kick(scene) or explore(scene, ways) or _search(scene, ways) or _anything(scene)


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
    """Out of the open, into something narrow, when several attack at once."""
    terrain, at = scene.terrain, scene.screen.at
    enemies = {at + OFFSETS[name] for name, monster in terrain.hostile.items() if monster not in scene.peaceful()}
    if len(enemies) < 2 or terrain.cells[at] == "#":
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
    for earlier, later in zip(recent, recent[1:], strict=False):
        if later.at == screen.at and earlier.at is not None and earlier.level == screen.level:
            name = direction(earlier.at, screen.at)
            if name and _stairs_at(earlier.text, name):
                return True
    return False


def _worth_a_try(scene: Scene) -> bool:
    """Coming back here time and again may mean that stairs lie hidden under one's own feet."""
    visits = scene.past.visits.get(scene.screen.at, 0)
    return visits > 0 and visits % _OFTEN == 0 and scene.screen.turn >= 0 and scene.last != "down"


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
    letter = questions.food(scene.screen)
    if "don't have anything to eat" in scene.screen.message or any("anything to eat" in m.text for m in scene.past.recent):
        letter = None
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
    if screen.turn < 0 or any(word in screen.message for word in ("stairs are too hard", "cannot dig", "too hard to dig", "here is too hard")):
        return None
    if "staircase" in screen.message or "ladder" in screen.message:
        return None
    letter = questions.digger(screen)
    if letter and scene.has("apply") and key(letter, scene.actions):
        return "apply"
    letter = questions.wand(screen)
    if letter and "digging" in screen.inventory[letter] and "(0:0)" not in screen.inventory[letter] and scene.has("zap"):
        return "zap" if "nothing happens" not in screen.message else None
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
    if (len(path) > 3 or not scene.past.sees_stairs) and scene.has("travel") and scene.has("wait") and scene.terrain.cells[goal] == ">" and not _travelled(scene):
        return "travel"
    return walk(ways.start, path, scene.terrain, scene.actions, scene.last)


def _travelled(scene: Scene) -> bool:
    """The last travel led nowhere: walk instead."""
    recent = scene.past.recent
    return scene.last == "wait" or sum(m.action == "wait" for m in recent[-4:]) >= 2


def _holes(scene: Scene) -> list[int]:
    around = scene.screen.adjacent()
    return [
        scene.screen.at + OFFSETS[name]
        for name, things in around.items()
        if name in OFFSETS and any(thing in ("hole", "trap door") for thing in things)
    ]


def _kick(scene: Scene) -> str | None:
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


def unvisited(scene: Scene, ways: Reach) -> list[int]:
    """Places worth a visit, best first, as far as notes tell.

    A place whose neighbour on the way was reached again and again, but never itself, is
    probably out of reach: it comes last, and then not at all. So do boulders.
    """
    visits = scene.past.visits
    ranked = []
    for cell in frontiers(scene.terrain, ways):
        tried = visits.get(ways.before[cell], 0)
        if not visits.get(cell) and tried < _GIVE_UP:
            ranked.append((tried >= _DOUBT, scene.terrain.cells[cell] == "`", ways.distance[cell], cell))
    ranked.sort()
    return [cell for *_, cell in ranked]


def explore(scene: Scene, ways: Reach) -> str | None:
    """One action toward the nearest place that may show more of the level."""
    places = unvisited(scene, ways)
    if not places:
        return None
    goal = places[_persistence(scene) % len(places)]
    return walk(ways.start, ways.path(goal), scene.terrain, scene.actions, scene.last)


def _persistence(scene: Scene) -> int:
    """0 at first; more where this place was visited so often that the best aim must be out of reach."""
    return scene.past.visits.get(scene.screen.at, 0) // _OFTEN


def search_spots(scene: Scene, ways: Reach) -> list[int]:
    """The likeliest places for a hidden way on, best first.

    The order does not depend on where the player stands, so that the same places are
    looked up, and compared, at every step of a walk between them.
    """
    return list(_spots(scene.terrain, ways)[:_SPOTS])


@lru_cache(maxsize=32)
def _spots(terrain: Terrain, ways: Reach) -> tuple[int, ...]:
    blind = set(ends(terrain, ways))
    scored = []
    taken: set[tuple[int, int]] = set()
    for cell in sorted(ways.order):
        x, y = cell % WIDTH, cell // WIDTH
        if cell in blind:
            scored.append((0, cell))
        elif (x // 4, y // 3) not in taken and (beyond := _unknown_beyond(terrain, cell)) >= 6:
            taken.add((x // 4, y // 3))
            scored.append((_WALL_DOUBT - beyond, cell))
    scored.sort()
    return tuple(cell for _, cell in scored)


def _unknown_beyond(terrain: Terrain, cell: int) -> int:
    """How much unknown lies behind a wall next to a cell, up to 20; 0 where no wall is next to it."""
    most = 0
    for step in (1, -1, WIDTH, -WIDTH):
        wall = cell + step
        if not 0 <= wall < len(terrain.cells) or terrain.cells[wall] not in "|-" or terrain.cost[wall]:
            continue
        count = 0
        for depth in range(1, 9 if abs(step) == 1 else 5):
            for side in (-1, 0, 1):
                other = wall + step * depth + side * (WIDTH if abs(step) == 1 else 1)
                y, x = divmod(other, WIDTH)
                if not (FIRST_ROW <= y <= LAST_ROW and 1 <= x < WIDTH - 1):
                    break
                count += terrain.cells[other] == " "
        most = max(most, count)
    return min(most, 20)


def _search(scene: Scene, ways: Reach) -> str | None:
    if not scene.has("search"):
        return None
    searched = scene.past.searched
    spots = search_spots(scene, ways)
    if not spots:
        return _searching(scene)
    blind = set(ends(scene.terrain, ways))
    turns = int(SEARCH_TURNS) if scene.has("1") else 1

    def cost(cell: int) -> int:
        doubt = 0 if cell in blind else _WALL_DOUBT - _unknown_beyond(scene.terrain, cell)
        return ways.distance[cell] + doubt + turns * searched.get(cell, 0)

    ranked = sorted(spots, key=lambda cell: (cost(cell), cell))
    best = ranked[_persistence(scene) % len(ranked)]
    if best == ways.start:
        return _searching(scene)
    return walk(ways.start, ways.path(best), scene.terrain, scene.actions, scene.last) or _searching(scene)


def _searching(scene: Scene) -> str | None:
    if scene.has("1") and scene.has("5"):
        return "1"
    return "search" if scene.has("search") else None


def _anything(scene: Scene) -> str | None:
    """A step to a neighbour, away from where the newest notes have been."""
    places = {m.at: i for i, m in enumerate(scene.past.recent)}
    open_cells = [scene.screen.at + d for d in AROUND if scene.terrain.cost[scene.screen.at + d]]
    names = [(places.get(cell, -1), cell) for cell in open_cells if NAMES[cell - scene.screen.at] in scene.actions]
    return NAMES[min(names)[1] - scene.screen.at] if names else None
