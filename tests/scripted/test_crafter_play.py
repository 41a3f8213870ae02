"""How the scripted player sees Crafter's world and how well it plays, on real games."""

from __future__ import annotations

import asyncio
import random

import pytest
from crafter import constants

from automem import scaffold as scaffolds
from automem.models.scripted.crafter import rules
from automem.models.scripted.crafter.ground import NEVER, Ground
from automem.models.scripted.crafter.rules import ANY, BIT, WALKABLE
from automem.models.scripted.crafter.scene import read_scene
from automem.models.scripted.crafter.shelter import best_shelter, closed_room, towards
from automem.models.scripted.crafter.tracking import START_FACING, Track
from automem.models.scripted.crafter.world import World
from benchmarks.scripted_crafter import Setting, play_episode
from games.crafter import Crafter


def test_the_rules_are_the_installed_games():
    assert set(constants.materials) | {"plant"} == set(rules.MATERIALS)
    assert set(constants.walkable) == {name for name in rules.MATERIALS if BIT[name] & WALKABLE}
    for thing, tools in rules.COLLECT.items():
        assert list(tools) == list(constants.collect[thing]["require"])
    assert {name: rule["uses"] for name, rule in constants.place.items()} == rules.PLACE
    assert {name: rule["uses"] for name, rule in constants.make.items()} == rules.MAKE
    assert set(Crafter().actions) >= {*rules.MOVES, *map(rules.tool_action, rules.MAKE), "Do", "Sleep", "Noop"}


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_place_and_facing_are_reckoned_on_a_random_walk(seed):
    """Random play is the hard case: it walks into things without looking."""
    game = Crafter()
    observation = game.reset(seed)
    track = Track(World(edges=True), 0, 0, START_FACING)
    track.look(read_scene(observation.text))
    moves = random.Random(seed)
    right = steps = 0
    x, y = 0, 0
    for _ in range(250):
        action = moves.choice([*rules.MOVES, *rules.MOVES, "Do", "Noop"])
        before = (track.x, track.y)
        player = game._env.player
        was = (int(player.pos[0]), int(player.pos[1]))
        transition = game.step(action)
        track.advance(action, read_scene(transition.observation.text))
        moved = (int(player.pos[0]) - was[0], int(player.pos[1]) - was[1])
        right += (track.x - before[0], track.y - before[1]) == moved
        steps += 1
        assert track.facing is not None
        assert rules.DIRECTIONS[track.facing] == tuple(int(v) for v in player.facing)
        x, y = int(player.pos[0]) - 32, int(player.pos[1]) - 32
        if transition.done:
            break
    assert right >= 0.97 * steps, f"{steps - right} of {steps} steps were reckoned wrong, it ended at {(x, y)}"


def test_what_looks_rule_out_is_true():
    """As long as the place is right, a cell's true material is among what it may be (creatures aside)."""
    game = Crafter()
    track = Track(World(edges=True), 0, 0, START_FACING)
    track.look(read_scene(game.reset(3).text))
    walk = random.Random(3)
    wrong = checked = certain = 0
    for _ in range(60):
        action = walk.choice([*rules.MOVES])
        track.advance(action, read_scene(game.step(action).observation.text))
        env = game._env
        if (track.x, track.y) != (int(env.player.pos[0]) - 32, int(env.player.pos[1]) - 32):
            break
        for dx in range(-4, 5):
            for dy in range(-3, 4):
                cell = (track.x + dx, track.y + dy)
                material = env.world[cell[0] + 32, cell[1] + 32][0]
                bits = track.world.at(*cell)
                if material is None or bits == ANY:
                    continue
                checked += 1
                certain += bits.bit_count() == 1
                wrong += not bits & BIT[material]
    assert checked > 2000 and certain > 0.5 * checked
    assert wrong <= 0.01 * checked


def test_the_far_thing_is_found_where_two_looks_leave_one_place():
    world = World()
    world.see(0, 0, read_scene("You see:\n- grass 1 step to your west\n- tree 3 steps to your north-east"), None)
    assert {cell for cell in ((1, -2), (2, -1)) if world.at(*cell) == BIT["tree"]} == set()
    world.see(1, 0, read_scene("You see:\n- grass 1 step to your west\n- tree 2 steps to your north-east"), None)
    assert world.exactly(2, -1) == "tree"
    assert not world.at(1, -2) & BIT["tree"]


def steps_to_close(seed: int) -> int | None:
    """Steps until the actions of `towards`, one after the other, have made a room; None if they never do."""
    draw = random.Random(seed)
    world = World()
    for x in range(-12, 13):
        for y in range(-12, 13):
            world.set(x, y, BIT["stone"] if draw.random() < 0.4 else BIT["grass"])
    world.set(0, 0, BIT["grass"])
    here, facing, stones = (0, 0), (0, 1), 9
    for step in range(60):
        if closed_room(world, *here, most=4):
            return step
        ground = Ground(world, *here, frozenset({"wood_pickaxe", "stone"}), {}, facing)
        shelter = best_shelter(world, ground, stones, can_dig=True)
        assert shelter is not None
        action = towards(shelter, world, ground, facing)
        assert action is not None
        ahead = (here[0] + facing[0], here[1] + facing[1])
        if action == "Place Stone":
            assert world.at(*ahead) & WALKABLE and stones
            world.set(*ahead, BIT["stone"])
            stones -= 1
        elif action == "Do":
            assert world.at(*ahead) == BIT["stone"]
            world.set(*ahead, BIT["path"])
            stones = min(9, stones + 1)
        else:
            facing = rules.MOVES[action]
            to = (here[0] + facing[0], here[1] + facing[1])
            here = to if world.at(*to) & WALKABLE else here
    return None


def test_a_room_is_closed_soon():
    """On half-rocky ground a room is nearly always closed, usually within some ten steps."""
    taken = [steps_to_close(seed) for seed in range(100)]
    closed = sorted(steps for steps in taken if steps is not None)
    assert len(closed) >= 97
    assert closed[len(closed) // 2] <= 12


def test_a_way_never_leads_into_what_may_be_lava():
    world = World()
    for x in range(-5, 6):
        for y in range(-5, 6):
            world.set(x, y, BIT["grass"])
    world.set(1, 0, BIT["grass"] | BIT["lava"])
    ground = Ground(world, 0, 0, frozenset(), {})
    assert ground.cost_to(1, 0) == NEVER
    assert ground.step_to(2, 0) in {(0, -1), (0, 1)}


def play(setting: Setting, seed: int, steps: int):
    return asyncio.run(play_episode(scaffolds.load(setting.scaffold), seed, steps, setting.emptied))[0]


def test_a_short_game_gets_somewhere():
    episode = play(Setting("crafter/v0"), 1002, 200)
    early = {"collect_wood", "place_table", "make_wood_pickaxe", "make_wood_sword", "collect_stone", "place_plant"}
    assert early <= set(episode.achievements)
    assert episode.calls <= 3.2 * episode.steps


def test_an_episode_is_the_same_every_time():
    first, second = (play(Setting("crafter/v0"), 5, 60) for _ in range(2))
    assert (first.progression, first.steps, first.tokens) == (second.progression, second.steps, second.tokens)


@pytest.mark.slow
def test_memory_matters():
    """A few seeds only; benchmarks/scripted_crafter.py has all forty."""
    seeds = range(1000, 1008)
    kept = [play(Setting("crafter/v0"), seed, 500).progression for seed in seeds]
    emptied = [play(Setting("crafter/v0", emptied=True), seed, 500).progression for seed in seeds]
    assert sum(kept) / len(kept) >= 0.5
    assert sum(emptied) <= 0.93 * sum(kept)
