"""Crafter as a game: the simulator's own, repeatable, and never changed by looking at it."""

from __future__ import annotations

import hashlib
import random

import crafter
import numpy as np
import pytest

from games import InvalidAction
from games.crafter import Crafter, describe
from games.crafter.tables import CELLS, KINDS
from games.crafter.world import IMAGE, Env, World

ACTIONS = list(Crafter().actions)


def _kept_alive(player) -> None:
    """What lets an episode reach the night whatever is played."""
    for vital in ("health", "food", "drink"):
        player.inventory[vital] = 9


def _world(env) -> tuple:
    """Everything that decides how a world goes on."""
    world, player = env._world, env._player
    things = tuple((type(thing).__name__, tuple(thing.pos), thing.health) for thing in world.objects)
    numbers = world.random.get_state()
    return world._mat_map.tobytes(), things, tuple(player.inventory.values()), numbers[1].tobytes(), numbers[2]


@pytest.mark.parametrize("seed", [42, 7])
def test_the_game_is_the_simulators_with_a_picture_every_step(seed: int) -> None:
    ours = Env(seed)
    drawing = crafter.Env(seed=seed, size=IMAGE)
    drawing._world.__class__ = World  # its chunks remember the order of arrival; all else is untouched
    ours.reset()
    drawing.reset()
    actions = np.random.RandomState(seed)
    dark = 0
    for step in range(420):
        action = actions.randint(len(ACTIONS))
        _, reward, _, _ = ours.step(action)
        _, expected, _, _ = drawing.step(action)
        assert reward == expected
        if step % 10 == 0 or step > 400:
            assert _world(ours) == _world(drawing), f"step {step}"
        dark += ours.world.daylight < 0.5
        _kept_alive(ours.player)
        _kept_alive(drawing._player)
    assert dark > 100, "the night, when pictures are noisy, must be part of this"


def test_a_seed_plays_the_episode_that_it_always_played() -> None:
    """Figures of earlier runs stay comparable: a library that changes maps or luck is noticed here."""
    game = Crafter()
    texts = [game.reset(42).text]
    map_then = hashlib.sha256(game._env.semantic().tobytes()).hexdigest()
    actions = random.Random(42)
    done = False
    while not done:
        moved = game.step(actions.choice(ACTIONS))
        texts.append(moved.observation.text)
        done = moved.done
    assert map_then == "fd078aaf19c52c002e472ccca31e2b70d702fce11c089a38251c1d5e719f93c8"
    assert (
        hashlib.sha256("\n".join(texts).encode()).hexdigest()
        == "41df1fc533b55c0a2e88db462f49d6786566e0b3950ba77451f36164906f0140"
    )


def test_looking_never_changes_the_game() -> None:
    looked_at, left_alone = Crafter(), Crafter()
    looked_at.reset(3)
    left_alone.reset(3)
    actions = np.random.RandomState(0)
    dark = 0
    for step in range(330):
        action = ACTIONS[actions.randint(len(ACTIONS))]
        if step % 6 == 0:
            looked_at.screen()
            size = (90 + step, 63)
            assert (looked_at.image(size) == looked_at.image(size)).all(), "the same moment gives the same picture"
        assert looked_at.step(action) == left_alone.step(action)
        dark += looked_at._env.world.daylight < 0.5
        _kept_alive(looked_at._env.player)
        _kept_alive(left_alone._env.player)
    assert dark > 50
    assert _world(looked_at._env) == _world(left_alone._env)


def test_screen_shows_the_view_with_the_player_in_the_middle() -> None:
    game = Crafter()
    game.reset(42)
    game.step("Move West")
    screen = game.screen()
    cells = screen[:7]
    assert [len(row) for row in cells] == [9] * 7
    assert cells[3][4][0] == "<@"
    semantic = game._env.semantic()
    x, y = game._env.player.pos
    for column in range(9):
        for row in range(7):
            kind = KINDS[semantic[x + column - 4, y + row - 3]]
            if kind != "player":
                assert cells[row][column] == CELLS[kind], (column, row)
    status = "".join(text for text, _ in screen[7])
    assert "health 9" in status
    assert "0/22" in status
    assert "step 1" in status


