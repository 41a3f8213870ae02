"""How well the scripted player does at NetHack and MiniHack, with a scaffold of choice.

python benchmarks/scripted_hack.py --steps 100                     MiniHack: eight tasks, seeds 42 to 46
python benchmarks/scripted_hack.py --tasks nethack --steps 1000    NetHack: seeds 42 to 51
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scipy import stats

import games
from automem import scaffold as scaffolds
from automem.agent import Agent
from automem.memory import Memory
from automem.models.protocol import Message, Reply
from automem.models.scripted import play

MINIHACK = tuple(task for task in games.tasks() if task.startswith("MiniHack"))
NETHACK = ("NetHackChallenge-v0",)


class Scripted:
    """The player as a model, without the rest of the run around it. `seconds` is the time it took to think."""

    name = "scripted"

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0
        self.characters = 0

    async def ready(self) -> None:
        """Nothing to start."""

    async def close(self) -> None:
        """Nothing to end."""

    async def complete(self, messages: Sequence[Message]) -> Reply:
        """Answer with what the player writes."""
        start = time.perf_counter()
        text = play(messages)
        self.seconds += time.perf_counter() - start
        self.calls += 1
        self.characters += sum(len(message["content"]) for message in messages[1:]) + len(text)
        return Reply(text, 0, 0, 0, None, 0.0, self.name)


@dataclass(frozen=True, slots=True)
class Episode:
    """What one episode came to."""

    task: str
    seed: int
    progression: float
    steps: int
    calls: int
    characters: int
    thinking: float
    memory: int
    reached: str


def play_episode(task: str, seed: int, steps: int, ref: str, watch: int = 0, forget: bool = False) -> Episode:
    """Play one episode. `watch`: 1 prints its steps, 2 the screens, 3 the memory; `forget` empties memory at each."""
    loaded = scaffolds.load(ref)
    if loaded.hooks is not None:
        sys.exit(f"{ref} has hooks, and this measures without: use automem eval --scaffold {ref}")
    files = [file.spec() for file in loaded.schema.files]
    limits = loaded.schema.limits.for_memory()
    memory = Memory(None, files, limits, initial=loaded.initial)
    game = games.make(task, max_steps=steps)
    model = Scripted()
    agent = Agent(model, loaded, memory, game)
    observation = game.reset(seed)
    count, done = 0, False
    actions: Counter[str] = Counter()
    while not done:
        if forget:
            agent.memory = Memory(None, files, limits, initial=loaded.initial)
        decision = asyncio.run(agent.decide(observation.text))
        if watch:
            _show(count, observation.text, decision, watch)
        transition = game.step(decision.action)
        actions[decision.action] += 1
        observation, done = transition.observation, transition.done
        count += 1
    progress = game.progress()
    game.close()
    reached = ", ".join(f"{name} {value}" for name, value in progress.achievements.items())
    reached += " | " + " ".join(f"{name}:{n}" for name, n in actions.most_common(5))
    size = sum(size for _, _, size in memory.listing())
    if watch:
        print(observation.text)
    return Episode(task, seed, progress.progression, count, model.calls, model.characters, model.seconds, size, reached)


def _show(step: int, text: str, decision, watch: int) -> None:
    reads = [(op.label, op.result[:300]) for turn in decision.plan for op in turn.ops]
    writes = [(op.label, op.ok) for turn in decision.log for op in turn.ops]
    message = text[: text.find("language")].split("\n", 1)[-1].strip()
    print(f"### {step} -> {decision.action} | {message}")
    if watch > 1:
        print(text[text.find("cursor:") : text.find("inventory:")])
    if watch > 2:
        print("   writes", writes, "\n   reads", reads, decision.warnings)


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean, and its 95 % interval: Student's t, within [0, 1]."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, 0.0, 1.0
    error = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))
    half = float(stats.t.ppf(0.975, len(values) - 1)) * error
    return mean, max(0.0, mean - half), min(1.0, mean + half)


def main() -> None:
    """Play all episodes and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="minihack", help="minihack, nethack, or task names with commas")
    parser.add_argument("--seeds", default="", help="first..last; 42..46 for MiniHack and 42..51 for NetHack")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--scaffold", default="", help="game/version or a folder; v0 of the game")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--watch", type=int, default=0, help="play in this process and show steps: 1, 2 or 3")
    parser.add_argument("--forget", action="store_true", help="empty the memory folder before every step")
    options = parser.parse_args()
    tasks = {"minihack": MINIHACK, "nethack": NETHACK}.get(options.tasks) or tuple(options.tasks.split(","))
    hack = "nethack" if tasks == NETHACK else "minihack"
    first, last = (int(n) for n in (options.seeds or ("42..51" if hack == "nethack" else "42..46")).split(".."))
    ref = options.scaffold or f"{hack}/v0"
    seeds = range(first, last + 1)
    jobs = [(task, seed, options.steps, ref, options.watch, options.forget) for task in tasks for seed in seeds]
    start = time.perf_counter()
    if options.watch:
        episodes = [play_episode(*job) for job in jobs]
    else:
        with ProcessPoolExecutor(options.workers) as pool:
            episodes = list(pool.map(play_episode, *zip(*jobs, strict=True)))
    for task in tasks:
        played = [e for e in episodes if e.task == task]
        mean, low, high = interval([e.progression for e in played])
        print(f"{task:34} {100 * mean:6.2f} % [{100 * low:.2f}, {100 * high:.2f}]  n={len(played)}")
        for e in played:
            print(f"    seed {e.seed}: {100 * e.progression:6.2f} % in {e.steps} steps, {e.reached}")
    mean, low, high = interval([e.progression for e in episodes])
    steps = sum(e.steps for e in episodes)
    print(
        f"all {100 * mean:.2f} % [{100 * low:.2f}, {100 * high:.2f}], {len(episodes)} episodes, {ref}, "
        f"{options.steps} steps at most\n"
        f"{sum(e.calls for e in episodes) / steps:.2f} calls and {sum(e.characters for e in episodes) / steps:.0f} "
        f"characters a step, {1000 * sum(e.thinking for e in episodes) / steps:.2f} ms of thought a step, "
        f"{sum(e.memory for e in episodes) / steps:.0f} bytes of memory a step, {time.perf_counter() - start:.0f} s"
    )


if __name__ == "__main__":
    main()
