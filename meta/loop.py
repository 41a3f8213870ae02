"""Loop 1 from a person's request to its result: everything is checked, then the model is reached, then it runs."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import games
from automem import evaluate, lineage, runs, scaffold
from automem.errors import UserError
from automem.evaluate import Request
from automem.executor import LocalExecutor
from automem.models.protocol import Model
from automem.runs import PlannedTask, PlayedModel, PlayedScaffold
from automem.sandbox import SandboxConfig, choose_mode
from automem.scaffold import Scaffold
from games import suites
from meta import gate, reviewers, storage
from meta.arena import Arena
from meta.episode_cache import EpisodeCache
from meta.search import Search
from meta.settings import (
    GATE_SEEDS,
    HELD_OUT_SEEDS,
    GateSettings,
    LoopBudget,
    LoopConfig,
    ReviewerSettings,
    SearchSettings,
    first_problem,
)
from meta.storage import LoopFolder
from meta.trial import Gates
from meta.watching import LoopWatcher

PLAYING_REVIEWERS = frozenset({"command"})
"""Reviewers that can run the games themselves."""

HELD_OUT = 40
"""Held-out seeds when nobody names any."""


@dataclass(frozen=True)
class LoopRequest:
    """What a person asked for.

    Attributes:
        game: a game, a suite of one game, or a task.
        model: the task model.
        scaffold: what to begin with; the game's v0 when None.
        gate_seeds, held_out: seed texts (`games.suites.parse_seeds`), or None for the usual ones.
        steps: step limit instead of the suite's.
        replicates: episodes of each task and seed.
        name: the loop's name, or None for a new one.
        resume: go on with the loop of this name.
        gate, search, reviewer, budget, sandbox: see `meta.settings`.
    """

    game: str
    model: PlayedModel
    scaffold: str | None = None
    gate_seeds: str | None = None
    held_out: str | None = None
    steps: int | None = None
    replicates: int = 1
    name: str | None = None
    resume: bool = False
    gate: GateSettings = field(default_factory=GateSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    reviewer: ReviewerSettings = field(default_factory=ReviewerSettings)
    budget: LoopBudget = field(default_factory=LoopBudget)
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)


@dataclass(frozen=True)
class LoopPlan:
    """A checked request: the loop's settings and the version that it begins with."""

    config: LoopConfig
    root: Scaffold


def plan(request: LoopRequest) -> LoopPlan:
    """Check everything that can be checked before anything starts or is reached. Raises errors for people."""
    if request.resume and request.name is None:
        raise UserError("--resume needs the name of the loop to go on with: add --run NAME")
    tasks = _tasks(request)
    game = games.game_of(tasks[0].task)
    name = runs.valid_name(request.name or runs.new_name(f"loop1-{game}-{request.reviewer.kind}", request.model.name))
    root = _root(request, name, game)
    held_out = _held_out(request, name)
    try:
        config = LoopConfig(
            name=name,
            game=game,
            created=runs.now(),
            model=request.model,
            root=PlayedScaffold(ref=root.ref, identity=root.identity, folder=f"root/{root.schema.scaffold.version}"),
            tasks=tasks,
            held_out=held_out,
            replicates=request.replicates,
            gate=request.gate,
            search=request.search,
            reviewer=request.reviewer,
            budget=request.budget,
            versions=runs.versions(task.task for task in tasks),
            sandbox=request.sandbox,
        )
    except ValueError as error:
        raise UserError(first_problem(error)) from error
    if root.game != game:
        raise UserError(f"scaffold {root.ref} plays {root.game}, and {request.game} is {game}")
    if request.resume:
        planned = LoopPlan(_with_budget(storage.load(name).config, config), root)
        _resumable(planned)
    else:
        planned = LoopPlan(config, root)
        lineage.check_unchanged(root)
        runs.free_folder(name)
    reviewers.check(planned.config.reviewer)
    choose_mode(request.sandbox)
    return planned


def open_loop(planned: LoopPlan, resume: bool) -> LoopFolder:
    """Create the loop, or with `resume` go on with the one that is there, if it is the same search."""
    return _resumable(planned) if resume else storage.create(planned.config, planned.root)


