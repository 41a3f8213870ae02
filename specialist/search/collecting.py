"""What is learnt from: the teacher's memory work on training seeds, played as a specialist's would be.

The teacher sits where the specialist will sit, beside the same gameplay model: what it is shown and what it writes are
then what a specialist will be shown, and is to write.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import aclosing
from functools import cache
from pathlib import Path

from automem import runs, scaffold
from automem.episode import EpisodeListener, write_json
from automem.executor import LocalExecutor
from automem.runs import PlannedTask
from automem.scaffold import Scaffold
from automem.summary import summarise
from automem.trace.run import RunTrace
from meta.episode_cache import EpisodeCache
from specialist import play
from specialist.search.players import acting, run_config
from specialist.search.storage import SearchFolder


async def collect(search: SearchFolder, number: int, listener: EpisodeListener, workers: int) -> RunTrace:
    """The teacher's run of this number, from 1, played as far as it was not.

    Episodes that other runs finished in just the same way are taken from there. An episode that fails is left out.
    """
    folder = search.collected(number)
    config = search.config
    teacher = config.collect.teacher
    taught = play.choose(teacher, consult_turns=config.collect.consult_turns, served=config.serves(teacher))
    if not (folder / runs.RUN).is_file():
        made = run_config(search, folder, tasks(search, number), config.gameplay, taught.played)
        folder.parent.mkdir(parents=True, exist_ok=True)
        runs.create(made, {config.game: search.scaffold()}, folder)
    run = runs.load(str(folder))
    if run.summary() is not None:
        return RunTrace(run)
    processes = min(workers, os.cpu_count() or 1)
    player, specialist = play.make(taught, config.gameplay, acting(config, None, workers), processes)
    load: Callable[[Path], Scaffold] = cache(lambda path: scaffold.load(str(path)))
    executor = LocalExecutor(player, load, workers, processes, listener, config.sandbox, specialist)
    known = EpisodeCache()
    jobs = run.jobs()
    for job in jobs:
        known.fetch(job)
    outcomes = []
    try:
        await player.ready()
        await specialist.model.ready()
        async with aclosing(executor.run(jobs)) as ended:
            async for outcome in ended:
                outcomes.append(outcome)
    finally:
        await player.close()
        await specialist.model.close()
    write_json(run.folder / runs.SUMMARY, {"run": run.config.name, "model": run.config.players, **summarise(outcomes)})
    return RunTrace(run)


def tasks(search: SearchFolder, number: int) -> list[PlannedTask]:
    """What the run of this number plays: each goes on with the seeds behind those of the one before.

    A seed of an evaluation is never among them: it is passed over.
    """
    found = []
    for task in search.config.collect.tasks:
        if number == 1:
            found.append(task)
            continue
        seed, skipped = max(task.seeds) + 1, (number - 2) * len(task.seeds)
        chosen: list[int] = []
        while len(chosen) < len(task.seeds):
            if seed not in search.config.evaluation_seeds:
                if skipped == 0:
                    chosen.append(seed)
                else:
                    skipped -= 1
            seed += 1
        found.append(task.model_copy(update={"seeds": tuple(chosen)}))
    return found
