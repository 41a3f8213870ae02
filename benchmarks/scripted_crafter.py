"""How well the scripted player does at Crafter, and how much of it is memory.

Without options: scaffold v0, seeds 42 to 81, reads of 2,000 and 8,000 characters, memory emptied.
With ``--scaffold crafter/v1``: that scaffold against v0, paired by seed.
Shorter: ``python benchmarks/scripted_crafter.py --seeds 1000..1009 --steps 300``.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from automem import scaffold as scaffolds
from automem.agent import Agent
from automem.duplicates import Duplicates
from automem.memory import Memory
from automem.metrics import WRITES
from automem.models.protocol import Message, Reply
from automem.models.scripted import crafter
from automem.models.scripted.reading import read_call
from automem.ops import Op
from automem.scaffold import Scaffold
from games import suites
from games.crafter import Crafter


@dataclass(frozen=True)
class Setting:
    """What is played: a scaffold, characters of a read, and whether memory is emptied before every call."""

    scaffold: str
    result_chars: int | None = None
    emptied: bool = False

    @property
    def name(self) -> str:
        read = f", R = {self.result_chars}" if self.result_chars else ""
        return f"{self.scaffold}{read}{', memory emptied' if self.emptied else ''}"


@dataclass(frozen=True)
class Episode:
    """One episode: its result and what it took."""

    seed: int
    progression: float
    achievements: tuple[str, ...]
    steps: int
    calls: int
    tokens: int
    writes: int
    duplicates: int
    added_bytes: int
    thinking: float


class Player:
    """The scripted player as a model, called directly so that an error in it is seen."""

    name = "scripted"

    def __init__(self) -> None:
        self.forget: Memory | None = None
        self.calls = 0
        self.tokens = 0
        self.thinking = 0.0

    async def ready(self) -> None:
        """Nothing to start."""

    async def close(self) -> None:
        """Nothing to end."""

    async def complete(self, messages: Sequence[Message]) -> Reply:
        """The player's answer; `forget` is emptied first."""
        if self.forget is not None:
            empty(self.forget)
        start = time.perf_counter()
        text = crafter.play(read_call(messages))
        self.thinking += time.perf_counter() - start
        read, written = sum(len(message["content"]) for message in messages) // 4, len(text) // 4
        self.calls += 1
        self.tokens += read + written
        return Reply(text, read, written, 0, None, 0.0, self.name)


def empty(memory: Memory) -> None:
    """Remove every file."""
    for name, _, _ in memory.listing():
        memory.run(Op("DELETE", (name,)))


def with_result_chars(scaffold: Scaffold, result_chars: int | None) -> Scaffold:
    """The same scaffold with another limit for reads. Ends the program for one with code, which is not run here."""
    if scaffold.hooks is not None:
        sys.exit(
            f"{scaffold.ref} has hooks, and this measures without: use automem eval crafter --scaffold {scaffold.ref}"
        )
    if result_chars is None:
        return scaffold
    limits = scaffold.schema.limits.model_copy(update={"result_chars": result_chars})
    return replace(scaffold, schema=scaffold.schema.model_copy(update={"limits": limits}))


async def play_episode(scaffold: Scaffold, seed: int, steps: int, emptied: bool = False) -> tuple[Episode, Memory]:
    """Play one episode without a disk; also returns the memory as it ended."""
    game = Crafter(max_steps=steps)
    observation = game.reset(seed)
    files = [file.spec() for file in scaffold.schema.files]
    memory = Memory(None, files, scaffold.schema.limits.for_memory(), initial=scaffold.initial)
    player = Player()
    player.forget = memory if emptied else None
    agent = Agent(player, scaffold, memory, game)
    writes = duplicates = added = 0
    told = Duplicates()
    while True:
        decision = await agent.decide(observation.text)
        for turn in (*decision.log, *decision.plan):
            for op in turn.ops:
                added += op.added
                if op.ok and op.name in WRITES:
                    writes += 1
                    duplicates += told.seen(op, agent.step - 1)
        transition = game.step(decision.action)
        observation = transition.observation
        if transition.done:
            break
    progress = transition.progress
    episode = Episode(
        seed,
        progress.progression,
        tuple(progress.achievements),
        agent.step,
        player.calls,
        player.tokens,
        writes,
        duplicates,
        added,
        player.thinking,
    )
    return episode, memory


def _play(setting: Setting, seed: int, steps: int) -> Episode:
    scaffold = with_result_chars(scaffolds.load(setting.scaffold), setting.result_chars)
    return asyncio.run(play_episode(scaffold, seed, steps, setting.emptied))[0]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean and half the width of its 95 % interval (normal)."""
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1))
    return mean, 1.96 * spread / math.sqrt(len(values))


def report(setting: Setting, episodes: Sequence[Episode], base: Sequence[Episode]) -> None:
    """One paragraph for a setting, paired with the first one that was played."""
    mean, half = interval([e.progression for e in episodes])
    steps = sum(e.steps for e in episodes)
    print(f"{setting.name}\n  progression {mean:.3f} +- {half:.3f} over {len(episodes)} seeds")
    if base is not episodes:
        change, half = interval([e.progression - b.progression for e, b in zip(episodes, base, strict=True)])
        baseline = interval([b.progression for b in base])[0]
        print(f"  against the first, paired: {change:+.3f} +- {half:.3f} ({change / baseline:+.0%})")
    print(
        f"  {steps / len(episodes):.0f} steps an episode; a step: {sum(e.calls for e in episodes) / steps:.1f} calls, "
        f"{sum(e.tokens for e in episodes) / steps:.0f} tokens, "
        f"{sum(e.added_bytes for e in episodes) / steps:.0f} bytes, "
        f"{1000 * sum(e.thinking for e in episodes) / steps:.2f} ms of thinking; "
        f"{sum(e.duplicates for e in episodes) / max(1, sum(e.writes for e in episodes)):.1%} of writes duplicate"
    )
    reached = {name for e in episodes for name in e.achievements}
    shares = {name: sum(name in e.achievements for e in episodes) / len(episodes) for name in reached}
    print("  " + ", ".join(f"{name} {share:.0%}" for name, share in sorted(shares.items(), key=lambda s: -s[1])), "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scaffold", action="append", default=[], help="another scaffold, paired with v0")
    parser.add_argument("--seeds", default="42..81")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    seeds = suites.parse_seeds(chosen.seeds)
    settings = [Setting("crafter/v0", 2000)]
    if chosen.scaffold:
        settings += [Setting(name) for name in chosen.scaffold]
    else:
        settings += [Setting("crafter/v0", 8000), Setting("crafter/v0", 2000, emptied=True)]
    base: list[Episode] = []
    with ProcessPoolExecutor(chosen.processes) as pool:
        for setting in settings:
            count = len(seeds)
            episodes = list(pool.map(_play, [setting] * count, seeds, [chosen.steps] * count))
            base = base or episodes
            report(setting, episodes, base)


if __name__ == "__main__":
    main()
