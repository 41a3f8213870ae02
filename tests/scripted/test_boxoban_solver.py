"""The search for pushes: what it answers solves the level, and it says when it found nothing."""

from __future__ import annotations

import pytest

from automem.models.scripted.nethack.boxoban import solve

_MOVES = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}

ONE_PUSH = ["#####", "#@$.#", "#####"]
CORNERS = ["#######", "#.   .#", "# $@$ #", "#  $  #", "#.   ##", "#######"]
AROUND = ["########", "#  .   #", "# $##$ #", "#  @#. #", "#      #", "########"]
TWO_IN_ONE_LANE = ["#########", "#@ $ $..#", "#       #", "#########"]


def read(rows: list[str]):
    cells = {(x, y): sign for y, row in enumerate(rows) for x, sign in enumerate(row)}
    floor = frozenset(cell for cell, sign in cells.items() if sign != "#")
    boxes = frozenset(cell for cell, sign in cells.items() if sign == "$")
    goals = frozenset(cell for cell, sign in cells.items() if sign == ".")
    (player,) = [cell for cell, sign in cells.items() if sign == "@"]
    return floor, boxes, goals, player


def boxes_after(rows: list[str], moves: tuple[str, ...]) -> set[tuple[int, int]]:
    """Where the boxes end when the rules of the game are applied; fails on an illegal move."""
    floor, boxes, _, (x, y) = read(rows)
    now = set(boxes)
    for move in moves:
        dx, dy = _MOVES[move]
        ahead = (x + dx, y + dy)
        assert ahead in floor, f"walked into a wall at {ahead}"
        if ahead in now:
            beyond = (x + 2 * dx, y + 2 * dy)
            assert beyond in floor and beyond not in now, f"pushed against something at {beyond}"
            now.remove(ahead)
            now.add(beyond)
        x, y = ahead
    return now


@pytest.mark.parametrize("rows", [ONE_PUSH, CORNERS, AROUND, TWO_IN_ONE_LANE])
def test_the_moves_bring_every_box_to_a_goal(rows: list[str]) -> None:
    floor, boxes, goals, player = read(rows)
    moves = solve(floor, boxes, goals, player)
    assert moves is not None
    assert boxes_after(rows, moves) <= goals


def test_a_single_push_takes_a_single_move() -> None:
    assert solve(*read(ONE_PUSH)) == ("east",)


@pytest.mark.parametrize(
    "rows",
    [
        ["#####", "#$ .#", "#@  #", "#####"],  # in a corner for good
        ["######", "#@$#.#", "######"],  # the goal lies behind a wall
        ["######", "#$$..#", "#$$..#", "#@   #", "######"],  # four boxes that hold each other
    ],
)
def test_a_level_without_solution_has_no_moves(rows: list[str]) -> None:
    assert solve(*read(rows)) is None


def test_it_gives_up_at_its_budget() -> None:
    floor, boxes, goals, player = read(CORNERS)
    assert solve(floor, boxes, goals, player, budget=1) is None
