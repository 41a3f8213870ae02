"""How fast good memory decisions are selected: ``python benchmarks/selection.py [--scaffold crafter/v0]``.

Plays a few episodes of Crafter with `scripted` (some minutes, once), and copies them under other seeds until there
are 100,000 steps, as many as 100 episodes of 1,000 steps have: what is read and judged is real, and the same few
episodes again and again, so that near-duplicates are far more frequent than in runs of so many seeds.

Then selects by `rules`: as recipes do, from the better half of the episodes; from all of them; and from all of them
with room for every candidate, so that each good one is compared with all that were taken.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from automem import runs, scaffold  # noqa: E402
from automem.episode import RESULT  # noqa: E402
from automem.runs import PlannedTask, Run  # noqa: E402
from automem.trace import RunTrace  # noqa: E402
from specialist.recipe import DataRecipe  # noqa: E402
from specialist.select import Selection, select  # noqa: E402
from specialist.select.rules import Rules  # noqa: E402

SEEDS = "1000,1002,1003,1009,1010,1011"
STEPS = 1000

RECIPES = {
    "the better half, 600 wanted": DataRecipe(),
    "all episodes, 600 wanted": DataRecipe(best_episodes=1),
    "all episodes, 20,000 wanted": DataRecipe(best_episodes=1, examples=20_000, per_episode=2000),
}


def played(version: str) -> Run:
    """A few real episodes, in a folder that is left behind for the next time."""
    name = f"few-{version.replace('/', '-')}"
    if not runs.exists(name):
        command = [sys.executable, "-m", "automem.cli", "eval", "crafter", "--model", "scripted"]
        command += ["--scaffold", version, "--seeds", SEEDS, "--steps", str(STEPS), "--run", name, "--workers", "2"]
        subprocess.run(command, check=True, cwd=ROOT)
    return runs.load(name)


def copied(few: Run, steps: int) -> Run:
    """A run of copies of those few episodes, of so many steps together or a little more."""
    name = f"{few.config.name}-{steps}"
    whole = [(e, e.result.steps) for e in RunTrace(few).episodes if e.result is not None]
    plan, total = [], 0
    for episode, length in itertools.cycle(whole):
        if total >= steps:
            break
        plan.append(episode)
        total += length
    print(f"{total} steps: {len(plan)} copies of {len(whole)} episodes")
    if runs.exists(name):
        return runs.load(name)
    tasks = (PlannedTask(task="Crafter", seeds=tuple(range(len(plan))), steps=STEPS),)
    config = few.config.model_copy(update={"name": name, "tasks": tasks})
    run = runs.create(config, {game: scaffold.load(str(few.folder / s.folder)) for game, s in config.scaffolds.items()})
    for seed, episode in enumerate(plan):
        target = run.folder / "episodes" / "Crafter" / f"seed-{seed}"
        shutil.copytree(episode.folder, target, ignore=shutil.ignore_patterns("memory"))
        data = orjson.loads((target / RESULT).read_bytes())
        (target / RESULT).write_bytes(orjson.dumps(data | {"seed": seed}))
    return run


def figures(run: Run, processes: int) -> Iterator[str]:
    """What each recipe takes."""
    for name, recipe in RECIPES.items():
        with tempfile.TemporaryDirectory() as folder:
            before, begun = _cpu(), time.perf_counter()
            made: Selection = asyncio.run(
                select([RunTrace(run)], recipe, Rules(), Path(folder) / "made", (), processes=processes)
            )
            seconds, cpu = time.perf_counter() - begun, _cpu() - before
            size = sum(path.stat().st_size for path in made.folder.iterdir())
        found = made.statistics
        yield (
            f"{name:30} {seconds:6.1f} s ({cpu:.1f} s of CPU; at most 120): {found.accepted} of {found.candidates} "
            f"candidates, {size / 1e6:.1f} MB of decisions"
        )


def _cpu() -> float:
    """Seconds of all processors, for this process and for those that it started and that are over."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scaffold", default="crafter/v0")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    os.environ["AUTOMEM_RUNS"] = str(Path(tempfile.gettempdir()) / "automem-selection-benchmark")
    run = copied(played(arguments.scaffold), arguments.steps)
    for line in figures(run, arguments.processes):
        print(line, flush=True)
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"largest process: {most / 1024:.0f} MB; load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
