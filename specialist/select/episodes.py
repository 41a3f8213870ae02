"""Which episodes are good enough to learn from: of each task those of the highest return."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from automem import runs
from automem.episode import EpisodeResult
from automem.errors import UserError
from automem.runs import Run
from automem.trace.episode import EpisodeTrace
from automem.trace.run import RunTrace

UNFINISHED, DAMAGED, NOT_BEST = "episode not finished", "episode's trace is damaged", "episode not among the best"


@dataclass(frozen=True, slots=True)
class Considered:
    """An episode of the runs that are selected from.

    Attributes:
        run: the run's name, as `specialist.candidate.Place` has it.
        trace: the episode; not asked anything here.
        result: None while it is not finished.
        refusal: why none of its candidates is taken; empty when they are judged.
    """

    run: str
    trace: EpisodeTrace
    result: EpisodeResult | None
    refusal: str

    @property
    def key(self) -> tuple[str, str, int]:
        """Run, task and seed."""
        return self.run, self.trace.task, self.trace.seed


def name_of(run: Run) -> str:
    """The name by which `automem.runs.load` finds a run again: its path in the folder of runs, else its own path."""
    folder, kept = run.folder.resolve(), runs.runs_folder().resolve()
    return folder.relative_to(kept).as_posix() if folder.is_relative_to(kept) else str(folder)


def consider(traces: Sequence[RunTrace], share: float, forbidden: Collection[int]) -> list[Considered]:
    """All episodes of the runs, by run, task and seed.

    Args:
        traces: the runs.
        share: of each task's finished episodes, those of the highest return, rounded up; in (0, 1].
        forbidden: seeds from which nothing may be learned.

    Raises `UserError` when a run plays such a seed, or is named twice.
    """
    for trace in traces:
        _check(trace.run, forbidden)
    named = [(name_of(trace.run), trace) for trace in traces]
    if len({name for name, _ in named}) < len(named):
        raise UserError(f"a run is named twice: {', '.join(name for name, _ in named)}; name each of them once")
    found = sorted(
        ((name, episode, episode.result) for name, trace in named for episode in trace.episodes),
        key=lambda one: (one[0], one[1].task, one[1].seed),
    )
    for name, episode, result in found:
        if result is not None and (result.task, result.seed) != (episode.task, episode.seed):
            raise UserError(
                f"{name}: {episode.folder} holds the result of {result.task}, seed {result.seed}; remove that episode"
            )
    best = _best(found, share)
    return [Considered(*one, refusal=_refusal(one, best)) for one in found]


_Found = tuple[str, EpisodeTrace, EpisodeResult | None]


def _check(run: Run, forbidden: Collection[int]) -> None:
    planned = {seed for task in run.config.tasks for seed in task.seeds}
    wrong = sorted(planned & set(forbidden))
    if wrong:
        listed = ", ".join(map(str, wrong[:8])) + (", ..." if len(wrong) > 8 else "")
        raise UserError(
            f"run {run.config.name} plays seeds that are kept for evaluation ({listed}); nothing may be learned from "
            "them. Select from runs on training seeds"
        )


def _best(found: Sequence[_Found], share: float) -> set[Path]:
    """Folders of the episodes from which candidates are taken."""
    by_task: dict[str, list[tuple[EpisodeResult, str, Path]]] = {}
    for name, episode, result in found:
        if result is not None:
            by_task.setdefault(episode.task, []).append((result, name, episode.folder))
    kept = set()
    for episodes in by_task.values():
        episodes.sort(key=lambda one: (-one[0].episode_return, -one[0].progression, one[1], one[0].seed))
        # A share such as 0.1 of 30 is 3.0000000000000004 in binary, and means three.
        kept |= {folder for *_, folder in episodes[: math.ceil(share * len(episodes) - 1e-9)]}
    return kept


def _refusal(one: _Found, best: Collection[Path]) -> str:
    _, episode, result = one
    if result is None:
        return UNFINISHED
    if episode.folder not in best:
        return NOT_BEST
    # Another object, so that what is known of a hundred traces is not kept.
    return DAMAGED if EpisodeTrace(episode.folder).damage is not None else ""
