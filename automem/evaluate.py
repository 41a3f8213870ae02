"""An evaluation: a scaffold and a model play a suite, and a summary says how well."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol, Self

import games
from automem import lineage, runs, scaffold
from automem.agent import Specialist
from automem.agents import registry as agents
from automem.episode import EpisodeJob, EpisodeListener, write_json
from automem.errors import UserError
from automem.executor import Fault, LocalExecutor, Outcome
from automem.models import registry
from automem.models.protocol import Model
from automem.runs import PlannedTask, PlayedModel, PlayedScaffold, PlayedSpecialist, Run, RunConfig
from automem.sandbox import SandboxConfig, choose_mode
from automem.scaffold import Scaffold
from automem.summary import summarise
from automem.visible import visible
from games import suites

_log = logging.getLogger(__name__)

OUTSIDE: frozenset[Fault] = frozenset({"model", "game"})
"""Faults that say nothing of how an episode was played, and may be gone when it is gone on with."""

FIRST_WAIT = 5.0
"""Seconds before episodes are tried again; twice as long each further time."""


@dataclass(frozen=True)
class Request:
    """What a person asked for; everything that is not given follows the suite.

    Attributes:
        target: a suite or a task.
        model: the task model, with its sampling.
        scaffolds: versions, named as for `automem.lineage.locate`, each for the game it plays; other games use
            their v0.
        seeds: one text for all tasks (``games.suites.parse_seeds``), or None.
        episodes: only the first so many seeds of each task.
        steps: step limit instead of the suite's.
        name: the run's name, or None for a new one.
        resume: go on with the run of this name.
        sandbox: limits of scaffold code.
        specialist: does the memory work, if given.
        bench: the bench that the run is a part of, if it is one; its folder lies in that of the bench then.
        agent: who plays, one of `automem.agents.registry.names`; one that always plays with a model of its own
            (or none) does so whatever `model` says.
    """

    target: str
    model: PlayedModel
    scaffolds: tuple[str, ...] = ()
    seeds: str | None = None
    episodes: int | None = None
    steps: int | None = None
    name: str | None = None
    resume: bool = False
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
    specialist: PlayedSpecialist | None = None
    agent: str = agents.MEMORY
    bench: str = ""

    @property
    def run(self) -> str | None:
        """The run's name, with its bench before it."""
        return f"{self.bench}/{self.name}" if self.bench and self.name else self.name


class Watcher(EpisodeListener, Protocol):
    """Somebody who watches an evaluation."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def reaching(self, model: str) -> None:
        """The model is being reached; a server on this machine may have to start."""
        ...

    def planned(self, run: Run, jobs: list[EpisodeJob]) -> None:
        """The run is on disk and its episodes are known; nothing has been played yet."""
        ...

    def ended(self, outcome: Outcome) -> None:
        """An episode ended, or was found finished."""
        ...


@dataclass(frozen=True)
class Plan:
    """A checked request: the run's configuration and the loaded scaffolds."""

    config: RunConfig
    scaffolds: dict[str, Scaffold] = field(default_factory=dict)


def plan(request: Request) -> Plan:
    """Check everything that can be checked before anything starts or is reached. Raises errors for people.

    Logs a warning for each run that cannot be read: what it played cannot be held against what is to be played.
    """
    if request.resume and request.name is None:
        raise UserError("--resume needs the name of the run to go on with: add --run NAME (automem runs lists them)")
    model = model_of(request)
    tasks = planned_tasks(request)
    needed = list(dict.fromkeys(games.game_of(planned.task) for planned in tasks))
    name = request.run or runs.new_name(request.target, model.name)
    for part in name.split("/") if request.bench else [name]:
        runs.valid_name(part)
    chosen = _scaffolds(request, needed) if agents.remembers(request.agent) else {}
    config = RunConfig(
        name=name,
        target=request.target,
        created=runs.now(),
        model=model,
        scaffolds={
            game: PlayedScaffold(ref=s.ref, identity=s.identity, folder=f"scaffolds/{s.ref}")
            for game, s in chosen.items()
        },
        tasks=tasks,
        versions=runs.versions(task.task for task in tasks) | agents.versions(request.agent),
        sandbox=request.sandbox,
        specialist=request.specialist,
        agent=request.agent,
    )
    planned = Plan(config, chosen)
    if any(s.hooks is not None for s in chosen.values()) and choose_mode(request.sandbox) == "unsafe":
        _log.warning("nothing on this machine contains scaffold code: it runs with all the rights that you have")
    if request.resume and runs.exists(name):
        _resumable(planned)
    else:
        found, unreadable = runs.read_all()
        for path in unreadable:
            _log.warning("%s", visible(lineage.told_unreadable(path)))
        for version in chosen.values():
            lineage.check_unchanged(version, found)
        runs.free_folder(name)
    return planned


