"""Crafter's text: BALROG's, character for character."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.crafter import describe
from games.crafter.tables import ACTIONS, KINDS

GOLDEN = Path(__file__).parents[1] / "golden"
VITALS = {"health": 9, "food": 8, "drink": 7, "energy": 6}


def _info(cells: dict[tuple[int, int], str], **changed) -> dict:
    """The player at (32, 32) facing south on a map of grass, with these cells at offsets from the player."""
    position = changed.pop("player_pos", (32, 32))
    semantic = np.full((64, 64), KINDS.index(changed.pop("ground", "grass")), np.uint8)
    semantic[position] = KINDS.index("player")
    for (x, y), kind in cells.items():
        semantic[position[0] + x, position[1] + y] = KINDS.index(kind)
    info = {"semantic": semantic, "player_pos": position, "player_facing": (0, 1), "view": (9, 9)}
    return {**info, "inventory": VITALS, "achievements": {}, "sleeping": False, "dead": False, **changed}


def _seen(info: dict) -> list[str]:
    return [line[2:] for line in describe(info).long_term.splitlines() if line.startswith("- ")]


def test_text_is_balrogs_on_every_golden_observation() -> None:
    records = json.loads((GOLDEN / "crafter.json").read_text())
    with np.load(GOLDEN / "crafter.npz") as maps:
        for record in records:
            info = {**record, "semantic": maps[f"{record['id']}.semantic"], "sleeping": False, "dead": False}
            text = describe(info)
            assert text.long_term == record["long_term_context"], record["id"]
            assert text.short_term == record["short_term_context"], record["id"]
    assert len(records) == 69


def test_the_nearest_of_each_kind_counts_steps_along_both_axes() -> None:
    info = _info({(3, -3): "tree", (4, 0): "tree", (-1, 3): "cow", (0, -1): "table"})
    assert _seen(info) == [
        "grass 1 step to your west",
        "cow 4 steps to your south-west",
        "table 1 step to your north",
        "tree 4 steps to your east",
    ]


def test_of_equally_near_things_the_western_then_the_northern_is_told() -> None:
    assert "tree 2 steps to your west" in _seen(_info({(2, 0): "tree", (0, -2): "tree", (-2, 0): "tree"}))
    assert "iron 2 steps to your north-west" in _seen(_info({(-1, 1): "iron", (-1, -1): "iron"}))


def test_the_view_reaches_four_cells_west_and_three_cells_north() -> None:
    inside = _info({(-4, -3): "coal", (4, 3): "iron"})
    assert {"coal 7 steps to your north-west", "iron 7 steps to your south-east"} <= set(_seen(inside))
    outside = _info({(-5, 0): "coal", (5, 0): "coal", (0, -4): "coal", (0, 4): "coal"})
    assert _seen(outside) == ["grass 1 step to your west"]


def test_what_is_in_front() -> None:
    assert describe(_info({(-1, 0): "lava"}, player_facing=(-1, 0))).long_term.endswith(
        "\n\nYou face lava at your front."
    )
    assert describe(_info({})).long_term.endswith("\n\nYou face grass at your front.")


@pytest.mark.parametrize(("x", "facing"), [(0, (-1, 0)), (63, (1, 0))])
def test_at_the_edge_of_the_map_the_view_is_clipped(x: int, facing: tuple[int, int]) -> None:
    inwards = -facing[0]
    info = _info({(inwards * 4, 0): "diamond"}, player_pos=(x, 20), player_facing=facing)
    assert f"diamond 4 steps to your {'east' if inwards > 0 else 'west'}" in _seen(info)
    assert describe(info).long_term.endswith("You face nothing at your front.")


def test_nothing_in_view() -> None:
    info = _info({})
    info["semantic"] = np.full((1, 1), KINDS.index("player"), np.uint8)
    text = describe({**info, "player_pos": (0, 0)})
    assert text.long_term == "You see nothing away from you.\n\nYou face nothing at your front."


def test_sleep_and_death_come_first_and_sleep_hides_death() -> None:
    awake = describe(_info({})).long_term
    asleep = "You are sleeping, and will not be able take actions until energy is full.\n\n\n\n" + awake
    assert describe(_info({}, sleeping=True)).long_term == asleep
    assert describe(_info({}, sleeping=True, dead=True)).long_term == asleep
    assert describe(_info({}, dead=True)).long_term == "You died.\n\n\n\n" + awake


def test_status_and_inventory() -> None:
    status = "Your status:\n- health: 9/9\n- food: 8/9\n- drink: 7/9\n- energy: 6/9\n\n"
    assert describe(_info({})).short_term == status + "You have nothing in your inventory."
    carried = describe(_info({}, inventory={**VITALS, "sapling": 0, "wood": 3, "iron_pickaxe": 1})).short_term
    assert carried == status + "Your inventory:\n- wood: 3\n- iron_pickaxe: 1"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 63), st.integers(0, 63), st.sampled_from([(9, 9), (9, 7), (11, 11)]))
def test_every_line_agrees_with_a_search_of_the_map(seed: int, x: int, y: int, view: tuple[int, int]) -> None:
    random = np.random.default_rng(seed)
    kinds = random.choice([kind for kind in range(1, 19) if KINDS[kind] != "player"], size=random.integers(1, 12))
    semantic = random.choice(kinds, size=(64, 64)).astype(np.uint8)
    semantic[x, y] = KINDS.index("player")
    expected: dict[str, tuple[int, str]] = {}
    for column in range(max(0, x - view[0] // 2), min(63, x + view[0] // 2) + 1):
        for row in range(max(0, y - view[1] // 2 + 1), min(63, y + view[1] // 2 - 1) + 1):
            kind = KINDS[semantic[column, row]]
            steps = abs(column - x) + abs(row - y)
            words = [word for word, true in (("north", row < y), ("south", row > y)) if true]
            words += [word for word, true in (("west", column < x), ("east", column > x)) if true]
            if kind != "player" and (kind not in expected or steps < expected[kind][0]):
                expected[kind] = steps, "-".join(words)
    lines = [f"{kind} {n} step{'s' * (n > 1)} to your {where}" for kind, (n, where) in expected.items()]
    assert _seen(_info({}, player_pos=(x, y), view=view) | {"semantic": semantic}) == lines


def test_kinds_and_actions_are_the_installed_simulators() -> None:
    import crafter

    env = crafter.Env(seed=0)
    numbers = {str(name): number for name, number in env._world._mat_ids.items()}
    numbers |= {kind.__name__.lower(): number for kind, number in env._sem_view._obj_ids.items()}
    assert {name: number for number, name in enumerate(KINDS)} == numbers
    words = {"west": "left", "east": "right", "north": "up", "south": "down"}
    ours = ["_".join(words.get(word, word) for word in name.lower().split()) for name in ACTIONS]
    assert ours == env.action_names
