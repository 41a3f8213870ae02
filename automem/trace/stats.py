"""What a run or an episode amounts to, finished or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from automem.episode import EpisodeResult
from automem.executor import Outcome
from automem.metrics import Behaviour, Counts, rates
from automem.runs import Run
from automem.summary import summarise
from automem.trace.episode import EpisodeTrace


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


def of_episode(episode: EpisodeTrace, steps_limit: int = 0) -> EpisodeStats:
    """An episode's figures: from its ``episode.json`` if it has one, else from its trace."""
    if episode.result is not None:
        return EpisodeStats(episode.result, True, rates(episode.result.counts))
    played = so_far(episode, steps_limit)
    return EpisodeStats(played, False, rates(played.counts), "" if episode.damage is None else str(episode.damage))


def so_far(episode: EpisodeTrace, steps_limit: int = 0) -> EpisodeResult:
    """What the readable steps of a trace come to.

    What the last action led to is not in the trace; so the last step counts as one that changed something.
    """
    behaviour, reward = Behaviour(), 0.0
    reached: dict[str, int] = {}
    before = None
    model = ""
    for record in episode.steps() if len(episode) else ():
        if before is not None:
            behaviour.add(before, record.observation)
        before = record
        reward += record.reward
        for name, count in record.achievements.items():
            if count:
                reached.setdefault(name, record.step)
        if not model:
            model = next((turn.model for turn in (*record.log, *record.plan)), "")
    if before is not None:
        behaviour.add(before, "")
    return EpisodeResult(
        task=episode.task,
        seed=episode.seed,
        steps_limit=steps_limit,
        steps=behaviour.counts.steps,
        progression=0.0 if before is None else before.progression,
        achievements={} if before is None else dict(before.achievements),
        reached_at=reached,
        episode_return=reward,
        terminated=before is not None and before.terminated,
        truncated=before is not None and before.truncated,
        facts={},
        scaffold="",
        model=model,
        counts=behaviour.counts,
        final_observation="",
    )


def of_run(run: Run, episodes: Sequence[EpisodeTrace]) -> RunStats:
    """A run's figures. Raises `UserError` when an ``episode.json`` is damaged."""
    jobs = {job.folder: job for job in run.jobs()}
    found = [of_episode(episode, jobs[episode.folder].steps) for episode in episodes]
    outcomes = [
        Outcome(jobs[episode.folder], one.result, None)
        for episode, one in zip(episodes, found, strict=True)
        if one.result.steps
    ]
    return RunStats(run.config.name, tuple(found), len(jobs), summarise(outcomes))


def total(episodes: Sequence[EpisodeStats]) -> Counts:
    """The counts of several episodes together."""
    return reduce(Counts.merged, (episode.result.counts for episode in episodes), Counts())