def test_screen_beyond_the_edge_of_the_map_is_blank() -> None:
    game = Crafter()
    game.reset(42)
    world, player = game._env.world, game._env.player
    if world[(0, 0)][1] is not None:
        world.remove(world[(0, 0)][1])
    world.move(player, (0, 0))
    screen = game.screen()
    assert screen[2][4] == CELLS["None"]
    assert screen[3][3] == CELLS["None"]
    assert screen[3][4][0].strip()


def test_image_is_rgb_of_the_size_asked_for() -> None:
    game = Crafter()
    game.reset(42)
    image = game.image((180, 90))
    assert image.shape == (90, 180, 3)
    assert image.dtype == np.uint8
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 10
    with pytest.raises(ValueError, match="too small"):
        game.image((4, 4))


def test_an_unlocked_achievement_is_progress() -> None:
    game = Crafter()
    game.reset(42)
    world, player = game._env.world, game._env.player
    world[player.pos + np.array(player.facing)] = "tree"
    moved = game.step("Do")
    assert moved.progress.achievements == {"collect_wood": 1}
    assert moved.progress.progression == pytest.approx(1 / 22)
    assert moved.reward == pytest.approx(1.0)
    assert "- wood: 1" in moved.observation.short_term
    world[player.pos + np.array(player.facing)] = "tree"
    moved = game.step("Do")
    assert moved.progress.achievements == {"collect_wood": 2}
    assert moved.progress.progression == pytest.approx(1 / 22), "each achievement counts once"


def test_death_terminates() -> None:
    game = Crafter(max_steps=1)
    game.reset(42)
    world, player = game._env.world, game._env.player
    world[player.pos + np.array((1, 0))] = "lava"
    moved = game.step("Move East")
    assert (moved.terminated, moved.truncated) == (True, False)
    assert moved.observation.long_term.startswith("You died.")
    with pytest.raises(RuntimeError, match="over"):
        game.step("Noop")


def test_the_limit_truncates() -> None:
    game = Crafter(max_steps=3)
    game.reset(42)
    assert [game.step("Noop").truncated for _ in range(3)] == [False, False, True]
    assert Crafter().max_steps == Crafter(max_steps=None).max_steps == 2_000


def test_a_step_needs_an_action_of_the_game_and_an_episode() -> None:
    game = Crafter()
    with pytest.raises(RuntimeError, match="reset"):
        game.step("Noop")
    game.reset(42)
    before = _world(game._env)
    for wrong in ("noop", "Fly", "", "00"):
        with pytest.raises(InvalidAction):
            game.step(wrong)
    assert _world(game._env) == before
    with pytest.raises(ValueError, match="no task 'Chess'"):
        Crafter("Chess")
    with pytest.raises(ValueError, match="at least 1"):
        Crafter(max_steps=0)
    game.close()
    game.close()


def test_instructions_give_the_installed_rules() -> None:
    text = Crafter().instructions
    place, make = crafter.constants.place, crafter.constants.make
    assert f"- table: {place['table']['uses']['wood']} wood, on grass, sand or path" in text
    assert f"- furnace: {place['furnace']['uses']['stone']} stone" in text
    assert "- iron pickaxe: 1 wood, 1 coal and 1 iron, near table and furnace" in text
    assert all(f"- {name.replace('_', ' ')}: " in text for name in make)
    assert all(name in text for name in crafter.constants.achievements)
    assert not set("{}") & set(text)


def test_the_first_observation_is_of_a_world_no_action_has_touched() -> None:
    game = Crafter()
    first = game.reset(42)
    env = crafter.Env(seed=42)
    env.reset()
    info = {"semantic": env._sem_view(), "player_pos": env._player.pos, "player_facing": env._player.facing}
    info |= {
        "view": env._view,
        "inventory": env._player.inventory,
        "achievements": {},
        "sleeping": False,
        "dead": False,
    }
    assert first == describe(info)
