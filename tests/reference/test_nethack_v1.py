"""The reference revision of NetHack: what its code says of real screens, and what it asks of memory."""

from __future__ import annotations

import pytest

from automem.hooks import Again, Step
from automem.ops import Op
from games.nethack.actions import nethack_keys
from tests.reference.playing import Player, altered, screens

SCREENS = screens("nethack")


def start() -> Player:
    return Player("nethack/v1", "NetHackChallenge-v0")


@pytest.fixture
def player() -> Player:
    return start()


def test_the_map_is_read_for_every_direction(player: Player) -> None:
    around = player.see(SCREENS["closed door"])["around"]
    assert "closed door east" in around
    assert "open north, south, west" in around
    assert "northeast" not in around.split("\n")[0]  # a wall


def test_a_monster_is_named_where_it_stands(player: Player) -> None:
    assert "grid bug west" in player.see(SCREENS["monster beside"])["around"]


def test_the_nearest_exits_are_told_with_steps_and_place(player: Player) -> None:
    nearest = player.see(SCREENS["closed door"])["around"].split("\n")[1]
    assert nearest.startswith("Nearest: ")
    assert "closed door 1 step east at 23,17, first east" in nearest
    assert "unexplored exit" in nearest


def test_stairs_in_view_are_told_once_they_are_seen(player: Player) -> None:
    assert player.see(SCREENS["closed door"])["warnings"] == ""
    assert player.see(SCREENS["stairs in view"], "west")["warnings"].startswith("! Stairs down at 54,6: 2 steps, ")


def test_stairs_under_the_feet_are_remembered(player: Player) -> None:
    unseen = player.see(SCREENS["on stairs"])["warnings"]
    assert "use down" not in unseen  # nothing on this screen tells
    again = start()
    again.see(SCREENS["stairs in view"])
    assert again.see(SCREENS["on stairs"], "southwest")["warnings"] == "! You stand on the stairs down: use down."


def test_little_strength_is_told_with_the_prayer_that_is_left(player: Player) -> None:
    weak = altered(SCREENS["stairs in view"], ("HP:14(15)", "HP:2(15)"))
    assert "HP 2 of 15: pray" in player.see(weak)["warnings"]
    prayed = altered(weak, ("message:\n", "message:\nYou begin praying to Amaterasu.\n"))
    player.see(prayed, "y")
    assert "pray" not in player.see(weak, "west")["warnings"]
    assert isinstance(player.check("pray"), Again)
    later = altered(weak, ("T:141", "T:1141"))
    assert "HP 2 of 15: pray" in player.see(later, "west")["warnings"]
    assert player.check("pray") is None
    assert start().see(SCREENS["stairs in view"])["warnings"].count("HP") == 0


@pytest.mark.parametrize(("hp", "told"), [("5(15)", True), ("6(15)", False), ("9(70)", True), ("10(70)", False)])
def test_strength_is_little_below_six_and_below_a_seventh(player: Player, hp: str, told: bool) -> None:
    text = altered(SCREENS["stairs in view"], ("HP:14(15)", f"HP:{hp}"))
    assert ("pray, or get away" in player.see(text)["warnings"]) == told


def test_going_to_and_fro_is_noticed(player: Player) -> None:
    here, there = SCREENS["stairs in view"], SCREENS["on stairs"]
    for i in range(3):
        assert "to and fro" not in player.see((here, there)[i % 2], "west")["warnings"]
    assert "to and fro between" in player.see(there, "west")["warnings"]


def test_an_exit_that_is_never_reached_is_no_longer_told(player: Player) -> None:
    here, there = SCREENS["stairs in view"], SCREENS["on stairs"]
    first = player.see(here)["around"].split("first")[0]
    for i in range(8):
        player.see((there, here)[i % 2], "west")
    later = player.see(SCREENS["stairs in view"], "east")["around"]
    assert "unexplored exit" in first and first.split("Nearest")[1] not in later


def test_an_action_without_effect_is_noticed_a_search_only_after_many(player: Player) -> None:
    text = SCREENS["closed door"]
    for _ in range(2):
        assert player.see(text, "northeast")["warnings"] == ""
    assert "northeast has changed nothing 2 times" in player.see(text, "northeast")["warnings"]
    patient = start()
    for _ in range(12):
        assert patient.see(text, "search")["warnings"] == ""
    assert "search has changed nothing 12 times" in patient.see(text, "search")["warnings"]


