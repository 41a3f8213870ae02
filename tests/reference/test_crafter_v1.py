"""The reference revision of Crafter: what its code says of real games, and what it asks of memory."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
from crafter import constants, objects

from automem import scaffold
from automem.hooks import Again
from automem.ops import Op
from tests.reference.crafter_game import REF, Play
from tests.reference.playing import Folder, code, episode

HOOKS = code(REF)
ACTIONS = "".join((Path(__file__).parent / "crafter_actions.txt").read_text().split())
"""A game of the scripted player on seed 1000, a letter for each action in the game's order."""

FRESH = Play()


@pytest.fixture
def game() -> Play:
    """The start of a game; a copy, because making a world takes long."""
    return copy.deepcopy(FRESH)


def maintain(files: Folder, at: Play) -> list[tuple[str, ...]]:
    """What is asked of memory; it is carried out."""
    return files.keep(at.hooks.maintain(at.step, files.view))


def test_the_revision_is_one_that_a_person_can_review() -> None:
    loaded = scaffold.load(REF)
    assert loaded.schema.scaffold.parent == scaffold.load("crafter/v0").identity
    assert {path: data.count(b"\n") for path, data in loaded.sources.items() if data.count(b"\n") >= 400} == {}


def test_the_tables_are_those_of_the_installed_game() -> None:
    assert set(HOOKS.TREE) == set(constants.achievements)
    for name, rule in constants.make.items():
        _, takes, beside = HOOKS.TREE[f"make_{name}"]
        assert (takes, list(beside)) == (rule["uses"], rule["nearby"])
    for name, rule in constants.place.items():
        assert HOOKS.TREE[f"place_{name}"][1] == rule["uses"]
        assert set(HOOKS.GROUND[name]) == set(rule["where"])
    for name in ("stone", "coal", "iron", "diamond"):
        assert HOOKS.TREE[f"collect_{name}"][1] == constants.collect[name]["require"]
    assert set(HOOKS.WALKABLE) == set(constants.walkable)
    assert (scaffold.find(REF) / "files/goals.txt").read_text().startswith(f"open: {' '.join(HOOKS.TREE)}\n")


def test_place_achievements_and_silence_in_a_whole_game() -> None:
    """The scripted player plays well: every step is followed, and next to nothing is questioned."""
    at = copy.deepcopy(FRESH)
    names = list(at.game.actions)
    start = tuple(int(v) for v in at.player.pos)
    questioned = []
    for letter in ACTIONS:
        here = tuple(int(v) for v in at.player.pos)
        assert (at.hooks.x, at.hooks.y) == (here[0] - start[0], here[1] - start[1]), f"step {at.number}"
        action = names[ord(letter) - ord("a")]
        if at.check(action) is not None:
            questioned.append((at.number, action))
        at.play(action)
    assert at.hooks.done.keys() == at.game.progress().achievements.keys()
    assert len(at.hooks.done) == 18
    assert questioned == []


def test_a_fresh_start_is_told_briefly_and_warns_of_nothing(game: Play) -> None:
    assert game.show["now"] == "You are at 0,0, facing south."
    assert game.show["warnings"] == game.show["upkeep"] == game.show["others"] == ""
    assert game.show["tech"].startswith("0/22 achievements. Possible now: collect_wood (Do on a tree), ")
    assert "place_table lacks 2 wood" in game.show["tech"]


def test_changes_and_new_achievements_are_told(game: Play) -> None:
    game.put("tree", 0, 1).play("Do")
    assert game.show["now"] == "You are at 0,0, facing south. Changed: wood +1. New: collect_wood."
    assert "collect_wood" not in game.show["tech"] and "place_table lacks 1 wood" in game.show["tech"]
    game.play("Noop")
    assert game.show["now"] == "You are at 0,0, facing south."


def test_a_tool_is_possible_where_what_is_missing_is_only_the_way(game: Play) -> None:
    game.have(wood=1, stone=1)
    assert "make_stone_pickaxe (go beside table)" in game.show["tech"]
    game.put("table", 1, 1)
    assert "make_stone_pickaxe," in game.show["tech"]


