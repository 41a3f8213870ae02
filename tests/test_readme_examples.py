"""The agent and the game that the README shows, taken from its text and played."""

from __future__ import annotations

import asyncio
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import games
from automem import choosing
from automem.agents import registry
from automem.models.fixed import Fixed
from games import registry as known_games

README = Path(__file__).parents[1] / "README.md"


def shown(name: str) -> Any:
    """The class of this name, from the block of the README that defines it."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (block for block in blocks if f"class {name}" in block)
    values: dict[str, Any] = {"__name__": "readme"}
    exec(compile(block, f"README.md, {name}", "exec"), values)
    return values[name]


@pytest.fixture
def coin(monkeypatch: pytest.MonkeyPatch) -> Any:
    entry = metadata.EntryPoint("coin", "coin:Coin", known_games.ENTRY_POINTS)
    monkeypatch.setattr(known_games, "_added", lambda: {"coin": entry})
    made = shown("Coin")
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda self: made)
    return made


def test_the_game_is_a_game(coin: Any) -> None:
    game = games.make("coin", max_steps=5)
    first = game.reset(3)
    assert game.actions == coin.actions and "place 4" in first.text
    with pytest.raises(games.InvalidAction):
        game.step("fly")
    walked = [game.step("west") for _ in range(4)]
    there = any(move.terminated for move in walked)
    assert there == (game.progress().progression == 1.0 or max(m.progress.progression for m in walked) == 1.0)
    assert games.game_of("coin") == "coin" and game.screen()
    waiting = games.make("coin", max_steps=2)
    waiting.reset(3)
    assert [waiting.step("wait").truncated for _ in range(2)] == [False, True]


def test_the_agent_plays_the_game(coin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    steady = metadata.EntryPoint("steady", "steady:Steady", registry.ENTRY_POINTS)
    agent = shown("Steady")
    monkeypatch.setattr(choosing, "entry_points", lambda group: [steady])
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda self: agent if self.name == "steady" else coin)
    assert "steady" in registry.names()
    game = games.make("coin", max_steps=20)
    seen = game.reset(next(seed for seed in range(9) if _coin(coin, seed) == 8))
    asked = []
    model = Fixed(lambda messages: asked.append(messages) or "east")  # type: ignore[func-returns-value]
    player = registry.seated("steady", game, 3, model)
    move = None
    while move is None or not move.done:
        decision = asyncio.run(player.decide(seen))
        move = game.step(decision.action)
        seen = move.observation
    assert move.terminated and move.progress.progression == 1.0
    assert len(asked) == 1  # what changes something is gone on with
    assert game.instructions in asked[0][0]["content"]


def test_the_agent_is_as_short_as_is_said() -> None:
    block = next(
        b for b in re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL) if "class Steady" in b
    )
    assert len([line for line in block.splitlines() if line.strip()]) <= 20


def _coin(made: Any, seed: int) -> int:
    game = made("coin")
    game.reset(seed)
    return game.coin
