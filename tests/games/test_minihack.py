"""MiniHack's tasks: BALROG's actions, limits and options, and success judged on the episode."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest

from games import boxoban
from games.minihack import TASKS, MiniHack
from games.nethack.actions import nethack_keys

WAYS = ("north", "east", "south", "west", "northeast", "southeast", "southwest", "northwest")
OTHERS = (
    *("up", "down", "wait", "more", "apply", "close", "open", "eat", "force", "kick", "loot"),
    *("pickup", "pray", "puton", "quaff", "search", "zap"),
)
BALROG_NAMES = frozenset((*WAYS, *(f"far {way}" for way in WAYS), *OTHERS))
"""The actions that BALROG has words for in MiniHack."""


@pytest.fixture(autouse=True)
def _generated_levels(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.delenv("AUTOMEM_BOXOBAN_LEVELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_tasks_are_balrogs() -> None:
    assert len(TASKS) == 8
    assert all(task.startswith("MiniHack-") and task.endswith("-v0") for task in TASKS)


@pytest.mark.parametrize("task", TASKS)
def test_actions_are_those_that_the_task_takes_and_balrog_names(task: str) -> None:
    game = MiniHack(task)
    game.reset(42)
    taken = {int(code) for code in game._env.actions}
    assert set(game.actions) == {name for name in BALROG_NAMES if nethack_keys()[name].code in taken}
    assert game.default_action in game.actions
    game.close()


@pytest.mark.parametrize("task", TASKS)
def test_every_action_can_be_played(task: str) -> None:
    game = MiniHack(task)
    for before in ((), ("north",), ("kick",), ("zap",), ("pickup",), ("apply",)):
        if not set(before) <= set(game.actions):
            continue
        game.reset(7)
        for action in game.actions:
            for name in (*before, action):
                if game.step(name).done:
                    game.reset(7)
                    break
    game.close()


@pytest.mark.parametrize("task", TASKS)
def test_same_seed_same_game_and_other_seed_another(task: str) -> None:
    def play(seed: int) -> list:
        game = MiniHack(task)
        source = random.Random(1)
        seen = [game.reset(seed)]
        for _ in range(40):
            seen.append(game.step(source.choice(list(game.actions))))
            if seen[-1].done:
                break
        game.close()
        return seen

    first = play(42)
    assert play(42) == first
    assert play(43) != first


def test_hundred_steps_unless_told_otherwise() -> None:
    game = MiniHack("MiniHack-Corridor-R3-v0")
    game.reset(42)
    outcomes = [game.step("search") for _ in range(100)]
    assert [t.truncated for t in outcomes] == [False] * 99 + [True]
    assert not outcomes[-1].terminated
    assert "Dlvl:1" in outcomes[-1].observation.long_term
    short = MiniHack("MiniHack-Corridor-R3-v0", max_steps=2)
    short.reset(42)
    assert [short.step("search").truncated for _ in range(2)] == [False, True]


@pytest.mark.parametrize("level_set", ["hard", "medium"])
def test_solving_boxoban_ends_the_episode_with_success(level_set: str) -> None:
    game = MiniHack(f"MiniHack-Boxoban-{level_set.capitalize()}-v0", max_steps=400)
    for seed in range(6):
        game.reset(seed)
        for action in boxoban.generate(level_set, seed).solution:
            transition = game.step(action)
            assert transition.progress.progression == float(transition.terminated)
            if transition.done:
                break
        assert transition.terminated and not transition.truncated
        assert transition.reward == 1.0
        assert transition.progress.achievements == {"success": 1, "balrog_success": 1}
        # What is shown last is the solved room, not NetHack's farewell.
        assert transition.observation.long_term.partition("map:")[2].count("`") == 4
    game.close()


def test_goals_of_the_episode_before_are_forgotten() -> None:
    game = MiniHack("MiniHack-Boxoban-Medium-v0", max_steps=400)
    for seed in (0, 1, 0):
        game.reset(seed)
        for action in boxoban.generate("medium", seed).solution:
            transition = game.step(action)
            if transition.done:
                break
        assert transition.progress.progression == 1.0


def test_success_is_that_of_the_episode_whatever_the_last_reward() -> None:
    game = MiniHack("MiniHack-MazeWalk-9x9-v0")
    game.reset(42)
    game._note(np.zeros(27), SimpleNamespace(name="TASK_SUCCESSFUL"), 0.99)
    assert game.progress().progression == 1.0
    assert game.progress().achievements == {"success": 1, "balrog_success": 0}


def test_an_action_is_judged_by_the_reward_of_all_its_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """BALROG sees one reward an action: a page that cost the penalty before the one that won makes it 0.99."""
    game = MiniHack("MiniHack-MazeWalk-9x9-v0")
    game.reset(42)
    running, solved = SimpleNamespace(name="RUNNING"), SimpleNamespace(name="TASK_SUCCESSFUL")
    pages = [(-0.01, False, running, "You see here a horn.--More--"), (1.0, True, solved, "")]
    shown: list[str] = []

    def step(number: int) -> tuple:
        reward, terminated, status, message = pages.pop(0)
        shown.append(message)
        return game._raw, reward, terminated, False, {"end_status": status}

    monkeypatch.setattr(game._env, "step", step)
    monkeypatch.setattr(game, "_message", lambda: shown[-1])
    game._index[13] = 0  # the task has no key for pages of its own
    last = game.step("north")
    assert not pages and last.reward == 0.99 and last.terminated
    assert last.progress.achievements == {"success": 1, "balrog_success": 0}


def test_death_is_an_end_without_success() -> None:
    game = MiniHack("MiniHack-Quest-Easy-v0", max_steps=300)
    for seed in range(30):
        game.reset(seed)
        for _ in range(10):
            transition = game.step("far east")  # lava is on the way
            if transition.done:
                break
        if transition.terminated:
            assert transition.progress.progression == 0.0
            assert transition.progress.achievements["success"] == 0
            return
    raise AssertionError("nobody died in thirty walks towards lava")


def test_nothing_is_picked_up_unasked() -> None:
    game = MiniHack("MiniHack-Quest-Easy-v0")
    start = game.reset(42)
    assert "horn adjacent east" in game.step("west").observation.long_term
    back = game.step("east")
    assert back.observation.short_term == start.short_term
    assert "horn adjacent east" in game.step("west").observation.long_term


def test_level_source_is_a_fact_of_the_results() -> None:
    game = MiniHack("MiniHack-Boxoban-Hard-v0")
    game.reset(42)
    assert game.progress().facts == {"levels": "generated"}
    maze = MiniHack("MiniHack-MazeWalk-9x9-v0")
    maze.reset(42)
    assert maze.progress().facts == {}


@pytest.mark.parametrize("task", TASKS)
def test_global_random_state_is_neither_used_nor_changed(task: str) -> None:
    game = MiniHack(task)
    texts = []
    for state in (1, 2):
        random.seed(state)
        np.random.seed(state)
        before, before_numpy = random.getstate(), np.random.get_state()[1].tolist()
        texts.append(game.reset(42).text)
        game.step("north")
        assert random.getstate() == before
        assert np.random.get_state()[1].tolist() == before_numpy
    assert texts[0] == texts[1]


@pytest.mark.parametrize("task", TASKS)
def test_instructions_name_the_goal(task: str) -> None:
    text = MiniHack(task).instructions
    assert text.count("Goal: ") == 1
    assert "{" not in text.replace("({)", "")


def test_bad_task_is_named() -> None:
    with pytest.raises(ValueError, match="MazeWalk-9x9"):
        MiniHack("MiniHack-Room-5x5-v0")
