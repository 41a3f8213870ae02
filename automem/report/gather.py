"""Reading all that a report shows: every episode of the runs, packed in processes of their own.

Playing an episode again is C code that can die; in a process of its own it takes the pictures of that
episode with it, and nothing else.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from typing import Any

from automem.episode import STEPS, EpisodeJob, load_result
from automem.errors import UserError
from automem.report import figures
from automem.report.episode import Answer, Asked, attempt
from automem.report.figures import Episode
from automem.runs import Run
from automem.trace import EpisodeTrace

Advance = Callable[[str], None]
"""Told in words of each episode that is ready."""


@dataclass(frozen=True, slots=True)
class Missing:
    """An episode of which there is nothing to show: number of its run, task, seed, and why."""

    run: int
    task: str
    seed: int
    why: str


@dataclass(frozen=True, slots=True)
class Gathered:
    """All that a report shows.

    Attributes:
        runs: in the order asked for.
        episodes: those that were begun, run by run, by task and seed.
        missing: the others.
        summaries: `automem.report.figures.summary` of each run.
    """

    runs: tuple[Run, ...]
    episodes: tuple[Episode, ...]
    missing: tuple[Missing, ...]
    summaries: tuple[dict[str, Any], ...]

    @property
    def names(self) -> list[str]:
        """Names of the runs."""
        return [run.config.name for run in self.runs]


def gather(
    runs: Sequence[Run],
    *,
    pictures: bool = True,
    replays: int | None = None,
    workers: int = 0,
    told: Advance | None = None,
) -> Gathered:
    """Read everything.

    Args:
        runs: what to report on.
        pictures: whether the games are played again.
        replays: episodes of each run that can be watched, at most; all when not given.
        workers: processes; 0: as many as there are processors.
        told: called as episodes get ready.

    Raises `UserError` when none of the runs has a step to show.
    """
    found: list[Episode] = []
    missing: list[Missing] = []
    bare: list[Episode] = []
    asked: list[Asked] = []
    for number, run in enumerate(runs):
        why = run.failures()
        shown = 0
        for job in sorted(run.jobs(), key=lambda job: (job.task, job.seed)):
            reason = why.get((job.task, job.seed), "")
            told_why = [reason] if reason else []
            if not (job.folder / STEPS).is_file():
                lost = _without_trace(number, job, told_why)
                if isinstance(lost, Episode):
                    bare.append(lost)
                else:
                    missing.append(lost)
                continue
            try:
                result, finished, trouble = figures.result_of(EpisodeTrace(job.folder))
            except UserError as error:
                missing.append(Missing(number, job.task, job.seed, str(error)))
                continue
            found.append(Episode(number, result, finished, (*([] if finished else told_why), *trouble), None))
            wanted = replays is None or shown < replays
            asked.append(
                Asked(job.folder, run.config.name, job.task, job.seed, job.steps, pictures=pictures, replay=wanted)
            )
            shown += 1
    if not any(episode.result.steps for episode in (*found, *bare)):
        names = ", ".join(run.config.name for run in runs)
        raise UserError(
            f"{names}: no step was played yet, so there is nothing to report; play, or resume, the run first"
        )
    packed = _packed(asked, workers or os.cpu_count() or 1, told)
    read = [
        replace(episode, packed=one, trouble=tuple(dict.fromkeys((*episode.trouble, *notes))))
        for episode, (one, notes) in zip(found, packed, strict=True)
    ]
    episodes = tuple(sorted((*read, *bare), key=lambda e: (e.run, e.result.task, e.result.seed)))
    summaries = tuple(figures.summary(run, [e for e in episodes if e.run == number]) for number, run in enumerate(runs))
    return Gathered(tuple(runs), episodes, tuple(missing), summaries)


def _without_trace(run: int, job: EpisodeJob, why: list[str]) -> Episode | Missing:
    """An episode whose steps are not there: its result may be."""
    try:
        result = load_result(job.folder)
    except UserError as error:
        return Missing(run, job.task, job.seed, str(error))
    if result is None:
        return Missing(run, job.task, job.seed, "; ".join(why) or "not begun")
    return Episode(run, result, True, (f"its trace is gone: there is no {job.folder / STEPS}",), None)


def _packed(asked: Sequence[Asked], workers: int, told: Advance | None) -> list[Answer]:
    """Every episode packed; where a process dies, its episodes are packed one by one, then without pictures."""
    if workers == 1 and not any(one.pictures for one in asked):
        return [attempt(one) for one in asked]  # no game is played, so nothing can die
    answers: list[Answer | None] = [None] * len(asked)
    with _pool(min(workers, len(asked))) as pool:
        futures = [pool.submit(attempt, one) for one in asked]
        for number, future in enumerate(futures):
            answers[number] = _answer(future)
            if told is not None and answers[number] is not None:
                told(_name(asked[number]))
    for number, one in enumerate(asked):
        if answers[number] is not None:
            continue
        for again in (one, replace(one, pictures=False)):
            with _pool(1) as pool:
                answer = _answer(pool.submit(attempt, again))
            if answer is not None:
                lost = (
                    () if again.pictures == one.pictures else ("No pictures: the game died when it was played again.",)
                )
                answers[number] = (answer[0], (*answer[1], *lost))
                break
        else:
            answers[number] = (None, ("could not be read: the process that read it died",))
        if told is not None:
            told(_name(one))
    return [answer for answer in answers if answer is not None]


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(max(1, workers), multiprocessing.get_context("spawn"), _die_with_the_reader)


def _die_with_the_reader() -> None:
    """Ctrl-C ends all processes of the terminal; those that read episodes have nothing to say about it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _answer(future: Future[Answer]) -> Answer | None:
    """None when the process died."""
    try:
        return future.result()
    except BrokenProcessPool:
        return None


def _name(asked: Asked) -> str:
    return f"{asked.run}: {asked.task}, seed {asked.seed}"
