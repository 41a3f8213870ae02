"""The reference revision of MiniHack: what its code says of real screens, and what it asks of memory."""

from __future__ import annotations

import pytest

from automem.hooks import Again
from automem.ops import Op
from games import registry
from tests.reference.playing import Player, altered, screens

SCREENS = screens("minihack")


def start(task: str = "MiniHack-Quest-Easy-v0") -> Player:
    return Player("minihack/v1", task)


@pytest.fixture
def player() -> Player:
    return start()


CORNER = altered(
    SCREENS["boxoban"],
    ("#.....{`.#", "#.....@`.#"),
    ("#.####.@.#", "#.####...#"),
    ("(x=41, y=16)", "(x=40, y=10)"),
)
"""The player stands west of a boulder behind which the bars make a corner."""


def test_the_map_is_read_for_every_direction(player: Player) -> None:
    around = player.see(SCREENS["room"])["around"]
    assert "stairs up east" in around
    assert "open north, west, northeast, northwest" in around
    assert "unexplored exit" in around and "at 56,3" in around


def test_boulders_are_told_with_what_a_push_would_do() -> None:
    player = start("MiniHack-Boxoban-Medium-v0")
    around = player.see(SCREENS["boxoban"])["around"]
    assert "boulder that can be pushed north" in around
    assert "Nearest" not in around
    stuck = altered(
        SCREENS["boxoban"],
        ("#.####.@.#", "#@####...#"),
        ("(x=41, y=16)", "(x=35, y=16)"),
        ("#{....``.#", "#`....``.#"),
        ("#.#####..#", "#`#####..#"),
    )
    assert "boulder that is stuck north" in player.see(stuck)["around"]


def test_a_push_into_a_corner_is_asked_again_and_no_other() -> None:
    player = start("MiniHack-Boxoban-Medium-v0")
    player.see(CORNER)
    asked = player.check("east")
    assert isinstance(asked, Again) and "corner 42,10" in asked.reason
    assert player.check("west") is None
    player.see(altered(CORNER, ("@`.#", "@`{#")))
    assert player.check("east") is None  # a boulder is wanted there
    player.see(SCREENS["boxoban"])
    assert player.check("north") is None


def test_a_step_into_lava_is_asked_again(player: Player) -> None:
    player.see(SCREENS["lava"])
    assert isinstance(player.check("east"), Again)
    assert player.check("west") is None
    assert "lava" in player.see(SCREENS["lava"])["around"]


@pytest.mark.parametrize(
    ("task", "written", "played"),
    [
        ("MiniHack-Quest-Easy-v0", "zap a", "zap"),
        ("MiniHack-Quest-Easy-v0", "go east", "east"),
        ("MiniHack-Quest-Easy-v0", "run east", "far east"),
        ("MiniHack-Quest-Easy-v0", "pick up", "pickup"),
        ("MiniHack-Corridor-R3-v0", "kick west", "kick"),
        ("MiniHack-Corridor-R3-v0", "search 5 times", "search"),
        ("MiniHack-Boxoban-Hard-v0", "move north", "north"),
        ("MiniHack-MazeWalk-9x9-v0", "go southwest", "southwest"),
        ("MiniHack-Corridor-R3-v0", "run east", None),
        ("MiniHack-Boxoban-Hard-v0", "go northeast", None),
        ("MiniHack-Boxoban-Hard-v0", "search 5", None),
        ("MiniHack-MazeWalk-9x9-v0", "kick west", None),
        ("MiniHack-MazeWalk-9x9-v0", "n", None),
        ("MiniHack-MazeWalk-9x9-v0", "", None),
    ],
)
def test_combined_commands_become_one_that_the_task_has(task: str, written: str, played: str | None) -> None:
    player = start(task)
    player.see(SCREENS["room"])
    assert player.check(written) == played


@pytest.mark.parametrize("task", [task for task in registry.tasks() if task.startswith("MiniHack-")])
def test_the_actions_of_a_task_are_those_that_the_game_has(task: str) -> None:
    if "Boxoban" in task:
        expected = {"north", "east", "south", "west"}
    else:
        game = registry.make(task, max_steps=5)
        expected = set(game.actions)
        game.close()
    assert start(task).hooks.actions == expected


def test_going_to_and_fro_is_noticed(player: Player) -> None:
    here = SCREENS["room"]
    there = altered(here, ("|.....@<..|", "|....@.<..|"), ("(x=62, y=5)", "(x=61, y=5)"))
    for i in range(3):
        assert "to and fro" not in player.see((here, there)[i % 2], "west")["warnings"]
    assert "to and fro between 62,5 and 61,5" in player.see(there, "west")["warnings"]


def test_an_action_without_effect_is_noticed(player: Player) -> None:
    for _ in range(2):
        assert player.see(SCREENS["maze"], "west")["warnings"] == ""
    assert "west has changed nothing 2 times" in player.see(SCREENS["maze"], "west")["warnings"]


def test_files_are_kept_when_something_changes_and_only_then(player: Player) -> None:
    player.see(SCREENS["room"])
    assert [op[1] for op in player.maintain()] == ["status.txt", "inventory.txt"]
    player.see(SCREENS["room"], "north")
    assert player.maintain() == []
    player.see(altered(SCREENS["room"], ("HP:15(15)", "HP:9(15)")), "north")
    assert [op[:2] for op in player.maintain()] == [("WRITE", "status.txt")]


def test_stairs_down_are_told_where_they_are(player: Player) -> None:
    assert player.see(SCREENS["room"])["warnings"] == ""
    seen = altered(SCREENS["room"], ("|.........|", "|>........|"))
    assert player.see(seen, "west")["warnings"].startswith("! Stairs down at 57,4: 5 steps, ")
    assert player.hooks.op_WAY((">",), None).startswith("> at 57,4: 5 steps")
    walled = altered(SCREENS["lava"], ("}........--------", "}.......>--------"))
    assert "no way there is known yet" in start().see(walled)["warnings"]


def test_a_long_map_keeps_its_newest_lines(player: Player) -> None:
    for i in range(79):
        player.folder.memory.run(Op("UPSERT_MAP", (f"{i},4", "Dlvl 1, been here")))
        player.folder.memory.run(Op("UPSERT_MAP", (f"{i},3", "Dlvl 1, been here")))
    player.see(SCREENS["maze"])
    player.maintain()
    kept = player.folder.memory.read("map.txt").splitlines()
    assert len(kept) == 60 and kept[-1].startswith("78,3")
