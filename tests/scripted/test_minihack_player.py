"""The scripted player in real MiniHack games: it solves them, and needs its notes for it."""

from __future__ import annotations

import pytest

from automem.models.scripted.nethack import boulders
from automem.models.scripted.nethack.screen import read_screen
from tests.scripted.hack_prompts import Played, observation, play_game


@pytest.mark.parametrize(
    ("task", "seed"),
    [
        ("MiniHack-MazeWalk-9x9-v0", 1002),
        ("MiniHack-Corridor-R3-v0", 1002),
        ("MiniHack-Quest-Easy-v0", 1005),
        ("MiniHack-Quest-Medium-v0", 1006),
    ],
)
def test_it_solves_what_can_be_explored(task: str, seed: int) -> None:
    played = play_game(task, seed, 100)
    assert played.progression == 1.0
    assert not played.errors


def test_boulders_are_pushed_by_a_plan_that_is_written_down() -> None:
    played = play_game("MiniHack-Boxoban-Medium-v0", 1001, 100)
    assert played.progression == 1.0
    assert boulders.next_move(played.memory.read("plan.txt"), 2, _at(played, 2)) is not None


def test_a_fountain_that_the_first_push_covered_is_remembered() -> None:
    before = ["#######", "#.....#", "#.{`@.#", "#..`..#", "#..{..#", "#######"]
    after = ["#######", "#.....#", "#.`@..#", "#..`..#", "#..{..#", "#######"]
    start, then = (read_screen(observation(rows, x, 3)) for rows, x in ((before, 4), (after, 3)))
    assert boulders.first_move(start) == "west"
    assert boulders.make_plan(1, then, "west") == "from step 1 at 3,3: S"


def _at(played: Played, step: int):
    """The screen of a step, from the prompts of its PLAN phase."""
    for messages, _ in played.asked:
        text = messages[1]["content"]
        if f"=== STEP {step} |" in text:
            return read_screen(text)
    raise AssertionError(f"step {step} was not played")


def test_with_an_emptied_memory_a_maze_takes_longer() -> None:
    seeds = (1001, 1008, 1011)
    remembered = [play_game("MiniHack-MazeWalk-15x15-v0", seed, 100) for seed in seeds]
    forgotten = [play_game("MiniHack-MazeWalk-15x15-v0", seed, 100, forget=True) for seed in seeds]
    assert sum(p.progression for p in forgotten) < sum(p.progression for p in remembered)