@pytest.mark.parametrize(
    ("action", "items", "told"),
    [
        ("Place Table", {"wood": 1}, "it takes 2 wood, you have 1 wood"),
        ("Place Furnace", {"stone": 3}, "it takes 4 stone, you have 3 stone"),
        ("Place Plant", {}, "it takes 1 sapling, you have 0 sapling"),
        ("Make Wood Pickaxe", {"wood": 1}, "no table among the 8 cells around you"),
        ("Make Iron Sword", {"wood": 1, "coal": 1, "iron": 1}, "no table and no furnace among the 8 cells around you"),
        ("Make Stone Sword", {"stone": 1}, "it takes 1 wood and 1 stone, you have 0 wood and 1 stone"),
    ],
)
def test_a_craft_that_cannot_work_is_questioned_and_explained(
    game: Play, action: str, items: dict[str, int], told: str
) -> None:
    game.have(**items)
    assert game.reason(action).startswith(told)
    game.play(action)
    assert f"{action} did nothing: {told}" in game.show["now"]


def test_a_craft_that_works_is_let_be(game: Play) -> None:
    game.have(wood=9, stone=9, sapling=1)
    for action in ("Place Table", "Make Wood Pickaxe", "Make Stone Sword"):
        assert game.check(action) is None, action
        game.play(action)
        assert "did nothing" not in game.show["now"]
    assert {"place_table", "make_wood_pickaxe", "make_stone_sword"} <= game.hooks.done.keys()


def test_what_is_in_front_decides_whether_a_thing_can_be_placed(game: Play) -> None:
    game.have(wood=2, stone=5, sapling=1).put("water", 0, 1)
    assert game.check("Place Stone") is None
    assert game.reason("Place Table").startswith("it needs free grass or sand or path in front, you face water")
    assert game.reason("Place Plant").startswith("it needs free grass in front, you face water")
    game.put("stone", 0, 1)
    assert "you face stone" in game.reason("Place Stone")


def test_ore_takes_its_pickaxe(game: Play) -> None:
    game.have(wood_pickaxe=1).put("iron", 0, 1)
    assert game.reason("Do").startswith("iron takes a stone pickaxe")
    game.play("Do")
    assert game.show["now"].endswith("Do did nothing: iron takes a stone pickaxe.")
    game.have(stone_pickaxe=1)
    assert game.check("Do") is None


def test_a_second_tool_of_a_kind_is_questioned(game: Play) -> None:
    game.have(wood=3, wood_pickaxe=1).put("table", 1, 1)
    assert game.reason("Make Wood Pickaxe").startswith("you carry a wood pickaxe already")
    assert game.check("Make Wood Sword") is None


def test_a_reason_is_told_once_then_the_model_may_insist(game: Play) -> None:
    assert isinstance(game.check("Place Table"), Again)
    assert game.check("Place Table") is None
    game.play("Place Table")
    assert game.check("Place Table") is None
    game.play("Noop", "Noop", "Noop")
    assert isinstance(game.check("Place Table"), Again)


def test_lava_is_warned_of_and_not_walked_into(game: Play) -> None:
    game.put("lava", 1, 0)
    assert "- lava 1 step east: never step there" in game.show["warnings"]
    assert game.reason("Move East").startswith("lava lies there, the step kills")
    assert game.check("Move West") is None
    assert game.check("Place Stone") is not None, "there is none to place"


def test_sleep_is_for_the_tired_and_the_walled_in(game: Play) -> None:
    assert game.reason("Sleep").startswith("energy is 9/9")
    game.have(energy=3)
    game.play("Move West", "Move North", "Move East", "Move North", "Move West", "Move North", "Move North")
    assert game.reason("Sleep").startswith("you lie in the open")
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        game.put("stone", x, y)
    assert game.check("Sleep") is None
    game.have(drink=1)
    assert game.reason("Sleep").startswith("you would wake up starving")


def test_a_hunter_in_view_is_named_when_one_would_sleep(game: Play) -> None:
    game.have(energy=3).play("Move West", "Move North", "Move East", "Move North", "Move West", "Move North")
    world, place = game.env.world, game.player.pos + np.array((2, 0))
    world[place] = "grass"
    world.add(objects.Zombie(world, place, game.player))
    game.play("Noop")
    assert "zombie" in game.reason("Sleep")


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"health": 2}, "health 2/9: keep away from fights"),
        ({"energy": 1}, "energy 1/9: close yourself in and Sleep"),
        ({"food": 3}, "food 3/9: no cow known, look for one"),
        ({"drink": 0}, "drink 0/9, health falls: no water known, look for one"),
    ],
)
def test_needs_are_told_when_they_are_urgent(game: Play, state: dict[str, int], told: str) -> None:
    assert told not in game.show["warnings"]
    assert f"- {told}" in game.have(**state).show["warnings"]


