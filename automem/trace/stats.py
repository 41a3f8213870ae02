"""What a run or an episode amounts to, finished or not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from automem.episode import EpisodeError, EpisodeResult
from automem.executor import Outcome
from automem.metrics import counts_from, rates
from automem.runs import Run
from automem.summary import summarise
from automem.trace.episode import EpisodeTrace, run_of

WORTH_A_PROCESS = 8 * 2**20
"""Bytes of traces of unfinished episodes for which a process of its own is started."""


@dataclass(frozen=True, slots=True)
class EpisodeStats:
    """An episode's figures.

    Attributes:
        result: as in ``episode.json``; for an episode without one, what its readable steps come to.
        finished: whether there is an ``episode.json``.
        rates: behaviour, as shares and means per step (`automem.metrics.rates`).
        damage: what is wrong with the trace, in words; empty when nothing is known to be. The trace of a
            finished episode is not read for this.
    """

    result: EpisodeResult
    finished: bool
    rates: dict[str, float | None]
    damage: str = ""


@dataclass(frozen=True, slots=True)
class RunStats:
    """A run's figures.

    Attributes:
        run: its name.
        episodes: those that were begun, by task and seed.
        planned: how many episodes the run has.
        summary: what `automem.summary.summarise` says of all that were begun: ``overall``, ``per_game`` and
            ``per_task``, with ``behaviour``. Of a run whose episodes are all finished it is ``summary.json``'s.
    """

    run: str
    episodes: tuple[EpisodeStats, ...]
    planned: int
    summary: dict[str, Any]

    @property
    def unfinished(self) -> int:
        """Episodes that are not finished, begun or not."""
        return self.planned - sum(episode.finished for episode in self.episodes)


def of_episode(episode: EpisodeTrace) -> EpisodeStats:
    """An episode's figures: from its ``episode.json`` if it has one, else from its trace."""
    if episode.result is not None:
        return EpisodeStats(episode.result, True, rates(episode.result.counts))
    played = so_far(episode)
    return EpisodeStats(played, False, rates(played.counts), "" if episode.damage is None else str(episode.damage))


def _readable(episode: EpisodeTrace) -> EpisodeStats:
    try:
        return of_episode(episode)
    except EpisodeError as damaged:
        played = so_far(episode)
        return EpisodeStats(played, False, rates(played.counts), str(damaged))


def so_far(episode: EpisodeTrace) -> EpisodeResult:
    """What the readable steps of a trace come to.

    What the last action led to is not in the trace; so the last step counts as one that changed something.
    """
    tally, last = episode.tally()
    if last is not None:
        tally.add(last, "")
    return EpisodeResult(
        task=episode.task,
        seed=episode.seed,
        steps_limit=_limit(episode),
        steps=tally.steps,
        progression=0.0 if last is None else last.progression,
        achievements={} if last is None else dict(last.achievements),
        reached_at=tally.reached_at,
        episode_return=tally.reward,
        terminated=last is not None and last.terminated,
        truncated=last is not None and last.truncated,
        facts={},
        scaffold="",
        model=tally.model,
        counts=tally.behaviour.counts,
        final_observation="",
    )


def _limit(episode: EpisodeTrace) -> int:
    """Steps at most, as the run planned them; 0 when that is not known."""
    run = run_of(episode.folder)
    return 0 if run is None else next((task.steps for task in run.config.tasks if task.task == episode.task), 0)


def of_run(run: Run, episodes: Sequence[EpisodeTrace]) -> RunStats:
    """A run's figures; an episode whose ``episode.json`` is damaged counts as what its trace comes to."""
    jobs = {job.folder: job for job in run.jobs()}
    unfinished = [episode for episode in episodes if not episode.is_finished]
    known = _in_processes(unfinished) or {}
    found = [known.get(episode.folder) or _readable(episode) for episode in episodes]
    outcomes = [
        Outcome(jobs[episode.folder], one.result, None)
        for episode, one in zip(episodes, found, strict=True)
        if one.result.steps
    ]
    return RunStats(run.config.name, tuple(found), len(jobs), summarise(outcomes))


def _in_processes(episodes: Sequence[EpisodeTrace]) -> dict[Path, EpisodeStats] | None:
    """The figures of unfinished episodes, by folder, from several processes; None where those are not worth it."""
    size = sum(episode.path.stat().st_size for episode in episodes)
    workers = min(os.cpu_count() or 1, len(episodes), size // WORTH_A_PROCESS)
    if workers < 2:
        return None
    command = [sys.executable, "-c", "from automem.trace import stats; stats.answer()"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    started = []
    for worker in range(workers):
        folders = [str(episode.folder.absolute()) for episode in episodes[worker::workers]]
        process = subprocess.Popen([*command, *folders], stdout=subprocess.PIPE, env=environment)
        started.append((process, episodes[worker::workers]))
    found: dict[Path, EpisodeStats] = {}
    try:
        for process, chosen in started:
            said, _ = process.communicate()
            if process.returncode:
                return None
            for episode, (result, damage) in zip(chosen, json.loads(said), strict=True):
                played = EpisodeResult(**{**result, "counts": counts_from(result["counts"])})
                found[episode.folder] = EpisodeStats(played, False, rates(played.counts), damage)
    finally:
        for process, _ in started:
            process.kill()
            process.wait()
    return found


def answer() -> None:
    """Write the figures of the episodes that the arguments name to standard output."""
    found = [of_episode(EpisodeTrace(folder)) for folder in sys.argv[1:]]
    said = [({**asdict(one.result), "counts": one.result.counts.as_dict()}, one.damage) for one in found]
    json.dump(said, sys.stdout)
