"""What versions came to on the seeds of a loop, over all replicates."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from automem import runs
from automem.episode import EpisodeResult, load_result
from automem.runs import Run
from automem.statistics import Estimate, combined, estimate, mean
from meta.arena import Purpose
from meta.storage import COPIED, LoopFolder


@dataclass(frozen=True)
class Played:
    """The finished episodes of a version.

    Attributes:
        tasks: that are played.
        runs: those that hold them, one for each replicate.
        results: all of them.
        cost: USD that they took here, as far as prices are known.
    """

    tasks: tuple[str, ...]
    runs: tuple[Run, ...]
    results: tuple[EpisodeResult, ...]
    cost: float

    @cached_property
    def by_task(self) -> Mapping[str, Mapping[int, float]]:
        """Task -> seed -> progression in [0, 1], the mean over replicates."""
        found: dict[str, dict[int, list[float]]] = {task: {} for task in self.tasks}
        for result in self.results:
            found[result.task].setdefault(result.seed, []).append(result.progression)
        return {task: {seed: mean(values) for seed, values in seeds.items()} for task, seeds in found.items()}

    @cached_property
    def seeds(self) -> frozenset[int]:
        """Seeds of which every task was finished."""
        return frozenset.intersection(*(frozenset(seeds) for seeds in self.by_task.values()))

    def progression(self, seeds: Collection[int]) -> Estimate:
        """Mean over tasks and these seeds, with its 95 % interval cut to [0, 1]; at least one seed."""
        found = combined([estimate([of_task[seed] for seed in sorted(seeds)]) for of_task in self.by_task.values()])
        span = found.interval
        return Estimate(found.mean, found.error, None if span is None else (max(0.0, span[0]), min(1.0, span[1])))

    def minus(self, other: Played) -> tuple[Estimate, int]:
        """Mean of the paired differences over all seeds that both played, with its 95 % interval; how many seeds.

        Raises ValueError when there are none.
        """
        seeds = sorted(self.seeds & other.seeds)
        if not seeds:
            raise ValueError("no seed was played by both")
        parts = [
            estimate([mine[seed] - theirs[seed] for seed in seeds])
            for mine, theirs in ((self.by_task[task], other.by_task[task]) for task in self.tasks)
        ]
        return combined(parts), len(seeds)


def played(loop: LoopFolder, identity: str, purpose: Purpose) -> Played | None:
    """What a version came to; None when no episode of it is finished. Raises `UserError` for what is damaged."""
    found: list[Run] = []
    results: list[EpisodeResult] = []
    cost = 0.0
    for replicate in range(loop.config.replicates):
        folder = loop.evaluation(identity) / (purpose if not replicate else f"{purpose}-{replicate + 1}")
        if not (folder / runs.RUN).is_file():
            continue
        run = runs.load(str(folder))
        found.append(run)
        for job in run.jobs():
            result = load_result(job.folder)
            if result is not None:
                results.append(result)
                cost += 0.0 if (job.folder / COPIED).exists() else result.counts.cost
    tasks = tuple(planned.task for planned in loop.config.tasks)
    return Played(tasks, tuple(found), tuple(results), cost) if results else None
