"""What calls of hooks cost while the reference revisions are played: every call of an episode, as it comes.

    python benchmarks/hook_episodes.py [--steps 300] [--seed 1000]

`scripted` plays one episode of each game with v1, in the containment that `automem eval` would choose. Times are
of whole calls, from the agent's process to the hooks' and back, with what the hook itself computes and asks.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console
from rich.table import Table

from automem import scaffold
from automem.episode import EpisodeJob, play
from automem.game_pool import GamePool
from automem.models import registry
from automem.models.protocol import Sampling
from automem.sandbox import Process, Sandbox, SandboxConfig, choose_mode

TASKS = {"crafter": "Crafter", "minihack": "MiniHack-MazeWalk-15x15-v0", "nethack": "NetHackChallenge-v0"}


class Timed(Process):
    """A process whose calls are timed."""

    taken: list[tuple[str, float]]

    async def call(
        self,
        method: str,
        args: Sequence[Any],
        serve: Callable[[str, list[Any]], Any] | None = None,
        seconds: float | None = None,
    ) -> Any:
        """See `Process.call`."""
        began = time.perf_counter()
        try:
            return await super().call(method, args, serve, seconds)
        finally:
            self.taken.append((method, 1e6 * (time.perf_counter() - began)))


class TimedSandbox(Sandbox):
    """A sandbox that hands out timed processes."""

    def __init__(self, config: SandboxConfig) -> None:
        super().__init__(config)
        self.taken: list[tuple[str, float]] = []

    async def open(self, source: str) -> Process:
        """See `Sandbox.open`."""
        process = await super().open(source)
        process.__class__ = Timed
        process.taken = self.taken  # type: ignore[attr-defined]
        return process


async def calls_of(game: str, task: str, seed: int, steps: int) -> list[tuple[str, float]]:
    """Method and microseconds of every call of one episode."""
    loaded = scaffold.load(f"{game}/v1")
    pool, sandbox = GamePool(1), TimedSandbox(SandboxConfig())
    model = registry.make_model("scripted", Sampling())
    await model.ready()
    try:
        with tempfile.TemporaryDirectory() as folder:
            job = EpisodeJob(Path(folder) / "episode", task, seed, steps, loaded.folder)
            await play(job, loaded, model, pool, None, sandbox)
    finally:
        pool.close()
        await sandbox.close()
        await model.close()
    return sandbox.taken


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    table = Table(title=f"{choose_mode(SandboxConfig())}: a call of a hook, in microseconds")
    for name in ("scaffold", "method", "calls", "median", "99 %"):
        table.add_column(name, justify="left" if name in ("scaffold", "method") else "right")
    for game, task in TASKS.items():
        taken = asyncio.run(calls_of(game, task, options.seed, options.steps))
        for method in (*sorted({name for name, _ in taken} - {"reset"}), "all"):
            times = sorted(us for name, us in taken if method in (name, "all"))
            last = times[min(len(times) - 1, int(0.99 * len(times)))]
            table.add_row(f"{game}/v1", method, str(len(times)), f"{statistics.median(times):.0f}", f"{last:.0f}")
        table.add_section()
    Console().print(table)


if __name__ == "__main__":
    main()