def model_of(request: Request) -> PlayedModel:
    """The model that the request's agent plays with. Raises `UserError` when the two do not go together."""
    kind = agents.kind(request.agent)
    if not agents.remembers(request.agent):
        if request.scaffolds:
            raise UserError(f"--scaffold: agent {request.agent} plays without one")
        if request.specialist is not None:
            raise UserError(f"--specialist: agent {request.agent} has no memory that a specialist could care for")
    if kind.model:
        return PlayedModel(name=kind.model)
    if request.model.name == registry.NONE:
        raise UserError(f"agent {request.agent} asks a model; name one with --model")
    return request.model


def open_run(planned: Plan, resume: bool) -> Run:
    """Create the run, or with `resume` go on with the one that is there, if it is the same experiment."""
    name = planned.config.name
    if not (resume and runs.exists(name)):
        return runs.create(planned.config, planned.scaffolds)
    return _resumable(planned)


def _resumable(planned: Plan) -> Run:
    """The run of the plan's name, if it is the same experiment. Raises `UserError` with the differences."""
    name = planned.config.name
    run = runs.load(name)
    runs.check_same("run", name, run.config.differences(planned.config))
    return run


async def evaluate(
    run: Run,
    model: Model,
    watcher: Watcher,
    workers: int,
    processes: int,
    unsafe_hooks: bool = False,
    specialist: Specialist | None = None,
    retries: int = 0,
) -> dict[str, Any]:
    """Play every episode of the run that is not finished yet and write its summary.

    Args:
        run: the run; nobody else may be playing it.
        model: the task model, ready to answer.
        watcher: is told what happens.
        workers: episodes at once.
        processes: game processes.
        unsafe_hooks: run scaffold code even where nothing can contain it.
        specialist: does the memory work, if given; ready to answer.
        retries: how often episodes are gone on with that failed for reasons outside them: a model or its server
            that was gone, a game whose process died. What fails to the end is missing from the means.

    Returns: the summary, as written.
    """
    load: Callable[[Path], Scaffold] = cache(lambda folder: scaffold.load(str(folder)))
    jobs = run.jobs()
    sandbox = run.config.sandbox.model_copy(update={"unsafe": unsafe_hooks})
    models = [model] if specialist is None else [model, specialist.model]
    outcomes: list[Outcome] = []
    with run.exclusive():
        _same_scaffolds(run, load)
        watcher.planned(run, jobs)
        for left in range(retries, -1, -1):
            executor = LocalExecutor(model, load, workers, processes, watcher, sandbox, specialist)
            failed: list[Outcome] = []
            async with aclosing(executor.run(jobs)) as ended:
                async for outcome in ended:
                    if left and outcome.fault in OUTSIDE:
                        failed.append(outcome)
                        _log.warning("%s", visible(_told_failed(outcome)))
                        continue
                    outcomes.append(outcome)
                    watcher.ended(outcome)
            if not failed:
                break
            gone = models if any(outcome.fault == "model" for outcome in failed) else []
            if not await _back(gone, wait=FIRST_WAIT * 2 ** (retries - left)):
                for outcome in failed:
                    outcomes.append(outcome)
                    watcher.ended(outcome)
                break
            jobs = [outcome.job for outcome in failed]
        summary = {"run": run.config.name, "model": run.config.players, **summarise(outcomes)}
        write_json(run.folder / runs.SUMMARY, summary)
    return summary


async def _back(models: Sequence[Model], wait: float) -> bool:
    """Reach models again after a while, starting anew what we had started; whether all of them answer."""
    await asyncio.sleep(wait)
    try:
        for one in models:
            await one.close()
            await one.ready()
    except UserError as error:
        _log.warning("%s", visible(f"episodes are not tried again: {error}"))
        return False
    return True


def _told_failed(outcome: Outcome) -> str:
    return f"{outcome.job.task} {outcome.job.seed} failed and is tried again: {outcome.error}"


async def run(
    planned: Plan, resume: bool, model: Model, watcher: Watcher, workers: int, specialist: Specialist | None = None
) -> tuple[Run, dict[str, Any]]:
    """Reach the models, create or reopen the run, play it. Nothing is written when one of them cannot be reached."""
    models = [model] if specialist is None else [model, specialist.model]
    try:
        with watcher:
            for one in models:
                watcher.reaching(one.name)
                await one.ready()
            opened = open_run(planned, resume)
            processes = min(workers, os.cpu_count() or 1)
            unsafe = planned.config.sandbox.unsafe
            return opened, await evaluate(opened, model, watcher, workers, processes, unsafe, specialist)
    finally:
        for one in models:
            await one.close()


