"""Boxoban in NetHack's clothes: bars for walls, boulders for boxes, fountains for goals.

A boulder on a fountain hides it, so after some pushes the goals can no longer be read off
the map. The plan that is made while all of them are in view is therefore written down.
"""

from __future__ import annotations

import re
from functools import lru_cache

from automem.models.scripted.nethack.boxoban import Cell, solve
from automem.models.scripted.nethack.screen import DIRECTIONS, FIRST_ROW, LAST_ROW, Screen

BUDGET = 15_000
"""Positions that the search may expand for one plan."""

Level = tuple[frozenset[Cell], frozenset[Cell], frozenset[Cell], Cell]

_LETTERS = {"N": "north", "E": "east", "S": "south", "W": "west"}
_PLAN = re.compile(r"from step (\d+) at (\d+),(\d+): ([NESW]+|none)")


def is_boxoban(screen: Screen) -> bool:
    """Boulders within bars, and nothing but bars for walls."""
    text = "".join(screen.rows[FIRST_ROW : LAST_ROW + 1])
    return text.count("`") >= 2 and text.count("#") >= 12 and "|" not in text and "-" not in text


def make_plan(step: int, screen: Screen, last: str | None = None) -> str | None:
    """All moves to the solution as a line of text; "none" where none was found.

    Args:
        last: the action before this screen. After the very first move it tells what that move
            covered: the player stands on a fountain, or pushed a boulder onto one.
    """
    level = read_level(screen)
    if level is None:
        return None
    floor, boxes, goals, player = level
    moves = _second_half(level, last) if step == 1 else None
    moves = moves or _solve(floor, boxes, goals, player)
    told = "".join(move[0].upper() for move in moves) if moves else "none"
    return f"from step {step} at {player[0]},{player[1]}: {told}"


def _second_half(level: Level, last: str | None) -> tuple[str, ...] | None:
    """The rest of the solution whose first move was `last`: undo that move in each way it may have gone."""
    floor, boxes, goals, (x, y) = level
    if last is None or last not in DIRECTIONS:
        return None
    dx, dy = DIRECTIONS[last]
    before, here, ahead = (x - dx, y - dy), (x, y), (x + dx, y + dy)
    for earlier in ((boxes - {ahead}) | {here}, boxes) if ahead in boxes else (boxes,):
        for hidden in ((), (ahead,), (here,)):
            known = goals | set(hidden)
            if len(known) == len(boxes) and known <= floor and not earlier & {before}:
                moves = solve(floor, frozenset(earlier), frozenset(known), before, BUDGET)
                if moves and moves[0] == last:
                    return moves[1:]
    return None


def next_move(plan: str, step: int, screen: Screen) -> str | None:
    """What a plan says for this step; None where it does not fit the place. "" where it gave up."""
    found = _PLAN.search(plan)
    if found is None:
        return None
    if found[4] == "none":
        return ""
    done = step - int(found[1][:9])
    moves = found[4]
    if not 0 <= done < len(moves):
        return None
    x, y = int(found[2][:3]), int(found[3][:3])
    for letter in moves[:done]:
        dx, dy = DIRECTIONS[_LETTERS[letter]]
        x, y = x + dx, y + dy
    return _LETTERS[moves[done]] if (x, y) == (screen.x, screen.y) else None


def first_move(screen: Screen) -> str | None:
    """The first move of a plan made now."""
    level = read_level(screen)
    moves = _solve(*level) if level else None
    return moves[0] if moves else None


@lru_cache(maxsize=32)
def read_level(screen: Screen) -> Level | None:
    """Floor, boulders, fountains in view and the player's place; None where that is no puzzle."""
    floor: set[Cell] = set()
    boxes: set[Cell] = set()
    goals: set[Cell] = set()
    for y in range(FIRST_ROW, LAST_ROW + 1):
        for x, shown in enumerate(screen.rows[y]):
            if shown in " #":
                continue
            floor.add((x, y))
            if shown == "`":
                boxes.add((x, y))
            elif shown == "{":
                goals.add((x, y))
    player = (screen.x, screen.y)
    if not screen.here or player not in floor or not boxes:
        return None
    return frozenset(floor), frozenset(boxes), frozenset(goals), player


def _solve(
    floor: frozenset[Cell], boxes: frozenset[Cell], goals: frozenset[Cell], player: Cell
) -> tuple[str, ...] | None:
    """Solve with the goals in view; missing ones are under the player or under boulders."""
    missing = len(boxes) - len(goals)
    if missing <= 0:
        return solve(floor, boxes, goals, player, BUDGET)
    if missing == 1:
        moves = solve(floor, boxes, goals | {player}, player, BUDGET)
        if moves:
            return moves
    found = []
    for hidden in _choices(sorted(boxes), missing):
        moves = solve(floor, boxes, goals | set(hidden), player, BUDGET // 10)
        if moves:
            found.append((len(moves), moves))
    return min(found)[1] if found else None


def _choices(cells: list[Cell], count: int) -> list[tuple[Cell, ...]]:
    from itertools import combinations

    return list(combinations(cells, count))[:20]
