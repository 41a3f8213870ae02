"""Where to look for more of a level, and where to search when there is nothing left to see."""

from __future__ import annotations

from functools import lru_cache

from automem.models.scripted.nethack.keys import walk
from automem.models.scripted.nethack.paths import Reach, ends, frontiers
from automem.models.scripted.nethack.scene import Scene
from automem.models.scripted.nethack.screen import FIRST_ROW, LAST_ROW, WIDTH
from automem.models.scripted.nethack.terrain import AROUND, NAMES, Terrain

OFTEN = 12
"""Visits of one place after which its best aim is taken to be out of reach."""

SEARCH_TURNS = "15"
"""Turns of one search where the game takes counts."""

_DOUBT, _GIVE_UP = 4, 10
"""Visits of the place before an aim, without the aim: it goes last, it goes."""

_WALL_DOUBT = 30
"""Steps that a dead end is worth more than a wall with nothing known behind it."""

_SPOTS = 14


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
    goal = places[persistence(scene) % len(places)]
    return walk(ways.start, ways.path(goal), scene.terrain, scene.actions, scene.last)


def persistence(scene: Scene) -> int:
    """0 at first; more where this place was visited so often that the best aim must be out of reach."""
    return scene.past.visits.get(scene.screen.at, 0) // OFTEN


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


def search(scene: Scene, ways: Reach) -> str | None:
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
    best = ranked[persistence(scene) % len(ranked)]
    if best == ways.start:
        return _searching(scene)
    return walk(ways.start, ways.path(best), scene.terrain, scene.actions, scene.last) or _searching(scene)


def _searching(scene: Scene) -> str | None:
    if scene.has("1") and scene.has("5"):
        return "1"
    return "search" if scene.has("search") else None


def anything(scene: Scene) -> str | None:
    """A step to a neighbour, away from where the newest notes have been."""
    places = {m.at: i for i, m in enumerate(scene.past.recent)}
    open_cells = [scene.screen.at + d for d in AROUND if scene.terrain.cost[scene.screen.at + d]]
    names = [(places.get(cell, -1), cell) for cell in open_cells if NAMES[cell - scene.screen.at] in scene.actions]
    return NAMES[min(names)[1] - scene.screen.at] if names else None
