"""Boxes to goals: a search over pushes for levels that are fully in view.

The search is a weighted A*: moves made so far, plus a lower bound on the pushes still needed
(each box to a goal of its own, as if it were alone). Positions from which some box can never
reach a goal are cut off. It expands a fixed number of positions and no clock is read, so the
same level always gives the same answer.
"""

from __future__ import annotations

import heapq
from collections import deque
from functools import lru_cache
from itertools import permutations

Cell = tuple[int, int]

_MOVES = (("north", 0, -1), ("east", 1, 0), ("south", 0, 1), ("west", -1, 0))
_FAR = 10_000


@lru_cache(maxsize=32)
def solve(
    floor: frozenset[Cell],
    boxes: frozenset[Cell],
    goals: frozenset[Cell],
    player: Cell,
    budget: int = 6_000,
    weight: int = 3,
) -> tuple[str, ...] | None:
    """Moves that bring every box to a goal, or None where none was found.

    Args:
        floor: cells that are not walls, goals and cells under boxes included.
        boxes, goals: as many of one as of the other; more goals than boxes are fine.
        player: where the player stands.
        budget: positions to expand before giving up.
        weight: of the pushes still needed against the moves made; more finds longer solutions sooner.
    """
    if not boxes or len(boxes) > len(goals) or not boxes <= floor or player not in floor:
        return None
    return _Search(floor, goals).run(boxes, player, budget, weight)


class _Search:
    def __init__(self, floor: frozenset[Cell], goals: frozenset[Cell]) -> None:
        self.number = {cell: i for i, cell in enumerate(sorted(floor))}
        self.goals = tuple(self.number[g] for g in sorted(goals) if g in self.number)
        self.next = [tuple(self.number.get((x + dx, y + dy), -1) for _, dx, dy in _MOVES) for x, y in sorted(floor)]
        self.pushes = [self._pushes_to(goal) for goal in self.goals]
        self.alive = [any(far[cell] < _FAR for far in self.pushes) for cell in range(len(self.next))]
        self.bounds: dict[tuple[int, ...], int] = {}

    def run(self, boxes: frozenset[Cell], player: Cell, budget: int, weight: int) -> tuple[str, ...] | None:
        start = (tuple(sorted(self.number[box] for box in boxes)), self.number[player])
        if self.bound(start[0]) >= _FAR:
            return None
        queue = [(weight * self.bound(start[0]), 0, 0, start)]
        best = {start: 0}
        came: dict = {start: None}
        count = 0
        goals = set(self.goals)
        while queue and budget > 0:
            _, _, made, state = heapq.heappop(queue)
            if made > best[state]:
                continue
            placed, at = state
            if goals.issuperset(placed):
                return self._moves(came, state)
            budget -= 1
            full = set(placed)
            walk = self._walk(at, full)
            for box in placed:
                around = self.next[box]
                for direction in range(4):
                    behind, ahead = around[direction ^ 2], around[direction]
                    if ahead < 0 or behind not in walk or ahead in full or not self.alive[ahead]:
                        continue
                    after = tuple(sorted(ahead if other == box else other for other in placed))
                    bound = self.bound(after)
                    if bound >= _FAR or (ahead not in goals and self._stuck(ahead, after)):
                        continue
                    other_state = (after, box)
                    total = made + walk[behind] + 1
                    if total < best.get(other_state, _FAR):
                        best[other_state] = total
                        came[other_state] = (state, direction, behind)
                        count += 1
                        heapq.heappush(queue, (total + weight * bound, count, total, other_state))
        return None

    def bound(self, boxes: tuple[int, ...]) -> int:
        """Fewest pushes that could do, each box to its own goal."""
        known = self.bounds.get(boxes)
        if known is None:
            known = self.bounds[boxes] = self._cheapest_pairing(boxes)
        return known

    def _cheapest_pairing(self, boxes: tuple[int, ...]) -> int:
        pushes = self.pushes
        if len(boxes) > 5:
            return max(min(far[box] for far in pushes) for box in boxes) and sum(
                min(far[box] for far in pushes) for box in boxes
            )
        return min(
            min(sum(pushes[goal][box] for goal, box in zip(order, boxes, strict=True)), _FAR)
            for order in permutations(range(len(self.goals)), len(boxes))
        )

    def _pushes_to(self, goal: int) -> list[int]:
        """Pushes that bring a lone box from each cell to `goal`."""
        far = [_FAR] * len(self.next)
        far[goal] = 0
        queue = deque([goal])
        while queue:
            cell = queue.popleft()
            for direction in range(4):
                source = self.next[cell][direction ^ 2]
                if source < 0 or far[source] < _FAR or self.next[source][direction ^ 2] < 0:
                    continue
                far[source] = far[cell] + 1
                queue.append(source)
        return far

    def _walk(self, at: int, full: set[int]) -> dict[int, int]:
        far = {at: 0}
        queue = deque([at])
        while queue:
            cell = queue.popleft()
            step = far[cell] + 1
            for other in self.next[cell]:
                if other >= 0 and other not in far and other not in full:
                    far[other] = step
                    queue.append(other)
        return far

    def _stuck(self, box: int, boxes: tuple[int, ...]) -> bool:
        """A square of four boxes and walls around a box that is on no goal never moves again."""
        full = set(boxes)

        def solid(cell: int) -> bool:
            return cell < 0 or cell in full

        north, east, south, west = self.next[box]
        for vertical, up in ((north, 0), (south, 2)):
            if not solid(vertical):
                continue
            for beside, side in ((east, 1), (west, 3)):
                if not solid(beside):
                    continue
                corner = self.next[vertical][side] if vertical >= 0 else -2
                if corner == -2:
                    corner = self.next[beside][up] if beside >= 0 else -1
                if solid(corner):
                    return True
        return False

    def _moves(self, came: dict, state: tuple) -> tuple[str, ...]:
        parts: list[list[str]] = []
        while came[state] is not None:
            earlier, direction, behind = came[state]
            parts.append([*self._way(earlier[1], behind, set(earlier[0])), _MOVES[direction][0]])
            state = earlier
        return tuple(move for part in reversed(parts) for move in part)

    def _way(self, start: int, goal: int, full: set[int]) -> list[str]:
        far = self._walk(goal, full)
        way: list[str] = []
        cell = start
        while cell != goal:
            direction = min(range(4), key=lambda d: far.get(self.next[cell][d], _FAR))
            way.append(_MOVES[direction][0])
            cell = self.next[cell][direction]
        return way