def test_a_need_names_what_is_in_view_or_else_on_the_map(game: Play) -> None:
    game.have(drink=2)
    maintain(Folder(REF, {"map.txt": "9,-3: water\n2,0: water here\n"}), game)
    game.look()
    assert "- drink 2/9: water here 2,0 (2 east)" in game.show["warnings"]
    game.player.inventory["drink"] = 2
    game.put("water", -1, 0)
    assert "- drink 2/9: water 1 step west" in game.show["warnings"]


def test_threats_are_told_when_they_are_near(game: Play) -> None:
    game.bring("zombie", 3, 0)
    assert game.show["warnings"] == "- zombie 3 steps east: strike first, or wall it off"
    game.bring("zombie", 4, 0)
    assert game.show["warnings"] == ""
    game.bring("skeleton", 0, 2)
    assert game.show["warnings"].startswith("- skeleton 2 steps south")


def test_idle_and_circling_steps_are_noticed(game: Play) -> None:
    game.play("Noop", "Noop", "Noop")
    assert "- 3 steps without any effect: do something else" in game.show["warnings"]
    game.play("Move West")
    assert game.show["warnings"] == ""
    game.play(*["Move East", "Move West"] * 6)
    assert "- going to and fro" in game.show["warnings"]


def test_what_may_work_the_next_time_is_not_called_idle(game: Play) -> None:
    game.put("water", 0, 1).play("Do", "Do", "Do", "Do")
    assert game.show["warnings"] == ""
    assert "did nothing" not in game.show["now"]


def test_sleep_is_an_aim_only_for_the_tired(game: Play) -> None:
    assert "wake_up" not in game.show["tech"]
    assert "wake_up" in game.have(energy=3).show["tech"]


def test_the_night_is_told_before_it_comes(game: Play) -> None:
    for number, told in ((129, ""), (130, "- night in 20 steps"), (160, "- night for 112 more steps"), (272, "")):
        game.number = number
        game.hooks.fresh = number
        game.look()
        assert game.show["warnings"].startswith(told) and bool(game.show["warnings"]) == bool(told)


def test_a_plant_is_waited_for(game: Play) -> None:
    game.have(sapling=1).put("grass", 0, 1).play("Place Plant")
    assert "eat_plant at 0,1 from step 302 on, if you stay near" in game.show["tech"].partition("Later")[2]
    assert game.reason("Do").startswith("no plant is ripe before step 302")
    maintain(Folder(REF, {"map.txt": "0,1: plant since 1\n"}), game)
    game.number = 302
    game.look()
    assert "eat_plant at 0,1" in game.show["tech"].partition("Later")[0]
    assert game.check("Do") is None
    maintain(Folder(REF, {"map.txt": "0,1: ground\n"}), game)
    assert game.hooks.plants == {}, "what the model wrote counts"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Move Up", "Move North"),
        ("go left", "Move West"),
        ("Collect wood", "Do"),
        ("drink water", "Do"),
        ("Wait", "Noop"),
        ("Move South", None),
        ("Do", None),
        ("Fly", None),
        ("", None),
    ],
)
def test_actions_that_the_game_does_not_have_are_repaired(game: Play, written: str, meant: str | None) -> None:
    assert game.check(written) == meant


def test_places_are_told_until_the_map_holds_them(game: Play) -> None:
    game.put("coal", 2, 0).put("table", 1, 1)
    assert {"2,0 coal", "1,1 table"} <= set(game.show["places"].removeprefix("Not on the map: ")[:-1].split("; "))
    maintain(Folder(REF, {"map.txt": "2,0: coal\n1,1: iron\n0,1: tree\n"}), game)
    game.look()
    assert "coal" not in game.show["places"]
    assert {"1,1 is table", "0,1 is ground"} <= set(
        game.show["places"].partition("Wrong on the map: ")[2][:-1].split("; ")
    )


