"""Which action types a key, and which step of a walk is worth an action.

A question of the game ("What do you want to eat? [de or ?*]") is answered with a letter; where
the game has no action of that name, the command on the same key types it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from automem.models.scripted.nethack.screen import DIRECTIONS, WIDTH
from automem.models.scripted.nethack.terrain import NAMES, ORTHOGONAL, Terrain

COMMANDS: Mapping[str, str] = {
    "a": "apply", "b": "southwest", "c": "close", "e": "eat", "h": "west", "j": "south", "k": "north",
    "l": "east", "n": "southeast", "o": "open", "q": "quaff", "s": "search", "u": "northeast",
    "y": "northwest", "z": "zap", "P": "puton", "H": "far west", "J": "far south", "K": "far north",
    "L": "far east", "U": "far northeast", "N": "far southeast", "B": "far southwest", "Y": "far northwest",
    ".": "wait", ">": "down", "<": "up", ",": "pickup",
}  # fmt: skip
"""Key -> the command that BALROG names by it."""


def key(letter: str, actions: Container[str]) -> str | None:
    """The action that types `letter`, or None."""
    if letter in actions:
        return letter
    command = COMMANDS.get(letter)
    return command if command in actions else None


def direction(start: int, cell: int) -> str | None:
    """The name of the step from one cell to a neighbour."""
    return NAMES.get(cell - start)


def walk(start: int, path: Sequence[int], terrain: Terrain, actions: Container[str], pending: str | None) -> str | None:
    """The action that makes the most of a way: a run, a counted move, or one step.

    Args:
        path: cells to walk, without the start.
        pending: the last action, which may be a count that waits for its direction.
    """
    name = direction(start, path[0]) if path else None
    if name is None or name not in actions:
        return None
    if any(terrain.cells[cell] in "^`" or cell in terrain.closed for cell in path[:2]):
        return name
    step = path[0] - start
    length = 1
    while length < len(path) and path[length] - path[length - 1] == step and path[length] not in terrain.closed:
        length += 1
    run = f"far {name}"
    if run in actions and length >= 2 and _runs_to(start, step, path, length, terrain):
        return run
    if length >= 3 and "9" in actions:
        count = str(min(length, 9))
        return name if pending == count else count
    return name


def _runs_to(start: int, step: int, path: Sequence[int], length: int, terrain: Terrain) -> bool:
    """A run goes on until something stops it: right where the way ends at a wall, or the map does, or in a corridor."""
    last = path[length - 1]
    ahead = last + step
    cells, cost = terrain.cells, terrain.cost
    if not cost[ahead]:
        return True
    if length == len(path) and cells[ahead] == " ":
        return True
    return all(cells[cell] == "#" for cell in path) and step in ORTHOGONAL


def opposite(name: str) -> str | None:
    """The direction back."""
    dx, dy = DIRECTIONS.get(name, (0, 0))
    return NAMES.get(-dx - dy * WIDTH)
