"""Playing a bench: one agent after another on the same episodes, each a run that can be resumed."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

from automem import evaluate, runs
from automem.agent import Specialist
from automem.bench import results, storage
from automem.bench.entrants import Entrant
from automem.bench.storage import Bench, BenchConfig, PlannedAgent
from automem.episode import EpisodeError
from automem.errors import UserError
from automem.evaluate import Plan, Request, Watcher
from automem.models.protocol import Model, ModelError
from automem.runs import PlayedModel

Beside = Callable[[PlayedModel, Model], tuple[Model, Specialist]]
"""From the model that acts, as stored and as made, to what acts beside a specialist, and the specialist."""

RETRIES = 2
"""How often episodes are gone on with that failed for reasons outside them."""


@dataclass(frozen=True)
class BenchRequest:
    """What a person asked for.

    Attributes:
        entrants: who plays.
        common: what all of them play, as `automem.evaluate.Request` has it. Its model is for agents that play with
            the one that is asked for, its specialist for entrants with one, and its name the bench's.
    """

    entrants: tuple[Entrant, ...]
    common: Request


@dataclass(frozen=True)
class PlannedBench:
    """A checked request: the bench, and the run of each agent by its label."""

    config: BenchConfig
    plans: dict[str, Plan]
    resume: bool


def plan(request: BenchRequest) -> PlannedBench:
    """Check everything that can be checked before anything starts or is reached. Raises errors for people."""
    common = request.common
    if common.resume and common.name is None:
        raise UserError("--resume needs the name of the bench to go on with: add --run NAME (automem runs lists them)")
    if any(entrant.specialist for entrant in request.entrants) and common.specialist is None:
        raise UserError("agent specialist needs to know which: --specialist, the folder of an adapter or a model")
    if common.specialist is not None and not any(entrant.specialist for entrant in request.entrants):
        raise UserError("--specialist: no agent plays with it; name specialist among the --agents")
    name = runs.valid_name(common.name or runs.new_name(f"bench-{common.target}", common.model.name))
    config = BenchConfig(
        name=name,
        suite=common.target.lower(),
        created=runs.now(),
        agents=tuple(
            PlannedAgent(label=e.label, agent=e.agent, scaffolds=e.scaffolds, specialist=e.specialist)
            for e in request.entrants
        ),
        suite_seeds=common.seeds is None and common.episodes is None,
        suite_steps=common.steps is None,
        command=_command(request),
    )
    if common.resume and storage.exists(name):
        there = storage.load(name)
        whole = len(there.runs()) == len(there.config.agents)
        runs.check_same("bench", name, there.config.differences(config, whole))
    else:
        runs.free_folder(name)
    plans = {entrant.label: evaluate.plan(_of(entrant, common, name)) for entrant in request.entrants}
    return PlannedBench(config, plans, common.resume)


def _command(request: BenchRequest) -> str:
    """The command that plays the same again; where a server or an adapter is, is not a part of it.

    An adapter has the name that base model and content give it (`specialist.serve.model.specialist_name`): it may be
    moved, and results get published.
    """
    common, specialist = request.common, request.common.specialist
    base = specialist.model.name.rpartition("+specialist-")[0] if specialist and specialist.adapter else ""
    options = {
        "--agents": ",".join(entrant.written for entrant in request.entrants),
        "--model": common.model.name,
        "--seeds": common.seeds,
        "--episodes": common.episodes,
        "--steps": common.steps,
        "--temperature": common.model.temperature or None,
        "--max-tokens": common.model.max_tokens or None,
        "--specialist": specialist and specialist.model.name,
        "--specialist-base": base or None,
        "--consult-turns": specialist and specialist.consult_turns,
    }
    words = [word for option, value in options.items() if value is not None for word in (option, str(value))]
    words += ["--merged"] if specialist and specialist.merged else []
    return shlex.join(["automem", "bench", common.target.lower(), *words])


def _of(entrant: Entrant, common: Request, bench: str) -> Request:
    """What an entrant plays."""
    return replace(
        common,
        name=entrant.label,
        bench=bench,
        agent=entrant.agent,
        scaffolds=entrant.scaffolds,
        specialist=common.specialist if entrant.specialist else None,
    )


async def play(
    planned: PlannedBench,
    watcher: Callable[[], Watcher],
    told: Callable[[str, str], None],
    workers: int = 0,
    beside: Beside | None = None,
    retries: int = RETRIES,
) -> tuple[Bench, dict[str, Any]]:
    """Play what is not finished yet, and write what it comes to.

    An agent whose model cannot be reached does not keep the others from playing; it is reported.

    Args:
        planned: what to play.
        watcher: watches an agent's run.
        told: label and message of an agent that could not be played.
        workers: episodes at once; 0: as the model allows.
        beside: makes the specialist.
        retries: see `automem.evaluate.evaluate`.

    Returns: the bench, and its results as written.
    """
    name = planned.config.name
    there = planned.resume and storage.exists(name)
    bench = storage.load(name) if there else storage.create(planned.config)
    with bench.exclusive():
        return bench, await _play(planned, bench, watcher, told, workers, beside, retries)


async def _play(
    planned: PlannedBench,
    bench: Bench,
    watcher: Callable[[], Watcher],
    told: Callable[[str, str], None],
    workers: int,
    beside: Beside | None,
    retries: int,
) -> dict[str, Any]:
    seconds = dict(results.seconds(bench))
    errors: dict[str, str] = {}
    waiting = list(planned.plans.values())
    async with _Models() as models:
        for label, plan in planned.plans.items():
            start = time.monotonic()
            try:
                await _agent(plan, planned.resume, watcher(), workers, beside, retries, models)
            except ModelError as error:
                errors[label] = str(error)
                told(label, str(error))
            finally:  # Ctrl-C, too, ends what was played until then
                seconds[label] = round(seconds.get(label, 0.0) + time.monotonic() - start, 1)
                results.write(bench, seconds, errors)
            waiting.pop(0)
            await models.keep([other.config.model for other in waiting if other.config.specialist is None])
    return results.write(bench, seconds, errors)


class _Models:
    """Models of agents that play one after another. One stays open for as long as a later agent plays with it.

    No longer: the next agent's server may need the room.
    """

    def __init__(self) -> None:
        self._shared: dict[PlayedModel, Model] = {}
        self._own: list[Model] = []

    async def __aenter__(self) -> _Models:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.keep([])

    def shared(self, asked: PlayedModel, processes: int) -> Model:
        """The model of this name, the same for all agents that ask for it."""
        if asked not in self._shared:
            self._shared[asked] = evaluate.make_model(asked, processes)
        return self._shared[asked]

    def own(self, model: Model) -> Model:
        """A model of one agent alone."""
        self._own.append(model)
        return model

    async def keep(self, asked: Sequence[PlayedModel]) -> None:
        """Close all but the shared ones of these names."""
        over, self._own = self._own, []
        over += [self._shared.pop(name) for name in list(self._shared) if name not in asked]
        async with AsyncExitStack() as closing:  # every one of them, even when another cannot be closed
            for model in over:
                closing.push_async_callback(model.close)


async def _agent(
    plan: Plan,
    resume: bool,
    watcher: Watcher,
    workers: int,
    beside: Beside | None,
    retries: int,
    models: _Models,
) -> None:
    """Play one agent's run. Its models stay open: the next agent may play with the same.

    Of a run that is over no model is asked, and none reached: a server would be started for nothing.
    """
    asked = plan.config.model
    workers = workers or evaluate.default_workers(asked.name)
    processes = min(workers, os.cpu_count() or 1)
    specialist = None
    if plan.config.specialist is not None:
        assert beside is not None
        model, specialist = beside(asked, evaluate.make_model(asked, processes))
        models.own(model)
        models.own(specialist.model)
    else:
        model = models.shared(asked, processes)
    with watcher:
        if not (resume and _over(plan)):
            for one in [model] if specialist is None else [model, specialist.model]:
                watcher.reaching(one.name)
                await one.ready()
        run = evaluate.open_run(plan, resume)
        unsafe = plan.config.sandbox.unsafe
        await evaluate.evaluate(run, model, watcher, workers, processes, unsafe, specialist, retries)


def _over(plan: Plan) -> bool:
    """Whether every episode of the plan's run is finished."""
    name = plan.config.name
    if not runs.exists(name):
        return False
    run = runs.load(name)
    try:
        return all(run.result(job) is not None for job in run.jobs())
    except EpisodeError:
        return False
