"""Steps per second of the games: the simulator by itself, and the text game made of it.

    python benchmarks/game_speed.py                     every task, 2,000 steps each
    python benchmarks/game_speed.py Crafter --steps 500

Random actions; the milliseconds that the text game needs to start an episode are shown apart.
The simulator runs as its package offers it: Crafter there draws a picture at every step, and
MiniHack has no Boxoban levels. Wall time, so leave the machine alone meanwhile.
"""

from __future__ import annotations

import itertools
import random
import time
import warnings
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import games

START, STEP, OVER = "start", "step", "over"


@dataclass
class Timing:
    """What a run of steps cost: seconds in steps, and in starting episodes."""

    steps: int = 0
    episodes: int = 0
    in_steps: float = 0.0
    in_starts: float = 0.0

    @property
    def rate(self) -> float:
        """Steps per second."""
        return self.steps / self.in_steps

    @property
    def start(self) -> float:
        """Milliseconds to start an episode."""
        return 1_000 * self.in_starts / self.episodes


def main(
    tasks: Annotated[list[str] | None, typer.Argument(help="Tasks to measure; all where none is named.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps per task and column.")] = 2_000,
) -> None:
    """Print steps per second, simulator against text game."""
    warnings.filterwarnings("ignore")
    table = Table(
        "task",
        "simulator",
        "as text",
        "kept",
        "start, ms",
        title=f"Steps per second, over {steps:,} steps",
    )
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
    for task in [games.canonical(name) for name in tasks or games.tasks()]:
        raw = _measured(_simulator, task, steps)
        ours = _measured(_text_game, task, steps)
        assert ours is not None
        table.add_row(
            task,
            f"{raw.rate:,.0f}" if raw else "no levels",
            f"{ours.rate:,.0f}",
            f"{ours.rate / raw.rate:.0%}" if raw else "",
            f"{ours.start:,.0f}",
        )
    Console().print(table)


def _measured(play: Callable[[str, int], Generator[str, None, None]], task: str, steps: int) -> Timing | None:
    """Play episodes until that many steps are done; None where the simulator lacks its levels."""
    timing = Timing()
    for seed in itertools.count(42):
        events = play(task, seed)
        began = time.perf_counter()
        try:
            next(events)
        except ModuleNotFoundError:
            if "Boxoban" in task:  # MiniHack brings no levels and says so in this way
                return None
            raise
        now = time.perf_counter()
        if seed > 42:  # the first start also imports the simulator
            timing.in_starts += now - began
            timing.episodes += 1
        for _ in events:
            timing.steps += 1
            if timing.steps >= steps and timing.episodes:
                timing.in_steps += time.perf_counter() - now
                events.close()
                return timing
        timing.in_steps += time.perf_counter() - now
    return timing


def _text_game(task: str, seed: int) -> Generator[str, None, None]:
    """One episode of ours: an item when it has started, then one a step."""
    game = games.make(task)
    names = list(game.actions)
    choose = random.Random(seed)
    game.reset(seed)
    yield START
    done = False
    while not done:
        done = game.step(choose.choice(names)).done
        yield STEP
    game.close()


def _simulator(task: str, seed: int) -> Generator[str, None, None]:
    """One episode of the simulator alone, likewise."""
    choose = random.Random(seed)
    if games.game_of(task) == "crafter":
        import crafter

        env = crafter.Env(seed=seed)
        env.reset()
        yield START
        done = False
        while not done:
            _, _, done, _ = env.step(choose.randrange(env.action_space.n))
            yield STEP
        return
    import gymnasium
    import minihack  # noqa: F401  (registers the tasks)
    import nle  # noqa: F401

    env = gymnasium.make(task, disable_env_checker=True)
    assert isinstance(env.action_space, gymnasium.spaces.Discrete)
    actions = int(env.action_space.n)
    try:
        env.reset()
        yield START
        done = False
        while not done:
            _, _, terminated, truncated, _ = env.step(choose.randrange(actions))
            done = terminated or truncated
            yield STEP
    finally:
        env.close()


if __name__ == "__main__":
    typer.run(main)
