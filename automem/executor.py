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
from typing import Literal, Protocol

from automem import episode
from automem.agent import Specialist
from automem.agents.protocol import AgentFailed
from automem.episode import EpisodeError, EpisodeJob, EpisodeListener, EpisodeResult
from automem.game_pool import GameFailed, GamePool
from automem.models.protocol import ContextTooLong, Model, ModelError
from automem.prompts import TemplateProblem
from automem.sandbox import Sandbox, SandboxConfig
from automem.scaffold import Scaffold

Fault = Literal["", "model", "game", "scaffold", "agent", "files"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: with a result, or with the reason why the episode is not finished.

    Attributes:
        job: what was to be played.
        result: None when the episode is not finished.
        error: why not, for people; None when it is.
        fault: where the error lies: "model" (it gave no reply), "game", "scaffold" (its prompts fail or do not fit
            the model), "agent" (its code fails), "files" (what is stored cannot be gone on with); empty when there is
            none.
    """

    job: EpisodeJob
    result: EpisodeResult | None
    error: str | None
    fault: Fault = ""


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
        specialist: Specialist | None = None,
    ) -> None:
        """
        Args:
            model: answers all episodes.
            load: folder -> scaffold; called once a job.
            concurrency: episodes at once.
            processes: game processes.
            listener: watches all episodes.
            sandbox: limits of scaffold code; nothing is started for scaffolds without any.
            specialist: does the memory work of all episodes; None leaves it to the model.
        """
        self._model = model
        self._specialist = specialist
        self._load = load
        self._concurrency = concurrency
        self._processes = processes
        self._listener = listener
        self._sandbox = Sandbox(sandbox or SandboxConfig())
        self._places = asyncio.Semaphore(concurrency)
        self._pool: GamePool | None = None

    async def run(self, jobs: Iterable[EpisodeJob]) -> AsyncGenerator[Outcome, None]:
        """See `Executor.run`. The executor is closed when this ends."""
        waiting = iter(jobs)
        playing: set[asyncio.Task[Outcome]] = set()
        try:
            while True:
                while len(playing) < self._concurrency and (job := next(waiting, None)) is not None:
                    playing.add(asyncio.create_task(self.play(job)))
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
            await self.close()

    async def play(self, job: EpisodeJob) -> Outcome:
        """Play one job when there is room for it: all calls share the places of this executor."""
        async with self._places:
            return await self._play(job, self._open())

    async def close(self) -> None:
        """End the game processes and those of scaffold code. Safe to call twice."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None
        await self._sandbox.close()

    def _open(self) -> GamePool:
        if self._pool is None:
            self._pool = GamePool(self._processes)
        return self._pool

    async def _play(self, job: EpisodeJob, pool: GamePool) -> Outcome:
        try:
            scaffold = None if job.scaffold is None else self._load(job.scaffold)
            result = await episode.play(
                job, scaffold, self._model, pool, self._listener, self._sandbox, self._specialist
            )
        except (ModelError, GameFailed, TemplateProblem, AgentFailed, EpisodeError) as error:
            return Outcome(job, None, str(error), _fault(error))
        return Outcome(job, result, None)


def _fault(error: Exception) -> Fault:
    if isinstance(error, ContextTooLong | TemplateProblem):
        return "scaffold"
    if isinstance(error, ModelError):
        return "model"
    if isinstance(error, AgentFailed):
        return "agent"
    return "game" if isinstance(error, GameFailed) else "files"