async def run(
    planned: LoopPlan, resume: bool, model: Model, watcher: LoopWatcher, workers: int
) -> tuple[LoopFolder, dict[str, Any]]:
    """Reach the model and the reviewer, create or reopen the loop, run it to its end.

    Nothing is written when one of them cannot be reached.

    Args:
        planned: what to do.
        resume: go on with a loop that is there.
        model: the task model.
        watcher: is told what happens.
        workers: episodes at once, all candidates together.
    """
    reviewer = reviewers.make(planned.config.reviewer)
    try:
        with watcher:
            watcher.reaching(model.name)
            await model.ready()
            await reviewer.ready()
            loop = open_loop(planned, resume)
            with runs.exclusive(loop.folder):
                # Whether code may run that nothing contains is asked for each time, too.
                named = {name: getattr(planned.config, name) for name in ("budget", "reviewer", "sandbox")}
                loop = storage.change(loop, loop.config.model_copy(update=named))
                watcher.opened(loop, loop.attempts())
                arena = _arena(loop, model, watcher, workers)
                try:
                    search = Search(loop, arena, reviewer, _gates(loop.config.gate), watcher)
                    return loop, await search.run()
                finally:
                    await arena.close()
    finally:
        await reviewer.close()
        await model.close()


def _gates(settings: GateSettings) -> Gates:
    """The gate, and the one for leaner memory where the settings have a margin."""
    strict = gate.make(settings.model_copy(update={"margin": 0.0}))
    return Gates(strict, gate.make(settings) if settings.margin else None)


def _arena(loop: LoopFolder, model: Model, watcher: LoopWatcher, workers: int) -> Arena:
    load: Callable[[Path], Scaffold] = cache(lambda folder: scaffold.load(str(folder)))
    processes = min(workers, os.cpu_count() or 1)
    return Arena(loop, LocalExecutor(model, load, workers, processes, watcher, loop.config.sandbox), EpisodeCache())


def _tasks(request: LoopRequest) -> tuple[PlannedTask, ...]:
    # The paper's gate judges by the seeds that reviewers read; another one has seeds of its own.
    count = request.gate.most + (0 if request.gate.kind == "paper" else request.search.shown)
    seeds = request.gate_seeds or f"{GATE_SEEDS}..{GATE_SEEDS + count - 1}"
    tasks = evaluate.tasks_of_one_game(Request(request.game, request.model, seeds=seeds, steps=request.steps))
    return tuple(planned.model_copy(update={"seeds": planned.seeds[:count]}) for planned in tasks)


def _held_out(request: LoopRequest, name: str) -> tuple[int, ...]:
    """The held-out seeds. A reviewer that can play by itself must not be able to guess them."""
    if request.held_out is not None:
        return suites.parse_seeds(request.held_out)
    if request.resume and storage.exists(name):
        return storage.load(name).config.held_out
    first = HELD_OUT_SEEDS
    if request.reviewer.kind in PLAYING_REVIEWERS:
        first = 1_000_000 + secrets.randbelow(1_000_000_000)
    return tuple(range(first, first + HELD_OUT))


def _root(request: LoopRequest, name: str, game: str) -> Scaffold:
    if request.resume and storage.exists(name):
        loop = storage.load(name)
        if request.scaffold in (None, loop.config.root.ref):  # which may have been changed since; the copy has not
            return loop.root()
    return lineage.resolve(request.scaffold or f"{game}/v0")


def _with_budget(then: LoopConfig, now: LoopConfig) -> LoopConfig:
    """The settings of a loop that is resumed: limits, and what the reviewer takes, as they were unless named again."""
    budget = then.budget.model_copy(update=now.budget.model_dump(exclude_none=True))
    named = now.reviewer.model_dump(mode="json", exclude_unset=True)
    named |= {"kind": now.reviewer.kind, "model": now.reviewer.model}
    named["options"] = {**then.reviewer.options, **named.get("options", {})}
    return now.model_copy(update={"budget": budget, "reviewer": then.reviewer.model_copy(update=named)})


def _resumable(planned: LoopPlan) -> LoopFolder:
    """The loop of the plan's name, if it is the same search. Raises `UserError` with the differences."""
    loop = storage.load(planned.config.name)
    runs.check_same("loop", planned.config.name, loop.config.differences(planned.config))
    return loop
