"""What a step costs beyond the game: agent, memory folder and trace.

    python benchmarks/agent_overhead.py [--steps 10000]

A model in this process answers at once: it writes one note and makes one search a step. The
first table feeds the agent observations that were recorded beforehand, so that the game costs
nothing, and shows the time of a step early and late in the episode and the bytes that a step
leaves on disk. The second plays the real games through the same code as `automem eval`, with
their processes, and gives whole steps per second.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

import games
from automem import scaffold
from automem.agent import Agent
from automem.episode import STEPS, EpisodeJob, play
from automem.game_pool import GamePool
from automem.memory import Memory
from automem.models.fixed import Fixed
from automem.models.protocol import Message
from automem.records import StepRecord
from automem.trace import TraceWriter

TASKS = {"Crafter": "crafter/v0", "NetHackChallenge-v0": "nethack/v0"}
WINDOW = 100
"""Steps over which a figure is taken."""


def note_and_search(actions: Sequence[str], seed: int) -> Fixed:
    """A model that appends a line in LOG, searches in PLAN, and then takes an action of a fixed random series."""
    chosen = random.Random(seed)
    numbers = itertools.count()

    def rule(messages: Sequence[Message]) -> str:
        prompt = messages[1]["content"]
        if "<|DONE|>" in prompt.rpartition("=== END OF OBSERVATION ===")[2]:
            seen = " ".join(prompt.partition("===\n")[2].split())[:60]
            return f"<|APPEND|>map_notes.txt|Step {next(numbers)}: {seen}<|END|><|DONE|><|END|>"
        if len(messages) == 2:
            return "<|SEARCH|>map_notes.txt|step<|END|>"
        return f"<|ACTION|>{chosen.choice(actions)}<|END|>"

    return Fixed(rule)


def recorded(task: str, count: int) -> list[str]:
    """Observations of a random episode, and of its successors when it ends early."""
    texts: list[str] = []
    for seed in itertools.count(1000):
        game, chosen = games.make(task), random.Random(seed)
        texts.append(game.reset(seed).text)
        while len(texts) < count:
            transition = game.step(chosen.choice(list(game.actions)))
            texts.append(transition.observation.text)
            if transition.done:
                break
        game.close()
        if len(texts) >= count:
            return texts
    raise AssertionError("unreachable")


async def overhead(task: str, steps: int) -> dict[str, float]:
    """Milliseconds a step and bytes a step at the given places of one long episode."""
    texts = recorded(task, 1000)
    loaded, game = scaffold.load(TASKS[task]), games.make(task)
    game.reset(0)
    with tempfile.TemporaryDirectory() as folder:
        files = [file.spec() for file in loaded.schema.files]
        memory = Memory(Path(folder) / "memory", files, loaded.schema.limits.for_memory(), initial=loaded.initial)
        agent = Agent(note_and_search(list(game.actions), 0), loaded, memory, game)
        writer = TraceWriter(Path(folder) / STEPS)
        times, sizes = [], []
        for step, text in zip(range(steps + WINDOW), itertools.cycle(texts), strict=False):
            start = time.perf_counter()
            decision = await agent.decide(text)
            writer.append(
                StepRecord(
                    step=step, observation=text, log=decision.log, plan=decision.plan, raw_action=decision.raw_action,
                    action=decision.action, invalid=0, fallback=False, reward=0.0, progression=0.0, achievements={},
                    terminated=False, truncated=False, warnings=decision.warnings,
                )
            )  # fmt: skip
            times.append(1000 * (time.perf_counter() - start))
            sizes.append((Path(folder) / STEPS).stat().st_size)
        writer.close()
    game.close()

    def window(end: int) -> float:
        return statistics.median(times[end : end + WINDOW])

    def size(end: int) -> float:
        return (sizes[end + WINDOW - 1] - sizes[end]) / (WINDOW - 1)

    return {"early": window(100), "late": window(steps), "early_bytes": size(100), "late_bytes": size(steps)}


async def whole(task: str, steps: int, episodes: int) -> tuple[float, float]:
    """Steps per second of `episodes` at once through the game processes, and bytes a step on disk."""
    loaded = scaffold.load(TASKS[task])
    game = games.make(task)
    actions = list(game.actions)
    game.close()
    pool = GamePool(2)
    with tempfile.TemporaryDirectory() as folder:

        def job(seed: int) -> EpisodeJob:
            return EpisodeJob(Path(folder) / str(seed), task, seed, steps, loaded.folder)

        async def one(seed: int) -> int:
            return (await play(job(seed), loaded, note_and_search(actions, seed), pool)).steps

        await asyncio.gather(*(one(seed) for seed in range(2)))  # starts the processes
        start = time.perf_counter()
        played = await asyncio.gather(*(one(seed) for seed in range(10, 10 + episodes)))
        seconds = time.perf_counter() - start
        size = sum((Path(folder) / str(seed) / STEPS).stat().st_size for seed in range(10, 10 + episodes))
    pool.close()
    return sum(played) / seconds, size / sum(played)


def tables(steps: int) -> Iterator[Table]:
    """The two tables, as they are measured."""
    table = Table(title=f"beyond the game, one episode of {steps} steps", title_justify="left")
    for name in (
        "task",
        "ms/step at 100",
        f"ms/step at {steps}",
        "ratio",
        "bytes/step at 100",
        f"bytes/step at {steps}",
    ):
        table.add_column(name)
    for task in TASKS:
        found = asyncio.run(overhead(task, steps))
        table.add_row(
            task, f"{found['early']:.3f}", f"{found['late']:.3f}", f"{found['late'] / found['early']:.2f}",
            f"{found['early_bytes']:.0f}", f"{found['late_bytes']:.0f}",
        )  # fmt: skip
    yield table
    table = Table(title="whole steps, real games in their processes", title_justify="left")
    for name in ("task", "episodes at once", "steps/s", "bytes/step on disk"):
        table.add_column(name)
    for task in TASKS:
        for episodes in (1, 4):
            speed, size = asyncio.run(whole(task, 1000, episodes))
            table.add_row(task, str(episodes), f"{speed:.0f}", f"{size:.0f}")
    yield table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10_000)
    for result in tables(parser.parse_args().steps):
        Console().print(result)
