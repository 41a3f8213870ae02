"""A short episode with `scripted`, played twice, in a folder that is gone afterwards.

What is read from it is in `automem.check.played`.
"""

from __future__ import annotations

import asyncio
import tempfile
import traceback
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from automem import config, episode
from automem.check.folder import HOOKS
from automem.check.played import Played, failures, findings_in, first_difference, summary
from automem.check.report import Finding, error
from automem.check.templates import finding_of
from automem.episode import EpisodeJob
from automem.errors import UserError
from automem.game_pool import GameFailed, GamePool, RemoteGame
from automem.memory import Memory
from automem.models.scripted.model import Scripted
from automem.prompts import TemplateProblem
from automem.records import Phase, StepRecord, Turn
from automem.sandbox import Sandbox, SandboxConfig, SandboxUnavailable, choose_mode
from automem.scaffold import Scaffold
from games import registry

STEPS = 25
SEED = 900_001
"""Far from the seeds that results are made with."""

SECONDS = 90.0
"""Both episodes together; they take one or two."""

_LOSSES = 2
"""How often hooks may be lost: each may cost the time of a whole call, and one says as much as ten."""

_TASKS = {"minihack": "MiniHack-Corridor-R3-v0"}
"""Where the first task of a game is not the one to play: Boxoban's levels may not be there."""

_Both = tuple[Played, Played | None]

_PLAYED_BY_SCRIPTED = ("crafter", "minihack", "nethack")


@dataclass
class Smoke:
    """What came of it.

    Attributes:
        findings: what is wrong with what happened.
        figures: what happened, in numbers.
        skipped: why it was not played, or not judged; empty when it was.
        traceback: of the exception that ended it and should not be; empty when there was none.
    """

    findings: list[Finding] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    skipped: str = ""
    traceback: str = ""


def play(loaded: Scaffold, unsafe: bool = False) -> Smoke:
    """Play the episodes. Never raises for what the scaffold does, nor for what cannot be played on this machine.

    Args:
        loaded: the scaffold.
        unsafe: run its hooks even where nothing can contain them.

    Raises:
        UserError: the configuration is wrong, or the disk is full.
    """
    task = task_of(loaded.game)
    if task is None:
        return Smoke(skipped=f"smoke episode: no task here belongs to {loaded.game}")
    given = config.load().sandbox
    limits = given.model_copy(update={"unsafe": given.unsafe or unsafe, "losses": min(given.losses, _LOSSES)})
    try:
        if loaded.hooks is not None:
            choose_mode(limits)
        with tempfile.TemporaryDirectory(prefix="automem-check-") as scratch:
            first, second = _run(_twice(loaded, task, limits, Path(scratch)))
    except (SandboxUnavailable, GameFailed) as cannot:
        return Smoke(skipped=f"smoke episode: {cannot}")
    except TimeoutError:
        message = f"the smoke episode was not over after {SECONDS:g} s"
        do = "make hooks and templates faster: a call takes milliseconds"
        return Smoke([error("", None, "smoke-slow", message, do)])
    except TemplateProblem as problem:
        return Smoke([finding_of(problem, "system.j2")])
    except UserError:
        raise  # no scaffold's doing: a full disk, a folder that cannot be written
    except Exception as defect:  # whatever a scaffold holds, its check goes on: one of thousands must not end a search
        message = f"the smoke episode ended with {type(defect).__name__}: {defect}"
        do = "no scaffold should be able to do that: please report it as a defect of AutoMem"
        return Smoke([error("", None, "smoke-crash", message, do)], traceback=traceback.format_exc())
    return _judged(loaded, first, second)


def task_of(game: str) -> str | None:
    """The task that is played for a game; None when there is none."""
    return _TASKS.get(game) or next((task for task in registry.tasks() if registry.game_of(task) == game), None)


def _judged(loaded: Scaffold, first: Played, second: Played | None) -> Smoke:
    figures = summary(first)
    if loaded.game not in _PLAYED_BY_SCRIPTED and figures["fallbacks"] == figures["steps"]:
        return Smoke(figures=figures, skipped=f"smoke episode: scripted cannot play {loaded.game}")
    findings = list(findings_in(first, loaded))
    difference = None if second is None else first_difference(first, second)
    if difference is not None:
        file = HOOKS if loaded.hooks is not None else ""
        message = f"the same episode, played a second time, went differently: {difference}"
        do = "let answers depend on arguments and state only: no identity of objects, no hash, no order of sets"
        findings.append(error(file, None, "not-repeatable", message, do))
    return Smoke(findings, figures)


def _run(episodes: Coroutine[Any, Any, _Both]) -> _Both:
    """Run to the end, also where the caller has an event loop at work."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(episodes)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, episodes).result()


async def _twice(loaded: Scaffold, task: str, limits: SandboxConfig, scratch: Path) -> _Both:
    """The second episode has a fresh sandbox; there is none when hooks failed in the first: they may fail in time."""
    pool = GamePool(1)
    try:
        async with asyncio.timeout(SECONDS):
            first = await _once(loaded, task, limits, scratch / "1", pool)
            if failures(first):
                return first, None
            return first, await _once(loaded, task, limits, scratch / "2", pool)
    finally:
        pool.close()


async def _once(loaded: Scaffold, task: str, limits: SandboxConfig, folder: Path, pool: GamePool) -> Played:
    watch = _Watch()
    sandbox = Sandbox(limits)
    try:
        job = EpisodeJob(folder, task, SEED, STEPS, loaded.folder)
        await episode.play(job, loaded, Scripted(), pool, watch, sandbox)
    finally:
        await sandbox.close()
    return Played(tuple(watch.records), tuple(watch.memories), watch.actions)


class _Watch:
    """Keeps what happened at each step, and memory as it then was."""

    def __init__(self) -> None:
        self.records: list[StepRecord] = []
        self.memories: list[Mapping[str, str]] = []
        self.actions: frozenset[str] = frozenset()

    def turn(self, phase: Phase, turn: Turn) -> None:
        """See `automem.agent.Listener`; turns are in the records."""

    async def stepped(self, job: EpisodeJob, game: RemoteGame, memory: Memory, record: StepRecord) -> None:
        """See `automem.episode.EpisodeListener`."""
        self.records.append(record)
        self.memories.append(memory.snapshot())
        self.actions = frozenset(game.actions)