def make_model(chosen: PlayedModel, processes: int) -> Model:
    """The model that a run names. Raises `automem.models.protocol.UnknownModel`."""
    return registry.make_model(chosen.name, chosen.sampling, api_base=chosen.api_base or None, processes=processes)


def _same_scaffolds(run: Run, load: Callable[[Path], Scaffold]) -> None:
    """The copies in the run must still be what the run says it plays."""
    for played in run.config.scaffolds.values():
        _unchanged(run, played, load(run.folder / played.folder))


def _unchanged(run: Run, played: PlayedScaffold, found: Scaffold) -> Scaffold:
    if found.identity != played.identity:
        raise UserError(
            f"{run.folder / played.folder} was changed since the run began (identity {found.identity[:12]}, "
            f"expected {played.identity[:12]}); restore it, or start a new run"
        )
    return found


def _scaffolds(request: Request, needed: list[str]) -> dict[str, Scaffold]:
    """The scaffold of each game that is played; of a run that is resumed, its own copies."""
    given: dict[str, Scaffold] = {}
    for ref in request.scaffolds:
        loaded = _loaded(request, ref)
        if loaded.game not in needed:
            raise UserError(f"scaffold {loaded.ref} plays {loaded.game}, but {request.target} is {', '.join(needed)}")
        if loaded.game in given:
            raise UserError(f"{given[loaded.game].ref} and {loaded.ref} both play {loaded.game}; a run plays one")
        given[loaded.game] = loaded
    return {game: given.get(game) or _loaded(request, f"{game}/v0") for game in needed}


def _loaded(request: Request, ref: str) -> Scaffold:
    """A version; of a run to be resumed that played one of this name, its own copy.

    The version may have been changed since; what the run plays has not.
    """
    if request.resume and request.run is not None and runs.exists(request.run):
        run = runs.load(request.run)
        for played in run.config.scaffolds.values():
            if played.ref == ref:
                return _unchanged(run, played, scaffold.load(str(run.folder / played.folder)))
    return lineage.resolve(ref)


def planned_tasks(request: Request) -> tuple[PlannedTask, ...]:
    """The tasks that a request asks for, with their seeds and limits. Raises errors for people."""
    entries = _entries(request.target)
    if request.steps is not None and request.steps < 1:
        raise UserError(f"--steps {request.steps}: an episode has at least one step")
    if request.episodes is not None and request.episodes < 1:
        raise UserError(f"--episodes {request.episodes}: play at least one")
    seeds = None if request.seeds is None else suites.parse_seeds(request.seeds)
    planned = []
    for entry in entries:
        chosen = seeds or entry.seeds
        if request.episodes is not None:
            if request.episodes > len(chosen):
                raise UserError(
                    f"--episodes {request.episodes}: {entry.task} has {len(chosen)} seeds here; name more with --seeds"
                )
            chosen = chosen[: request.episodes]
        planned.append(
            PlannedTask(
                task=entry.task, seeds=chosen, steps=request.steps or entry.steps, facts=games.facts(entry.task)
            )
        )
    return tuple(planned)


def tasks_of_one_game(request: Request) -> tuple[PlannedTask, ...]:
    """`planned_tasks`, for what plays with one scaffold. Raises `UserError` when they are of several games."""
    tasks = planned_tasks(request)
    of = sorted({games.game_of(planned.task) for planned in tasks})
    if len(of) > 1:
        listed = ", ".join(of)
        raise UserError(f"{request.target} plays {listed}; a scaffold belongs to one game: name a game or a task")
    return tasks


def _entries(target: str) -> Iterable[suites.Entry]:
    """The entries of a suite; or of a task, with the seeds and steps that a suite gives it."""
    if target.lower() in suites.names():
        return suites.load(target).entries
    try:
        task = games.canonical(target)
    except games.UnknownTask as error:
        raise UserError(f"{error} The suites are: {', '.join(suites.names())}.") from error
    for name in reversed(suites.names()):
        entry = next((e for e in suites.load(name).entries if e.task == task), None)
        if entry is not None:
            return (entry,)
    return (suites.Entry(task, tuple(range(42, 47)), 1000),)


def default_workers(model: str) -> int:
    """Episodes at once when nobody says: enough to keep a server, or this machine's cores, busy."""
    cores = os.cpu_count() or 1
    return 2 * cores if model in registry.NO_LANGUAGE_MODELS else 8
