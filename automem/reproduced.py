"""Whether one run came out as another did: episode against episode, step by step, then what they came to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from automem import differing, suspects
from automem.differing import Difference
from automem.episode import MEMORY, RESULT, STEPS, EpisodeError, EpisodeJob, EpisodeResult, load_result
from automem.errors import UserError
from automem.records import StepRecord
from automem.runs import Run
from automem.trace import Damage
from automem.trace.diff import between
from automem.trace.frames import Frames, parsed

Status = Literal["same", "differs", "incomplete"]
Episode = tuple[str, int]
"""Task and seed."""

NOT_COMPARED = frozenset({"task", "seed", "scaffold", "model", "specialist", "agent", "counts"})
"""Of ``episode.json``: what was asked for, which is told once for the run. Counts are compared one by one."""

CONSUMED = frozenset({"prompt_tokens", "completion_tokens", "cached_tokens", "cost", "model_seconds"})
"""Counts that say what a play took, not what was played."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Something that an episode came to, and that differs.

    Attributes:
        name: ``progression``, ``counts.writes``, ``memory/goals.txt``.
        then, now: its value; of a memory file, how it differs is `now`, and `then` is empty.
    """

    name: str
    then: Any
    now: Any


@dataclass(frozen=True, slots=True)
class EpisodeVerdict:
    """An episode of the first run against the same one of the second.

    Attributes:
        task, seed: which.
        status: "incomplete" when nothing differs as far as both go, but one of them is not finished or not whole.
        steps: how many steps are the same, from the first on.
        difference: the first one; None when no step differs.
        why: what may have made it, in sentences.
        figures: what the two came to differently, when both are finished.
        progression: of the first and of the second; None when not finished.
        notes: what keeps them from being compared to the end.
    """

    task: str
    seed: int
    status: Status
    steps: int
    difference: Difference | None
    why: tuple[str, ...]
    figures: tuple[Figure, ...]
    progression: tuple[float | None, float | None]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A run against another one.

    Attributes:
        then, now: how the runs are named for commands.
        versions: packages whose versions differ, in words.
        settings: what else they were asked to do differently, in words.
        episodes: by task and seed.
        left_out: why further episodes were not compared, in words.
    """

    then: str
    now: str
    versions: tuple[str, ...]
    settings: tuple[str, ...]
    episodes: tuple[EpisodeVerdict, ...]
    left_out: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Every episode came out the same, to its end."""
        return bool(self.episodes) and all(episode.status == "same" for episode in self.episodes)

    def count(self, status: Status) -> int:
        """Episodes of this status."""
        return sum(episode.status == status for episode in self.episodes)


def compare(then: Run, now: Run, wanted: Collection[Episode], names: tuple[str, str] | None = None) -> Verdict:
    """Hold the second run against the first.

    Args:
        then, now: the runs; they may be unfinished.
        wanted: which episodes.
        names: how people name the runs; their own names when not given.
    """
    mine, theirs = ({(job.task, job.seed): job for job in run.jobs()} for run in (then, now))
    failed = (then.failures(), now.failures())
    found = [
        _episode(episode, (then, now), (mine.get(episode), theirs.get(episode)), failed) for episode in sorted(wanted)
    ]
    called = names or (then.config.name, now.config.name)
    more = len(theirs.keys() - mine.keys())
    left_out = [f"left out, as {called[0]} has no such episodes: {more} of {called[1]}"] if more else []
    return Verdict(
        *called,
        tuple(suspects.versions(then.config, now.config)),
        tuple(suspects.settings(then.config, now.config)),
        tuple(found),
        tuple(left_out),
    )


def _episode(
    episode: Episode,
    runs: tuple[Run, Run],
    jobs: tuple[EpisodeJob | None, EpisodeJob | None],
    failed: tuple[Mapping[Episode, str], Mapping[Episode, str]],
) -> EpisodeVerdict:
    """Compare an episode, as far as both plays of it go."""
    a, b = _Play(jobs[0], failed[0].get(episode)), _Play(jobs[1], failed[1].get(episode))
    compared = differing.compare(a.steps(), b.steps())
    difference = compared.difference
    notes = [f"{when}: {note}" for when, play in (("then", a), ("now", b)) for note in play.notes(compared.steps)]
    figures: tuple[Figure, ...] = ()
    if a.result is not None and b.result is not None:
        figures = tuple(_figures(a.folder, b.folder))
        if difference is None and not notes:
            difference = _at_the_end(compared, a.result, b.result)
    status: Status = (
        "differs" if difference is not None else "incomplete" if notes else "differs" if figures else "same"
    )
    return EpisodeVerdict(
        *episode,
        status,
        compared.steps,
        difference,
        () if difference is None else tuple(suspects.why(difference, *runs, episode[0])),
        figures,
        (a.progression, b.progression),
        tuple(notes),
    )


def _at_the_end(compared: differing.Compared, then: EpisodeResult, now: EpisodeResult) -> Difference | None:
    """What differs in two whole episodes that have no step that differs."""
    if compared.then_over != compared.now_over:
        return Difference(compared.steps, "length", "end of the episode", f"{then.steps} steps", f"{now.steps} steps")
    if then.final_observation != now.final_observation and compared.steps:
        said = (then.final_observation, now.final_observation)
        return Difference(compared.steps - 1, "outcome", "observation after the last action", *said)
    return None


class _Play:
    """One play of an episode, as it lies on disk.

    Attributes:
        folder: where.
        result: None when it is not finished.
        read: steps that were read.
        damage: why reading stopped, if it did.
    """

    def __init__(self, job: EpisodeJob | None, error: str | None) -> None:
        """Args: job: None when the run has no such episode. error: why the run did not finish it, where it says so."""
        self.folder = None if job is None else job.folder
        self._error = error
        self.result: EpisodeResult | None = None
        self._bad_result = ""
        try:
            self.result = None if self.folder is None else load_result(self.folder)
        except EpisodeError as error_:
            self._bad_result = str(error_)
        self.read = 0
        self.damage: Damage | None = None

    @property
    def progression(self) -> float | None:
        return None if self.result is None else self.result.progression

    @property
    def begun(self) -> bool:
        return self.folder is not None and (self.folder / STEPS).is_file()

    def steps(self) -> Iterator[StepRecord]:
        """The records up to the end or to the first damage."""
        if not self.begun:
            return
        assert self.folder is not None
        path = self.folder / STEPS
        frames = Frames(path)
        for data in frames:
            record = parsed(path, self.read, frames.start, data)
            if isinstance(record, Damage):
                self.damage = record
                return
            self.read += 1
            yield record
        self.damage = frames.damage

    def notes(self, compared: int) -> list[str]:
        """Why this play could not be compared to its end; `compared`: steps that are the same."""
        if self.folder is None:
            return ["the run has no such episode"]
        if self._bad_result:
            return [self._bad_result]
        if self.result is None:
            what = "not finished" if self.begun else "not begun"
            return [f"{what}: {self._error}" if self._error else what]
        if self.damage is not None:
            return [str(self.damage)]
        if self.read == compared and self.read < self.result.steps:
            return [f"{self.folder / STEPS}: holds {self.read} of the {self.result.steps} steps that were played"]
        return []


def _figures(then: Path | None, now: Path | None) -> Iterator[Figure]:
    """What two finished episodes came to differently. What only one of them tells (an older format) is left out."""
    assert then is not None and now is not None
    a, b = (orjson.loads((folder / RESULT).read_bytes()) for folder in (then, now))
    yield from _differing("", a, b, NOT_COMPARED)
    yield from _differing("counts.", a["counts"], b["counts"], CONSUMED)
    for name, diff in between(_memory(then), _memory(now)).items():
        yield Figure(f"memory/{name}", "", f"{diff.change}\n{diff.diff}".rstrip())


def _differing(prefix: str, a: Mapping[str, Any], b: Mapping[str, Any], but: Collection[str]) -> Iterator[Figure]:
    for name in a:
        if name in but or a[name] is None or b.get(name) is None or a[name] == b[name]:
            continue
        then, now = a[name], b[name]
        yield Figure(prefix + name, *(differing.only_differing(then, now) if isinstance(then, dict) else (then, now)))


def _memory(folder: Path) -> dict[str, str]:
    """The memory folder as the episode ended. Raises `UserError`."""
    found = {}
    try:
        for path in sorted((folder / MEMORY).glob("*")):
            if path.is_file() and not path.is_symlink():
                # The last line of a file may lack its end where somebody else wrote it; lines are compared.
                found[path.name] = f"{path.read_text(encoding='utf-8', errors='backslashreplace')}\n"
    except OSError as error:
        raise UserError(f"{folder / MEMORY}: cannot be read: {error.strerror}") from error
    return found