@pytest.mark.parametrize(
    ("written", "played"),
    [
        ("eat d", "eat"),
        ("apply a", "apply"),
        ("zap b east", "zap"),
        ("put on c", "puton"),
        ("drink f", "quaff"),
        ("kick west", "kick"),
        ("open north", "open"),
        ("go north", "north"),
        ("move east", "east"),
        ("Attack west.", "west"),
        ("far east 3", "far east"),
        ("run southwest", "far southwest"),
        ("east x3", "east"),
        ("3 north", "north"),
        ("search 10 times", "search"),
        ("pick up", "pickup"),
        ("descend", "down"),
    ],
)
def test_combined_commands_become_their_first_command(player: Player, written: str, played: str) -> None:
    player.see(SCREENS["closed door"])
    assert player.check(written) == played
    assert played in nethack_keys()


@pytest.mark.parametrize(
    "written", ["eat", "move", "far east", "5", "n", "eat the food", "go to the stairs", "kick", ""]
)
def test_what_is_right_or_unclear_is_let_be(player: Player, written: str) -> None:
    player.see(SCREENS["closed door"])
    assert player.check(written) is None


def test_the_letter_of_a_combined_command_is_told_when_the_game_asks(player: Player) -> None:
    player.see(SCREENS["closed door"])
    told = player.see(SCREENS["eat question"], "eat", "eat f")["warnings"]
    assert told == "! You wrote 'eat f': answer the game with f."
    assert player.check("eat f") == "f"
    assert "asks for nothing" in start().see(SCREENS["closed door"], "eat", "eat f")["warnings"]
    assert start().see(SCREENS["eat question"], "eat", "eat")["warnings"] == ""


def test_the_direction_of_a_kick_answers_the_question(player: Player) -> None:
    player.see(SCREENS["closed door"])
    assert "answer the game with north" in player.see(SCREENS["kick question"], "kick", "kick north")["warnings"]
    assert player.check("kick north") == "north"


def test_leaving_the_dungeon_is_asked_again(player: Player) -> None:
    text = SCREENS["closed door"]
    player.see(text)
    assert player.check("up") is None  # not on the stairs
    onto = altered(
        text,
        ("|........@+", "|.........+"),
        ("|......<..|", "|......@..|"),
        ("(x=22, y=17)", "(x=20, y=18)"),
    )
    player.see(onto, "southwest")
    assert isinstance(player.check("up"), Again)


def test_files_are_kept_when_something_changes_and_only_then(player: Player) -> None:
    player.see(SCREENS["stairs in view"])
    first = player.maintain()
    assert [op[:2] for op in first] == [("WRITE", "status.txt"), ("WRITE", "inventory.txt")]
    later = altered(SCREENS["stairs in view"], ("T:141", "T:142"))
    player.see(later, "search")
    assert player.maintain() == []  # only a turn has passed
    player.see(altered(later, ("HP:14(15)", "HP:9(15)")), "search")
    assert [op[:2] for op in player.maintain()] == [("WRITE", "status.txt")]
    assert "HP:9(15)" in player.folder.memory.read("status.txt")


def test_a_long_map_keeps_this_level_and_all_stairs(player: Player) -> None:
    for i in range(79):
        player.folder.memory.run(Op("UPSERT_MAP", (f"{i},3", f"Dlvl {7 if i % 10 else 1}, been here")))
    player.folder.memory.run(Op("UPSERT_MAP", ("70,5", "Dlvl 7, been here")))
    player.folder.memory.run(Op("UPSERT_MAP", ("70,4", "Dlvl 5, stairs down")))
    player.see(SCREENS["stairs in view"])
    player.number = 1
    player.see(SCREENS["stairs in view"], "search")
    player.step = Step(20, player.step.observation, "search", "search", player.history)
    player.maintain()
    kept = player.folder.memory.read("map.txt").splitlines()
    assert len(kept) == 9 and "0,3: Dlvl 1, been here" in kept and "70,4: Dlvl 5, stairs down" in kept


def test_way_tells_the_steps_to_a_place(player: Player) -> None:
    player.see(SCREENS["stairs in view"])

    def way(target: str) -> str:
        return player.hooks.op_WAY((target,), None)

    assert way(">").startswith("> at 54,6: 2 steps")
    assert way("54,6").split(": ", 1)[1] == way(">").split(": ", 1)[1]
    assert "no way" in way("1,1")
    player.see(SCREENS["closed door"])
    assert way("door").startswith("door at 23,17: 1 step: east")
    assert "WAY goes to" in way("the shop")
    player.see(SCREENS["eat question"], "eat")
    assert "answer the game first" in way("new")


def test_nothing_is_told_while_the_game_asks(player: Player) -> None:
    assert player.see(SCREENS["eat question"]) == {"around": "", "warnings": ""}
    assert player.maintain() == []
