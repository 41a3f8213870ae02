"""Games in other processes: the same games, whatever happens to the processes."""

from __future__ import annotations

import asyncio
import math
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import games
from automem import game_pool
from automem.game_pool import GameFailed, GamePool
from games.protocol import Progress

ACTIONS = ("Move West", "Move North", "Do", "Move East", "Do", "Move South", "Sleep", "Noop") * 4


def local(seed: int, actions: tuple[str, ...]) -> list[Any]:
    game = games.make("Crafter", max_steps=1000)
    game.reset(seed)
    seen = [game.step(action) for action in actions]
    game.close()
    return seen


def run(coroutine: Any) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 120))


def test_a_game_in_another_process_is_the_same_game() -> None:
    async def remote() -> list[Any]:
        pool = GamePool(1)
        try:
            async with pool.game("Crafter", 7, max_steps=1000) as game:
                await game.open()
                assert "Move West" in game.actions and game.default_action == "Noop"
                return [await game.step(action) for action in ACTIONS]
        finally:
            pool.close()

    assert run(remote()) == local(7, ACTIONS)


def test_a_killed_process_costs_its_games_a_replay_and_nothing_else() -> None:
    async def remote() -> tuple[list[list[Any]], list[int]]:
        pool = GamePool(1)
        try:
            async with pool.game("Crafter", 7, max_steps=1000) as one, pool.game("Crafter", 8, max_steps=1000) as two:
                await one.open()
                await two.open()
                seen: list[list[Any]] = [[], []]
                for i, action in enumerate(ACTIONS):
                    if i in (5, 20):
                        os.kill(pool.worker().process.pid, signal.SIGKILL)
                    for game, transitions in zip((one, two), seen, strict=True):
                        transitions.append(await game.step(action))
                return seen, [one.replays, two.replays]
        finally:
            pool.close()

    seen, replays = run(remote())
    assert seen == [local(7, ACTIONS), local(8, ACTIONS)]
    assert sum(replays) >= 2


def test_a_request_that_kills_its_process_every_time_gives_up_that_game_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def remote() -> list[Any]:
        pool = GamePool(2)
        try:
            async with pool.game("Crafter", 7, max_steps=1000) as good, pool.game("Crafter", 8, max_steps=1000) as bad:
                await good.open()
                await bad.open()
                worker = bad._worker
                assert worker is not None
                real = type(worker).ask

                async def deadly(self: Any, number: int, verb: str, *arguments: Any) -> Any:
                    if number == bad.number and verb == "step":
                        # Stopped, it cannot answer before it dies.
                        os.kill(self.process.pid, signal.SIGSTOP)
                        asyncio.get_running_loop().call_later(0.05, os.kill, self.process.pid, signal.SIGKILL)
                    return await real(self, number, verb, *arguments)

                monkeypatch.setattr(type(worker), "ask", deadly)
                with pytest.raises(GameFailed, match=r"Crafter, seed 8, step 0: .*died 2 times"):
                    await bad.step("Noop")
                return [await good.step(action) for action in ACTIONS]
        finally:
            pool.close()

    assert run(remote()) == local(7, ACTIONS)


def test_an_action_that_the_game_does_not_have_is_refused_and_the_game_goes_on() -> None:
    async def remote() -> Any:
        pool = GamePool(1)
        try:
            async with pool.game("Crafter", 7, max_steps=1000) as game:
                await game.open()
                with pytest.raises(games.InvalidAction):
                    await game.step("Fly")
                return await game.step(ACTIONS[0])
        finally:
            pool.close()

    assert run(remote()) == local(7, ACTIONS[:1])[0]


def test_a_process_that_dies_between_requests_is_nobodys_fault() -> None:
    async def remote() -> tuple[list[Any], int]:
        pool = GamePool(1)
        try:
            async with pool.game("Crafter", 7, max_steps=1000) as game:
                await game.open()
                seen = []
                for action in ACTIONS[:4]:
                    process = pool.worker().process
                    process.kill()
                    process.wait()
                    seen.append(await game.step(action))
                return seen, game.replays
        finally:
            pool.close()

    assert run(remote()) == (local(7, ACTIONS[:4]), 4)


def test_a_request_that_hangs_is_ended_and_the_game_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(game_pool, "PATIENCE", 2.0)

    async def remote() -> list[Any]:
        pool = GamePool(1)
        try:
            async with pool.game("Crafter", 7, max_steps=1000) as game:
                await game.open()
                os.kill(pool.worker().process.pid, signal.SIGSTOP)
                return [await game.step(ACTIONS[0])]
        finally:
            pool.close()

    assert run(remote()) == local(7, ACTIONS[:1])


def test_what_a_game_raises_fails_that_game_with_its_place() -> None:
    async def remote() -> None:
        pool = GamePool(1)
        try:
            async with pool.game("Crafter", 7, max_steps=2) as game:
                await game.open()
                for _ in range(3):  # one more than the game has
                    await game.step("Noop")
        finally:
            pool.close()

    with pytest.raises(GameFailed, match="Crafter, seed 7, step 2: the game raised"):
        run(remote())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"progress": Progress(math.nan)}, "progression nan, which is not a number from 0 to 1"),
        ({"progress": Progress(1.5)}, "progression 1.5"),
        ({"progress": Progress(None)}, "progression None"),  # type: ignore[arg-type]
        ({"reward": math.inf}, "reward inf, which is not a finite number"),
    ],
)
def test_what_no_mean_can_be_made_with_fails_the_game(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], told: str
) -> None:
    whole = game_pool.whole
    monkeypatch.setattr(game_pool, "whole", lambda values: replace(whole(values), **change))

    async def remote() -> None:
        pool = GamePool(1)
        try:
            async with pool.game("Crafter", 7, max_steps=2) as game:
                await game.open()
                await game.step("Noop")
        finally:
            pool.close()

    with pytest.raises(GameFailed, match=f"Crafter, seed 7, step 0: the game says {told}"):
        run(remote())


def test_files_of_the_working_folder_are_not_taken_for_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "games.py").write_text("raise SystemExit(3)")
    (tmp_path / "random.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)

    async def remote() -> Any:
        pool = GamePool(1)
        try:
            async with pool.game("Crafter", 7, max_steps=1000) as game:
                await game.open()
                return await game.step(ACTIONS[0])
        finally:
            pool.close()

    assert run(remote()) == local(7, ACTIONS[:1])[0]


def test_processes_end_with_the_pool() -> None:
    async def remote() -> Any:
        pool = GamePool(1)
        async with pool.game("Crafter", 7, max_steps=1000) as game:
            await game.open()
            process = pool.worker().process
        pool.close()
        return process.poll()

    assert run(remote()) == 0
