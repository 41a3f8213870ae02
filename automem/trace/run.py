"""All episodes of a run, asked through their traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import games
from automem import runs
from automem.episode import STEPS
from automem.errors import UserError
from automem.runs import Run
from automem.trace import search as searching
from automem.trace import stats
from automem.trace.episode import EpisodeTrace
from automem.trace.search import EVERYWHERE, Found


class RunTrace:
    """A run on disk, finished or not.

    Attributes:
        run: the run and its configuration.
        episodes: those that were begun, by task and seed. Each is `EpisodeTrace`.
    """

    def __init__(self, run: Run | str | Path) -> None:
        """Args: run: its name, or its folder. Raises `UserError` when there is none."""
        self.run = run if isinstance(run, Run) else runs.load(str(run))
        jobs = sorted(self.run.jobs(), key=lambda job: (job.task, job.seed))
        self.episodes = tuple(EpisodeTrace(job.folder) for job in jobs if (job.folder / STEPS).is_file())

    def select(self, task: str | None = None, seed: int | None = None) -> tuple[EpisodeTrace, ...]:
        """The episodes of this task and this seed; of all of them where one is not given.

        Raises `UserError` that lists the episodes when there is none like that.
        """
        wanted = None if task is None else games.canonical(task)
        found = tuple(e for e in self.episodes if wanted in (None, e.task) and seed in (None, e.seed))
        if not found:
            asked = [*([f"task {wanted}"] if wanted else []), *([f"seed {seed}"] if seed is not None else [])]
            of = f" of {' and '.join(asked)}" if asked else ""
            raise UserError(f"run {self.run.config.name} has no episode{of}. {self._list()}")
        return found

    def episode(self, task: str | None = None, seed: int | None = None) -> EpisodeTrace:
        """The episode of this task and seed. Raises `UserError` that lists them when it is not one."""
        found = self.select(task, seed)
        if len(found) > 1:
            raise UserError(
                f"run {self.run.config.name} has {len(found)} such episodes; choose one with a task and a seed "
                f"(--task, --seed). {self._list(found)}"
            )
        return found[0]

    def stats(self) -> stats.RunStats:
        """Figures of every episode, of every task, and of the whole run."""
        return stats.of_run(self.run, self.episodes)

    def search(self, pattern: str, *, regex: bool = False, where: Sequence[str] = EVERYWHERE, limit: int = 50) -> Found:
        """Search all episodes, one after the other (`automem.trace.search.search`)."""
        return searching.search(self.episodes, pattern, regex=regex, where=where, limit=limit)

    def _list(self, episodes: Sequence[EpisodeTrace] | None = None) -> str:
        """In words, which episodes there are."""
        seeds: dict[str, list[int]] = {}
        for episode in self.episodes if episodes is None else episodes:
            seeds.setdefault(episode.task, []).append(episode.seed)
        if not seeds:
            return "None of its episodes was begun"
        listed = "; ".join(f"{task}: {', '.join(map(str, found))}" for task, found in list(seeds.items())[:20])
        return f"There are {listed}{'; and more' if len(seeds) > 20 else ''}"
