"""Where episodes are played: many at once on this machine, behind an interface small enough for a cluster.

An executor takes jobs and yields outcomes as they come. A job names everything by path and
value, so that another executor (Ray, say) can send it to another machine and call
`automem.episode.play` there; neither games nor agent know the difference.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from automem import episode
from automem.episode import EpisodeError, EpisodeJob, EpisodeListener, EpisodeResult
from automem.game_pool import GameFailed, GamePool
from automem.models.protocol import Model, ModelError
from automem.prompts import TemplateProblem
from automem.sandbox import Sandbox, SandboxConfig
from automem.scaffold import Scaffold


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: with a result, or with the reason why the episode is not finished."""

    job: EpisodeJob
    result: EpisodeResult | None
    error: str | None


class Executor(Protocol):
    """Plays episodes somewhere."""

    def run(self, jobs: Iterable[EpisodeJob]) -> AsyncGenerator[Outcome, None]:
        """Play all jobs and yield each outcome when it is there, in any order.

        An episode that cannot go on is an outcome with an error. What makes the whole run
        pointless (a full disk) is raised.
        """
        ...


class LocalExecutor:
    """Many episodes on one event loop, their games in a few processes beside it."""

    def __init__(
        self,
        model: Model,
        load: Callable[[Path], Scaffold],
        concurrency: int,
        processes: int,
        listener: EpisodeListener | None = None,
        sandbox: SandboxConfig | None = None,
    ) -> None:
        """
        Args:
            model: answers all episodes.
            load: folder -> scaffold; called once a job.
            concurrency: episodes at once.
            processes: game processes.
            listener: watches all episodes.
            sandbox: limits of scaffold code; nothing is started for scaffolds without any.
        """
        self._model = model
        self._load = load
        self._concurrency = concurrency
        self._processes = processes
        self._listener = listener
        self._sandbox = Sandbox(sandbox or SandboxConfig())

    async def run(self, jobs: Iterable[EpisodeJob]) -> AsyncGenerator[Outcome, None]:
        """See `Executor.run`."""
        pool = GamePool(self._processes)
        waiting = iter(jobs)
        playing: set[asyncio.Task[Outcome]] = set()
        try:
            while True:
                while len(playing) < self._concurrency and (job := next(waiting, None)) is not None:
                    playing.add(asyncio.create_task(self._play(job, pool)))
                if not playing:
                    return
                done, _ = await asyncio.wait(playing, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    outcome = task.result()
                    playing.discard(task)
                    yield outcome
        finally:
            for task in playing:
                task.cancel()
            await asyncio.gather(*playing, return_exceptions=True)
            pool.close()
            await self._sandbox.close()

    async def _play(self, job: EpisodeJob, pool: GamePool) -> Outcome:
        try:
            result = await episode.play(job, self._load(job.scaffold), self._model, pool, self._listener, self._sandbox)
        except (ModelError, GameFailed, TemplateProblem, EpisodeError) as error:
            return Outcome(job, None, str(error))
        return Outcome(job, result, None)
