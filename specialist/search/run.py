"""From what a person asked for to a search that runs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import games
from automem import evaluate, lineage, runs
from automem.errors import UserError
from automem.evaluate import Request
from automem.models import registry
from automem.runs import PlannedTask, PlayedModel, PlayedScaffold
from automem.sandbox import SandboxConfig, choose_mode
from automem.scaffold import Scaffold
from games import suites
from meta.settings import GateSettings, first_problem
from specialist import base_model
from specialist.recipe import Recipe
from specialist.search import deciders, forecast, ledger, storage
from specialist.search.players import Players
from specialist.search.search import Search
from specialist.search.settings import (
    COLLECT_SEEDS,
    GATE_SEEDS,
    HELD_OUT_SEEDS,
    BaseSettings,
    CollectSettings,
    DeciderSettings,
    EngineSettings,
    SearchConfig,
    TrainSettings,
)
from specialist.search.storage import SearchFolder
from specialist.search.watching import SearchWatcher
from specialist.select import engines
from specialist.select.engine import Written
from specialist.serve import bases
from specialist.train.plan import outlook

HELD_OUT = 40
"""Held-out seeds when nobody names any."""


@dataclass(frozen=True)
class SearchRequest:
    """What a person asked for; everything that is not given follows the suite.

    Attributes:
        game: a game, a suite of one game, or one task.
        base: the model whose specialist is trained.
        gameplay: commits every action.
        recipe: the one to begin with.
        teacher: does the memory work that is learnt; None for the gameplay model.
        scaffold: a version, named as for `automem.lineage.locate`.
        collect_seeds, gate_seeds, held_out: seeds as ``games.suites.parse_seeds`` reads them, or None.
        traces: runs to learn from instead of collecting.
        collect_steps, steps: step limits while collecting, and of the gate and held-out seeds.
        consult_turns: replies of a PLAN phase in which the teacher may read.
        name: the search's name, or None for a new one.
        resume: go on with the search of this name.
        engine, decider, training, gate, sandbox: see `specialist.search.settings`.
    """

    game: str
    base: BaseSettings
    gameplay: PlayedModel
    recipe: Recipe
    teacher: PlayedModel | None = None
    scaffold: str | None = None
    collect_seeds: str | None = None
    traces: tuple[str, ...] = ()
    gate_seeds: str | None = None
    held_out: str | None = None
    collect_steps: int | None = None
    steps: int | None = None
    consult_turns: int = 1
    name: str | None = None
    resume: bool = False
    engine: EngineSettings = field(default_factory=EngineSettings)
    decider: DeciderSettings = field(default_factory=DeciderSettings)
    training: TrainSettings = field(default_factory=TrainSettings)
    gate: GateSettings | None = field(default_factory=GateSettings)
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)


@dataclass(frozen=True)
class SearchPlan:
    """A checked request: the settings, and the scaffold that is played."""

    config: SearchConfig
    scaffold: Scaffold


def plan(request: SearchRequest) -> SearchPlan:
    """Check everything that can be checked before anything starts or is reached. Raises errors for people."""
    if request.resume and request.name is None:
        raise UserError("--resume needs the name of the search to go on with: add --run NAME")
    most = request.gate.most if request.gate is not None else 1
    tasks = _tasks(request, request.gate_seeds or f"{GATE_SEEDS}..{GATE_SEEDS + most - 1}", request.steps, most)
    game = games.game_of(tasks[0].task)
    name = runs.valid_name(request.name or runs.new_name(f"loop2-{game}", request.base.name))
    played = _scaffold(request, name, game)
    if played.game != game:
        raise UserError(f"scaffold {played.ref} plays {played.game}, and {request.game} is {game}")
    collected: tuple[PlannedTask, ...] = ()
    if not request.traces:
        wanted = _episodes(request.recipe)
        seeds = request.collect_seeds or f"{COLLECT_SEEDS}..{COLLECT_SEEDS + wanted - 1}"
        collected = _tasks(request, seeds, request.collect_steps or request.steps, None)
    try:
        config = SearchConfig(
            name=name,
            game=game,
            created=runs.now(),
            base=request.base,
            gameplay=request.gameplay,
            scaffold=PlayedScaffold(ref=played.ref, identity=played.identity, folder=f"scaffolds/{played.ref}"),
            collect=CollectSettings(
                teacher=request.teacher or request.gameplay,
                tasks=collected,
                traces=request.traces,
                consult_turns=request.consult_turns,
            ),
            recipe=request.recipe,
            tasks=tasks,
            held_out=suites.parse_seeds(request.held_out or f"{HELD_OUT_SEEDS}..{HELD_OUT_SEEDS + HELD_OUT - 1}"),
            engine=request.engine,
            decider=request.decider,
            training=request.training,
            gate=request.gate,
            versions=runs.versions(task.task for task in tasks),
            sandbox=request.sandbox,
        )
    except ValueError as error:
        raise UserError(first_problem(error)) from error
    if request.base.server:
        registry.check(request.base.server)
    for model in (request.gameplay, config.collect.teacher):
        if not config.serves(model):
            registry.check(model.name)
    bases.base(request.base.name)
    engines.check(request.engine)
    deciders.make(request.decider, runs.runs_folder() / name)
    choose_mode(request.sandbox)
    planned = SearchPlan(config, played)
    if request.resume and storage.exists(name):
        _resumable(planned)
    else:
        lineage.check_unchanged(played)
        runs.free_folder(name)
    return planned


async def run(
    planned: SearchPlan, resume: bool, watcher: SearchWatcher, workers: int
) -> tuple[SearchFolder, dict[str, Any]]:
    """Create or reopen the search, and run it to its end.

    Args:
        planned: what to do.
        resume: go on with a search that is there.
        watcher: is told what happens.
        workers: episodes at once.
    """
    config = planned.config
    await asyncio.to_thread(base_model.folder, config.base.name)  # converted or fetched the first time
    found = await asyncio.to_thread(outlook, forecast.first_training(config), runs.runs_folder() / config.name)
    if found.problems:
        raise UserError("\n".join(["nothing can be trained here:", *(f"  {text}" for text in found.problems)]))
    there = resume and storage.exists(config.name)
    search = _resumable(planned) if there else storage.create(config, planned.scaffold)
    config = _going_on(search.config, config)
    decider = deciders.make(config.decider, search.folder)
    engine = engines.make(config.engine, search.folder)
    try:
        with watcher, runs.exclusive(search.folder):
            search = storage.change(search, config)
            watcher.opened(search, len(ledger.read(search.folder)))
            await decider.ready()
            players = Players(search, watcher, workers)
            try:
                return search, await Search(search, decider, engine, players, watcher, workers).run()
            finally:
                await players.close()
    finally:
        await decider.close()
        if isinstance(engine, Written):
            await engine.close()


def _tasks(request: SearchRequest, seeds: str, steps: int | None, most: int | None) -> tuple[PlannedTask, ...]:
    planned = evaluate.tasks_of_one_game(Request(request.game, request.gameplay, seeds=seeds, steps=steps))
    return tuple(task.model_copy(update={"seeds": task.seeds[:most]}) for task in planned)


def _episodes(recipe: Recipe) -> int:
    """Episodes of each task to collect when nobody says: what the recipe's quotas need, twice over."""
    data = recipe.data
    return max(4, -(-2 * data.examples // max(1, round(data.per_episode * data.best_episodes))))


def _scaffold(request: SearchRequest, name: str, game: str) -> Scaffold:
    if request.resume and storage.exists(name):
        search = storage.load(name)
        if request.scaffold in (
            None,
            search.config.scaffold.ref,
        ):  # which may have been changed since; the copy has not
            return search.scaffold()
    return lineage.resolve(request.scaffold or f"{game}/v0")


def _resumable(planned: SearchPlan) -> SearchFolder:
    """The search of the plan's name, if it is the same. Raises `UserError` with the differences."""
    search = storage.load(planned.config.name)
    runs.check_same("search", planned.config.name, search.config.differences(planned.config))
    return search


def _going_on(then: SearchConfig, now: SearchConfig) -> SearchConfig:
    """The settings of a search that is resumed: as they are named now, with addresses that were not as they were.

    Where a server is and where training runs can change, and code that nothing contains is allowed anew each time.
    """

    def at(part: str) -> Any:
        old, new = getattr(then, part), getattr(now, part)
        return new.model_copy(update={"api_base": new.api_base or old.api_base})

    teacher = now.collect.teacher
    teacher = teacher.model_copy(update={"api_base": teacher.api_base or then.collect.teacher.api_base})
    return now.model_copy(
        update={
            "created": then.created,
            "versions": then.versions,
            "base": at("base") if now.base.server else now.base,
            "collect": now.collect.model_copy(update={"teacher": teacher}),
            **{part: at(part) for part in ("gameplay", "engine", "decider")},
        }
    )
