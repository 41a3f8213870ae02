"""NetHack as a game: seeds, limits, score, and that every listed action can be played."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest
from rich.style import Style

from games.nethack import TASKS, NetHack
from games.nethack.game import achievements
from games.protocol import InvalidAction

BLSTATS = 27


def _message(observation) -> str:
    return observation.long_term.removeprefix("message:\n").partition("\n\nlanguage observation:")[0]


def _walk(game: NetHack, seed: int, steps: int) -> list:
    source = random.Random(5)
    walks = [name for name in game.actions if name.startswith("far ")]
    seen = [game.reset(seed)]
    for _ in range(steps):
        seen.append(game.step(source.choice(walks)))
        if seen[-1].done:
            break
    return seen


def _leave(game: NetHack, seed: int):
    """The shortest way to an end: out of the dungeon by the stairs on which one starts."""
    game.reset(seed)
    for action in ("up", "y", "more", "more"):
        transition = game.step(action)
        if transition.done:
            return transition
    raise AssertionError(f"still playing: {transition.observation.text}")


def test_same_seed_same_game_and_other_seed_another() -> None:
    game = NetHack()
    first, again, other = _walk(game, 42, 60), _walk(NetHack(), 42, 60), _walk(game, 43, 60)
    assert first == again
    assert first[0] != other[0]


def test_role_and_moon_come_from_the_seed() -> None:
    game = NetHack()
    opened = [game.reset(seed).long_term for seed in range(12)]
    game.close()
    assert len({text.partition("Yourself a ")[2].split("\n")[0] for text in opened}) > 3
    # With the calendar's moon all seeds would begin with the same warning, or none.
    assert len({"moon" in text for text in opened}) == 2


def test_episode_before_leaves_nothing_in_the_next() -> None:
    game = NetHack()
    first = _leave(game, 42)
    assert first.terminated and not first.truncated
    assert _leave(game, 42) == first  # a used simulator would list two names among the top ten


def test_cut_off_at_the_step_limit_is_not_an_end_of_the_game() -> None:
    game = NetHack(max_steps=5)
    *before, last = _walk(game, 42, 5)
    assert not any(transition.done for transition in before[1:])
    assert last.truncated and not last.terminated
    assert last.progress.achievements["turns"] > 1
    assert "Dlvl:1" in last.observation.long_term
    with pytest.raises(RuntimeError, match="reset"):
        game.step("wait")


def test_no_progress_limit_is_the_number_of_actions_in_which_no_turn_passed() -> None:
    game = NetHack(no_progress_limit=20)
    game.reset(42)
    assert not any(game.step("esc").done for _ in range(19))
    assert not game.step("search").done  # a turn passes: the count starts again
    assert not any(game.step("esc").done for _ in range(19))
    assert game.step("esc").truncated


def test_no_progress_limit_is_balrogs_unless_told_otherwise() -> None:
    game = NetHack()
    game.reset(42)
    assert [game.step("esc").truncated for _ in range(150)] == [False] * 149 + [True]
    unlimited = NetHack(no_progress_limit=None)
    unlimited.reset(42)
    assert not any(unlimited.step("esc").done for _ in range(300))


def test_numbers_of_the_living_game_stand_after_its_end() -> None:
    game = NetHack()
    game.reset(42)
    game.step("search")
    turns = game.progress().achievements["turns"]
    assert turns > 1
    for action in ("up", "y", "more"):
        last = game.step(action)
        if last.done:
            break
    assert last.terminated
    assert last.progress.achievements["turns"] == turns
    assert last.progress.achievements["dungeon_level"] == 1


@pytest.mark.parametrize(
    ("depth", "level", "entry"),
    [(1, 1, "Dlvl:1"), (4, 1, "Dlvl:4"), (1, 8, "Xp:8"), (10, 8, "Dlvl:10"), (5, 8, "Xp:8")],
)
def test_progression_is_the_better_of_dungeon_and_experience_level(depth: int, level: int, entry: str) -> None:
    game = NetHack()
    game.reset(42)
    blstats = np.zeros(BLSTATS, dtype=np.int64)
    blstats[12], blstats[18] = depth, level
    game._note(blstats, None, 0.0)
    assert game.progress().progression == achievements()[entry]
    game._note(np.zeros(BLSTATS, dtype=np.int64), None, 0.0)
    assert game.progress().progression == achievements()[entry]


def test_achievement_table_is_balrogs() -> None:
    table = achievements()
    assert len(table) == 87
    assert table["Dlvl:2"] == pytest.approx(0.0153923, abs=1e-7)
    assert table["Xp:10"] == pytest.approx(0.1790995, abs=1e-7)
    assert all(0 <= value <= 1 for value in table.values())


@pytest.mark.parametrize(
    "before",
    [(), ("inventory",), ("apply",), ("kick",), ("annotate",), ("travel",), ("2", "0"), ("droptype",), ("fight",)],
    ids=["free", "menu", "item", "direction", "line of text", "place", "count", "selection", "prefix"],
)
def test_every_action_can_be_played(before: tuple[str, ...]) -> None:
    game = NetHack(no_progress_limit=None)
    game.reset(7)
    for action in game.actions:
        for name in (*before, action, "esc", "esc"):
            if game.step(name).done:
                game.reset(7)
                break
    game.close()


def test_what_is_no_action_is_refused_and_nothing_is_played() -> None:
    game = NetHack()
    game.reset(42)
    before = (game.screen(), game.progress())
    for name in ("42", "07", "", "North", "quit", "wizard wish", "\x1b"):
        assert name not in game.actions
        with pytest.raises(InvalidAction, match="no action"):
            game.step(name)
    assert (game.screen(), game.progress()) == before
    assert game.default_action in game.actions


def test_letters_answer_questions() -> None:
    game = NetHack()
    game.reset(42)
    assert "[" in _message(game.step("drop").observation)
    assert "You drop" in _message(game.step("a").observation)


def test_pages_are_read_on_and_their_messages_joined() -> None:
    walked = _walk(NetHack(), 40, 40)[1:]
    assert not any("--More--" in transition.observation.long_term for transition in walked)
    joined = [message for transition in walked if "\n" in (message := _message(transition.observation))]
    assert any(message.startswith("The little dog") and message.endswith("It's a wall.") for message in joined)


def test_screen_shows_the_terminal_in_styles_that_rich_knows() -> None:
    game = NetHack()
    observation = game.reset(42)
    rows = game.screen()
    assert len(rows) == 24
    shown = ["".join(text for text, _ in row) for row in rows]
    assert "\n".join(shown[1:]) in observation.long_term
    for row in rows:
        for _, style in row:
            Style.parse(style)
    cursor = [text for row in rows for text, style in row if "reverse" in style]
    assert cursor == ["@"]
    game.close()
    game.close()
    assert game.screen() == rows


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="NetHackChallenge-v0"):
        NetHack("NetHackScore-v0")
    with pytest.raises(ValueError, match="step limit"):
        NetHack(max_steps=0)
    with pytest.raises(ValueError, match="seed"):
        NetHack().reset(-1)
    with pytest.raises(RuntimeError, match="reset"):
        NetHack().step("north")
    assert TASKS == ("NetHackChallenge-v0",)


def test_importing_and_making_a_game_loads_no_simulator() -> None:
    code = (
        "import sys, games.nethack, games.minihack\n"
        "games.nethack.NetHack(); games.minihack.MiniHack(games.minihack.TASKS[0])\n"
        "print([name for name in ('nle', 'minihack', 'gymnasium') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