def test_goals_are_kept_current_and_the_models_plan_is_left_alone(game: Play) -> None:
    files = Folder(REF)
    assert maintain(files, game) == []
    game.put("tree", 0, 1).play("Do")
    files.memory.run(Op("UPSERT", ("goals.txt", "plan", "a table by the lake")))
    assert [operation[:3] for operation in maintain(files, game)] == [("UPSERT", "goals.txt", "open")]
    goals = files.memory.read("goals.txt")
    assert "collect_wood" not in goals and "place_table" in goals and "plan: a table by the lake" in goals
    assert maintain(files, game) == []


def test_a_long_map_loses_plain_entries_far_away_first(game: Play) -> None:
    far = {f"{x},20": "ground" for x in range(60)} | {f"{x},21": "stone" for x in range(60)}
    near = {f"{x},1": "stone" for x in range(5)}
    dear = {f"{x},30": "diamond, needs an iron pickaxe" for x in range(10)} | {f"{x},31": "water" for x in range(10)}
    files = Folder(REF, {"map.txt": "\n".join(f"{key}: {what}" for key, what in {**far, **near, **dear}.items())})
    assert all(operation[0] == "DELETE" for operation in maintain(files, game))
    left = files.memory.read("map.txt")
    assert len(left) <= HOOKS.MAP_KEPT
    assert "59,20: ground" not in left and "0,20: ground" in left, "the farthest goes first"
    assert all(f"{key}: stone" in left for key in near) and left.count(": diamond") == left.count(": water") == 10
    assert maintain(files, game) == []


def test_notes_that_grew_long_and_files_that_are_not_pinned_are_told(game: Play) -> None:
    files = Folder(REF, {"lessons.txt": "zombies hit hard\n" * 12})
    maintain(files, game)
    game.look()
    assert game.show["upkeep"] == game.show["others"] == ""
    files.memory.run(Op("WRITE", ("lessons.txt", "x" * 1500)))
    files.memory.run(Op("APPEND", ("ideas.txt", "dig west")))
    maintain(files, game)
    game.look()
    assert game.show["upkeep"] == "lessons.txt has 1501 bytes: condense it with WRITE."
    assert game.show["others"] == "There is also ideas.txt."


def test_what_is_lost_with_the_object_is_taken_from_memory(game: Play) -> None:
    """A process that is lost is replaced by one that starts in the middle of the episode."""
    files = Folder(REF, {"now.txt": "Step 1 at -7,4 facing west; planted none; achieved collect_wood"})
    game.put("tree", 0, 1).play("Do")
    maintain(files, game)
    goals = files.memory.read("goals.txt")
    game.hooks.reset("crafter", "Crafter")
    game.look()
    assert game.show == {}, "nothing is better than a wrong place"
    assert maintain(files, game) == []
    game.play("Move West")
    assert game.show["now"] == "You are at -8,4, facing west."
    assert game.show["tech"].startswith("1/22 achievements.")
    assert maintain(files, game) == [] and files.memory.read("goals.txt") == goals


def test_near_finds_the_nearest_of_a_kind_with_the_way(game: Play) -> None:
    files = Folder(REF, {"map.txt": "8,-3: water\n-2,2: water\n0,5: tree\n30,1: iron ore\n"})
    game.play("Move East")
    near = game.hooks.op_NEAR
    assert near(("water", "1"), files.view) == f"water -2,2 ({game.hooks.x + 2} west, 2 south)"
    assert near(("Water",), files.view).count("\n") == 1
    assert near(("iron", "x"), files.view).startswith("iron ore 30,1 (")
    assert near(("coal", "3"), files.view) == "no coal on the map, which holds: iron, tree, water"
    assert near((), files.view).count("\n") == 2


def test_an_episode_runs_without_an_error_of_hooks(tmp_path: Path) -> None:
    records = episode(REF, "Crafter", 1000, 60, tmp_path)
    assert len(records) == 60
    assert [event for record in records for event in record.hooks] == []
    assert all(op.ok for record in records for turn in (*record.log, *record.plan) for op in turn.ops)
    assert all(op.ok for record in records for op in record.maintained)
    assert any(record.maintained for record in records)
    assert "# PLAN\n1/22 achievements. Possible now: " in records[10].plan[0].prompt.after
