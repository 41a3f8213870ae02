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
WINDOW = 500
"""Steps over which a figure is taken."""

YOUNG = 100
"""Age in steps of the young episode."""


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


class Episode:
    """An episode whose observations were recorded beforehand, so that its game costs nothing."""

    def __init__(self, task: str, texts: Sequence[str], folder: Path) -> None:
        loaded, self.game = scaffold.load(TASKS[task]), games.make(task)
        self.game.reset(0)
        files = [file.spec() for file in loaded.schema.files]
        memory = Memory(folder / "memory", files, loaded.schema.limits.for_memory(), initial=loaded.initial)
        self.agent = Agent(note_and_search(list(self.game.actions), 0), loaded, memory, self.game)
        self.path = folder / STEPS
        self.writer = TraceWriter(self.path)
        self.texts = itertools.cycle(texts)

    async def step(self) -> float:
        """Play one step and write it down. Returns milliseconds."""
        text = next(self.texts)
        start = time.perf_counter()
        step = self.agent.step
        decision = await self.agent.decide(text)
        self.writer.append(
            StepRecord(
                step=step, observation=text, log=decision.log, plan=decision.plan, raw_action=decision.raw_action,
                action=decision.action, invalid=0, fallback=False, reward=0.0, progression=0.0, achievements={},
                terminated=False, truncated=False, warnings=decision.warnings,
            )
        )  # fmt: skip
        return 1000 * (time.perf_counter() - start)

    async def skip(self, steps: int) -> None:
        """Play so many steps."""
        for _ in range(steps):
            await self.step()


async def overhead(task: str, steps: int) -> dict[str, float]:
    """Milliseconds and bytes a step, in a young episode and in an old one.

    The two are stepped in turn, so that both meet the same moods of the machine.
    """
    texts = recorded(task, 1000)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "old").mkdir()
        (Path(folder) / "young").mkdir()
        old, young = Episode(task, texts, Path(folder) / "old"), Episode(task, texts, Path(folder) / "young")
        await old.skip(steps)
        await young.skip(YOUNG)
        sizes = [episode.path.stat().st_size for episode in (old, young)]
        times = [(await old.step(), await young.step()) for _ in range(WINDOW)]
        grown = [e.path.stat().st_size - size for e, size in zip((old, young), sizes, strict=True)]
        for episode in (old, young):
            episode.writer.close()
            episode.game.close()
    return {
        "late": statistics.median(late for late, _ in times),
        "early": statistics.median(early for _, early in times),
        "late_bytes": grown[0] / WINDOW,
        "early_bytes": grown[1] / WINDOW,
    }


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
    table = Table(title=f"beyond the game, {YOUNG} steps into an episode and {steps}", title_justify="left")
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
