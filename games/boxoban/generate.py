"""Boxoban levels made from a seed, solvable because they are played backwards.

A random room is carved, boxes stand on their goals, and a player pulls them away. The
pulls, undone, are a solution.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

from games.boxoban.levels import BOXES, SIDE, Cell, Level

_MOVES: dict[str, Cell] = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}
_FLOOR = {"hard": (22, 34), "medium": (28, 40)}
_PULLS = {"hard": (14, 22), "medium": (8, 14)}
_TRIES = 10_000


@dataclass(frozen=True, slots=True)
class Generated:
    """A level, and one way to solve it (directions to walk, boxes are pushed on the way)."""

    level: Level
    solution: tuple[str, ...]


def generate(level_set: str, seed: int) -> Generated:
    """The generated level of this set ("hard" or "medium") and seed: same seed, same level."""
    source = random.Random(f"generated boxoban {level_set} {seed}")
    for _ in range(_TRIES):
        floor = _carve(source, source.randint(*_FLOOR[level_set]))
        made = _play_backwards(source, floor, source.randint(*_PULLS[level_set]))
        if made is not None:
            boxes, goals, player, solution = made
            rows = _draw(floor, boxes, goals, player)
            return Generated(Level(rows, f"generated {level_set} {seed}"), solution)
    raise RuntimeError(f"no {level_set} Boxoban level found for seed {seed}")  # not seen for any seed


def _carve(source: random.Random, size: int) -> frozenset[Cell]:
    """Connected floor of `size` cells inside the outer wall, wide enough to move boxes."""
    x, y = source.randint(2, SIDE - 3), source.randint(2, SIDE - 3)
    floor = {(x, y)}
    while len(floor) < size:
        dx, dy = source.choice(tuple(_MOVES.values()))
        for _ in range(source.randint(1, 4)):
            if not (1 <= x + dx < SIDE - 1 and 1 <= y + dy < SIDE - 1):
                break
            x, y = x + dx, y + dy
            floor.add((x, y))
    return frozenset(floor)


def _play_backwards(source: random.Random, floor: frozenset[Cell], pulls: int):
    """Boxes, goals, player and solution after about `pulls` pulls; None when a goal is left occupied."""
    cells = sorted(floor)
    goals = tuple(source.sample(cells, BOXES))
    boxes = set(goals)
    player = source.choice([cell for cell in cells if cell not in boxes])
    undone: list[str] = []  # the solution, last move first
    pulled: Cell | None = None
    for _ in range(pulls):
        options = _pulls_within_reach(floor, boxes, player)
        if not options:
            break
        # Staying with one box most of the time takes it somewhere.
        same = [option for option in options if option[0] == pulled]
        box, direction, way = source.choice(same if same and source.random() < 0.7 else options)
        dx, dy = _MOVES[direction]
        stand = (box[0] - dx, box[1] - dy)
        if undone:  # walking after the last push is no part of a solution
            undone += [_OPPOSITE[step] for step in way]
        undone.append(direction)
        boxes = boxes - {box} | {stand}
        pulled, player = stand, (stand[0] - dx, stand[1] - dy)
    if boxes & set(goals) or player in goals:
        return None
    return boxes, goals, player, tuple(reversed(undone))


_OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}


def _pulls_within_reach(
    floor: frozenset[Cell], boxes: set[Cell], player: Cell
) -> list[tuple[Cell, str, tuple[str, ...]]]:
    """Pulls that the player can make: box, the push (direction) that would undo it, and the way there."""
    ways = _ways(floor, boxes, player)
    found = []
    for box in sorted(boxes):
        for direction, (dx, dy) in _MOVES.items():
            stand, behind = (box[0] - dx, box[1] - dy), (box[0] - 2 * dx, box[1] - 2 * dy)
            if stand in ways and behind in floor and behind not in boxes:
                found.append((box, direction, ways[stand]))
    return found


def _ways(floor: frozenset[Cell], boxes: set[Cell], player: Cell) -> dict[Cell, tuple[str, ...]]:
    """A shortest way from the player to every cell that can be walked to."""
    ways: dict[Cell, tuple[str, ...]] = {player: ()}
    queue = deque([player])
    while queue:
        cell = queue.popleft()
        for direction, (dx, dy) in _MOVES.items():
            there = (cell[0] + dx, cell[1] + dy)
            if there in floor and there not in boxes and there not in ways:
                ways[there] = (*ways[cell], direction)
                queue.append(there)
    return ways


def _draw(floor: frozenset[Cell], boxes: set[Cell], goals: tuple[Cell, ...], player: Cell) -> tuple[str, ...]:
    def symbol(cell: Cell) -> str:
        if cell not in floor:
            return "#"
        return "@" if cell == player else "$" if cell in boxes else "." if cell in goals else " "

    return tuple("".join(symbol((x, y)) for x in range(SIDE)) for y in range(SIDE))
