"""Where versions are played: every episode once, all callers within one concurrency budget.

The episodes of a version lie in runs of their own in the loop's folder, so that everything that asks about
runs (traces, reports, comparisons) works on them. What is there already is not played again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import games
from automem import runs
from automem.episode import EpisodeJob, EpisodeResult, load_result, write_json
from automem.errors import UserError
from automem.executor import LocalExecutor, Outcome
from automem.runs import PlannedTask, PlayedScaffold, Run, RunConfig
from automem.scaffold import Scaffold
from automem.statistics import mean
from automem.summary import summarise
from meta.episode_cache import EpisodeCache
from meta.storage import LoopFolder

Purpose = Literal["gate", "held-out"]


class CandidateFailed(Exception):
    """A version cannot be played, by its own fault; the text says why."""


@dataclass(frozen=True, slots=True)
class Played:
    """Episodes of one version.

    Attributes:
        progression: seed -> mean over tasks and replicates, in [0, 1].
        results: all episodes.
    """

    progression: Mapping[int, float]
    results: tuple[EpisodeResult, ...]


class Arena:
    """Plays versions on seeds of the loop."""

    def __init__(self, loop: LoopFolder, executor: LocalExecutor, cache: EpisodeCache | None = None) -> None:
        """
        Args:
            loop: the loop; its folder gets the episodes.
            executor: plays; its concurrency is the budget of all callers together.
            cache: finished episodes of other loops and runs, which are taken instead of playing again.
        """
        self._loop = loop
        self._executor = executor
        self._cache = cache
        self._playing: dict[Path, asyncio.Task[Outcome]] = {}

    async def play(self, version: Scaffold, seeds: Sequence[int], purpose: Purpose = "gate") -> Played:
        """Play a version on seeds, or find that it was.

        Raises:
            CandidateFailed: an episode failed by the scaffold's fault, or the game's process died of it.
            UserError: no scaffold's doing: the model cannot be reached, the disk is full.
        """
        wanted = set(seeds)
        jobs = [job for run in self._runs(version, purpose) for job in run.jobs() if job.seed in wanted]
        outcomes = await asyncio.gather(*(self._once(job) for job in jobs))
        results = []
        for outcome in outcomes:
            if outcome.result is None:
                raise _raised(outcome, version)
            if outcome.result.scaffold != version.identity:
                raise UserError(
                    f"{outcome.job.folder}: played scaffold {outcome.result.scaffold[:12]} instead of "
                    f"{version.identity[:12]}; remove the episode and resume the loop"
                )
            results.append(outcome.result)
        by_seed = {seed: [r.progression for r in results if r.seed == seed] for seed in seeds}
        return Played({seed: mean(values) for seed, values in by_seed.items()}, tuple(results))

    def run(self, version: Scaffold, purpose: Purpose = "gate", replicate: int = 0) -> Run:
        """The run that holds the version's episodes; made when it is not there yet.

        Raises `UserError` when it holds another scaffold.
        """
        folder = self._loop.evaluation(version.identity) / (purpose if not replicate else f"{purpose}-{replicate + 1}")
        if (folder / runs.RUN).is_file():
            found = runs.load(str(folder))
            if found.config.scaffolds[version.game].identity != version.identity:
                raise UserError(f"{folder}: holds episodes of another scaffold; remove the folder and resume the loop")
            return found
        return runs.create(self._config(version, purpose, folder), {version.game: version}, folder)

    def summarise(self, version: Scaffold, purpose: Purpose = "gate") -> None:
        """Write ``summary.json`` of what was played, for people and reports."""
        for run in self._runs(version, purpose):
            finished = [outcome for job in run.jobs() if (outcome := _found(job)) is not None]
            summary = {"run": run.config.name, "model": run.config.model.name, **summarise(finished)}
            write_json(run.folder / runs.SUMMARY, summary)

    async def close(self) -> None:
        """Stop what is being played."""
        for task in self._playing.values():
            task.cancel()
        await asyncio.gather(*self._playing.values(), return_exceptions=True)
        await self._executor.close()

    def _runs(self, version: Scaffold, purpose: Purpose) -> list[Run]:
        return [self.run(version, purpose, replicate) for replicate in range(self._loop.config.replicates)]

    def _config(self, version: Scaffold, purpose: Purpose, folder: Path) -> RunConfig:
        config = self._loop.config
        seeds = config.gate_seeds if purpose == "gate" else config.held_out
        tasks = tuple(
            PlannedTask(task=t.task, seeds=seeds, steps=t.steps, facts=games.facts(t.task)) for t in config.tasks
        )
        return RunConfig(
            name=folder.relative_to(self._loop.folder.parent).as_posix(),
            target=config.game,
            created=runs.now(),
            model=config.model,
            scaffolds={
                version.game: PlayedScaffold(
                    ref=version.ref, identity=version.identity, folder=f"scaffolds/{version.ref}"
                )
            },
            tasks=tasks,
            versions=runs.versions(task.task for task in tasks),
            sandbox=config.sandbox,
        )

    async def _once(self, job: EpisodeJob) -> Outcome:
        """Play a job that two callers may want at the same time."""
        task = self._playing.get(job.folder)
        if task is None:
            task = self._playing[job.folder] = asyncio.create_task(self._play(job))
            task.add_done_callback(lambda _: self._playing.pop(job.folder, None))
        return await asyncio.shield(task)

    async def _play(self, job: EpisodeJob) -> Outcome:
        if self._cache is not None:
            await asyncio.to_thread(self._cache.fetch, job)
        return await self._executor.play(job)


def _found(job: EpisodeJob) -> Outcome | None:
    result = load_result(job.folder)
    return None if result is None else Outcome(job, result, None)


def _raised(outcome: Outcome, version: Scaffold) -> Exception:
    told = f"{outcome.job.task}, seed {outcome.job.seed}: {outcome.error}"
    if outcome.fault in ("scaffold", "game"):
        return CandidateFailed(told)
    return UserError(f"{version.ref}: {told}")
