"""From runs to a selection: which candidates become examples, and why the others do not.

A selection is a folder::

    decisions.jsonl.zst    a line for every candidate of the runs (`specialist.select.decisions`)
    statistics.json        what they add up to (`specialist.select.statistics`); written last
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from automem import runs
from automem.errors import UserError
from automem.trace.episode import EpisodeTrace
from automem.trace.run import RunTrace
from specialist.candidate import Candidate, Place, candidates
from specialist.recipe import DataRecipe
from specialist.select import decisions as recorded
from specialist.select import statistics as counted
from specialist.select.decisions import Decision
from specialist.select.engine import Engine
from specialist.select.episodes import Considered, consider
from specialist.select.judging import Judged, judge, judge_apart, listed
from specialist.select.quotas import NOT_GOOD, Fate, Waiting, choose
from specialist.select.statistics import Statistics
from specialist.shortage import Shortage

AT_ONCE = 4
"""Episodes that an engine which is not `local` judges at once."""

WORTH_A_PROCESS = 4000
"""Steps below which starting processes takes longer than judging."""


@dataclass(frozen=True)
class Selection:
    """What was selected. Candidates are read from the traces when they are asked for.

    Attributes:
        folder: where it is recorded.
        statistics: what it adds up to, and from what it was made.
        accepted: the decisions on accepted candidates, in the order of the traces.
    """

    folder: Path
    statistics: Statistics
    accepted: tuple[Decision, ...]

    def candidates(self) -> Iterator[Candidate]:
        """The accepted candidates, verbatim, in the same order; one episode is held at a time.

        Raises `UserError` when a trace is gone or no longer holds one of them.
        """
        wanted: dict[tuple[str, str, int], list[Place]] = {}
        for decision in self.accepted:
            wanted.setdefault(decision.place.episode, []).append(decision.place)
        for (run, task, seed), places in wanted.items():
            left = set(places)
            episode = EpisodeTrace(runs.load(run).folder / "episodes" / task / f"seed-{seed}")
            for candidate in candidates(run, episode):
                if candidate.place in left:
                    left.discard(candidate.place)
                    yield candidate
            if left:
                raise UserError(f"{episode.folder}: no longer holds {min(map(str, left))}; select again")


async def select(
    runs: Sequence[RunTrace],
    recipe: DataRecipe,
    engine: Engine,
    folder: Path,
    forbidden_seeds: Collection[int],
    *,
    processes: int | None = None,
    told: Callable[[int, int], None] | None = None,
) -> Selection:
    """Select examples from runs and record every decision in a folder.

    Args:
        runs: what was played, on training seeds; episodes that are not finished are recorded and left out.
        recipe: how many of what.
        engine: judges candidates.
        folder: where to; made if need be. A selection that it holds is replaced.
        forbidden_seeds: seeds of evaluations: a run that plays one of them is refused.
        processes: for an engine that is local; by default as many as there are processors, and 1 where there is
            little to judge. With 1 everything happens here.
        told: is called with how many episodes are done, of how many.

    Raises `UserError` for a forbidden seed, for a trace that cannot be read, and when fewer candidates are accepted
    than the recipe needs; what was decided is recorded then, too.
    """
    considered = await asyncio.to_thread(consider, runs, recipe.best_episodes, forbidden_seeds)
    judged = await _judge_all(engine, considered, processes, told)
    fates = choose(list(_good(considered, judged)), recipe)
    made = _decisions(considered, judged, fates)
    return _check(await asyncio.to_thread(_record, folder, engine, recipe, considered, made))


def load(folder: Path | str) -> Selection:
    """The selection in a folder. Raises `UserError` when there is none, or it came to too little."""
    statistics = counted.read(Path(folder))
    accepted, number = [], 0
    for decision in recorded.read(Path(folder)):
        number += 1
        if decision.accepted:
            accepted.append(decision)
    if (number, len(accepted)) != (statistics.candidates, statistics.accepted):
        raise UserError(f"{folder}: decisions and statistics do not belong together, or are torn off; select again")
    return _check(Selection(Path(folder), statistics, tuple(accepted)))


def _check(selection: Selection) -> Selection:
    shortage = selection.statistics.shortage()
    if shortage is not None:
        raise Shortage(f"{shortage}. All decisions are in {selection.folder / recorded.DECISIONS}")
    return selection


async def _judge_all(
    engine: Engine,
    considered: Sequence[Considered],
    processes: int | None,
    told: Callable[[int, int], None] | None,
) -> list[list[Judged]]:
    """What the engine says of every candidate, episode by episode."""
    good = [one for one in considered if not one.refusal]
    if processes is None:
        steps = sum(one.result.steps for one in good if one.result is not None)
        processes = min(os.cpu_count() or 1, len(good)) if steps >= WORTH_A_PROCESS else 1
    places = asyncio.Semaphore(processes if engine.local else AT_ONCE)
    with ExitStack() as stack:
        pool = None
        if engine.local and processes > 1:
            # Forking a process that has threads is not safe; a fresh interpreter is.
            spawn = multiprocessing.get_context("spawn")
            pool = stack.enter_context(ProcessPoolExecutor(processes, mp_context=spawn))

        async def judged(episode: Considered) -> list[Judged]:
            folder = episode.trace.folder
            if episode.refusal:
                return await asyncio.to_thread(listed, folder)
            if not engine.local:
                return await judge(engine, episode.run, EpisodeTrace(folder))
            return await asyncio.get_running_loop().run_in_executor(pool, judge_apart, engine, episode.run, folder)

        over = 0

        async def one(episode: Considered) -> list[Judged]:
            nonlocal over
            async with places:
                found = await judged(episode)
            over += 1
            if told is not None:
                told(over, len(considered))
            return found

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(episode)) for episode in considered]
        except ExceptionGroup as failed:
            first = failed.exceptions[0]
            if isinstance(first, BrokenProcessPool):
                raise UserError(
                    "a process that judged candidates was ended, perhaps for memory; or a script starts this without "
                    '`if __name__ == "__main__":`'
                ) from first
            raise first from None
    return [task.result() for task in tasks]


def _good(considered: Sequence[Considered], judged: Sequence[list[Judged]]) -> Iterator[Waiting]:
    for episode, found in zip(considered, judged, strict=True):
        for one in found:
            if one.good:
                yield Waiting(_place(episode, one), one)


def _place(episode: Considered, judged: Judged) -> Place:
    return Place(*episode.key, judged.step, judged.phase)


def _decisions(
    considered: Sequence[Considered], judged: Sequence[list[Judged]], fates: dict[Place, Fate]
) -> Iterator[Decision]:
    for episode, found in zip(considered, judged, strict=True):
        for one in found:
            place = _place(episode, one)
            if episode.refusal:
                fate = Fate(episode.refusal, episode.refusal)
            else:
                fate = fates.get(place) or Fate(NOT_GOOD, one.text)
            yield Decision(place, fate.accepted, one.score, fate.why, fate.reason, dict(one.points))


def _record(
    folder: Path, engine: Engine, recipe: DataRecipe, considered: Sequence[Considered], made: Iterator[Decision]
) -> Selection:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / counted.STATISTICS).unlink(missing_ok=True)
        accepted: list[Decision] = []

        def kept() -> Iterator[Decision]:
            for decision in recorded.write(folder, made):
                if decision.accepted:
                    accepted.append(decision)
                yield decision

        statistics = counted.count((engine.name, engine.version), recipe, considered, kept())
        counted.write(folder, statistics)
    except OSError as error:
        raise UserError(f"{folder}: the selection cannot be written: {error.strerror}") from error
    return Selection(folder, statistics, tuple(accepted))
