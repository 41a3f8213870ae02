"""Who plays in a search: the untrained base model and its specialists, each beside the same gameplay model."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import games
from automem import evaluate, runs, scaffold
from automem.agent import Specialist
from automem.episode import EpisodeJob, EpisodeListener, EpisodeResult, load_result, write_json
from automem.errors import UserError
from automem.executor import LocalExecutor, Outcome
from automem.models.protocol import Model, Sampling
from automem.models.served import Served
from automem.models.vllm_server import LoraSlots
from automem.runs import PlannedTask, PlayedModel, PlayedScaffold, PlayedSpecialist, Run, RunConfig
from automem.scaffold import Scaffold
from automem.summary import summarise
from meta.episode_cache import EpisodeCache
from specialist import base_model
from specialist.adapter import Adapter
from specialist.example import Example
from specialist.search.settings import SearchConfig
from specialist.search.storage import SearchFolder
from specialist.serve import bases
from specialist.serve.model import SpecialistModel, base_with_slots, make_memory_model, specialist_name
from specialist.serve.slots import slots_for
from specialist.train.served_tokens import check_server
from specialist.train.tokens import Tokens

Purpose = Literal["gate", "held-out"]

HALF_A_GPU = 0.45
"""Of a GPU's memory for each of two servers, where a merged copy is served beside the base model."""

UNTRAINED = "base"


@dataclass(frozen=True, slots=True)
class _Player:
    executor: LocalExecutor
    models: tuple[Model, ...]

    @property
    def memory_server(self) -> tuple[str, str] | None:
        """Address, and the name there, of the server that does the memory work; None for one that says nothing."""
        memory = self.models[-1]
        if isinstance(memory, SpecialistModel):
            return memory.api_base, memory.adapter.served_name
        if isinstance(memory, Served) and memory.server is not None:
            return memory.server.api_base, memory.server.served_name
        return None


class Players:
    """Plays; a server that one player needs is started once, and shared with the others where it can be."""

    def __init__(self, search: SearchFolder, listener: EpisodeListener, workers: int) -> None:
        """
        Args:
            search: its folder gets the episodes.
            listener: watches all of them.
            workers: episodes at once.
        """
        self._search = search
        self._listener = listener
        self._workers = workers
        self._cache = EpisodeCache()
        self._open: dict[str, _Player] = {}
        self._slots: LoraSlots | None = None
        self._checked: set[str] = set()

    async def play(
        self, adapter: Adapter | None, like: Adapter, seeds: Sequence[int], purpose: Purpose
    ) -> tuple[EpisodeResult, ...]:
        """Play seeds, or find that they were played.

        Args:
            adapter: the specialist; None for the untrained base model, which then does the same work.
            like: the specialist that is judged: the untrained model consults memory for as many turns as it does.
            seeds: of the search's gate, or held-out ones.
            purpose: which of both.

        Raises `UserError` when an episode could not be finished; the others are kept.
        """
        run = self.run(adapter, like, purpose)
        jobs = [job for job in run.jobs() if job.seed in set(seeds)]
        missing = [job for job in jobs if load_result(job.folder) is None]
        if missing:
            player = await self._ready(adapter, _consult_turns(adapter or like))
            await asyncio.gather(*(self._once(player.executor, job) for job in missing))
        outcomes = [Outcome(job, load_result(job.folder), None) for job in jobs]
        _summarise(run)
        return tuple(outcome.result for outcome in outcomes if outcome.result is not None)

    async def check_tokens(self, adapter: Adapter, examples: Sequence[Example]) -> None:
        """Whether the server of a specialist sees the tokens that it was trained on; asked once each.

        Raises `UserError` with the first difference.
        """
        if adapter.identity in self._checked:
            return
        player = await self._ready(adapter, _consult_turns(adapter))
        served = player.memory_server
        if served is not None:
            tokens = await asyncio.to_thread(lambda: Tokens(base_model.folder(self._search.config.base.name)))
            await asyncio.to_thread(check_server, tokens, *served, examples)
        self._checked.add(adapter.identity)

    async def close(self) -> None:
        """Let go of servers and processes."""
        for player in self._open.values():
            await player.executor.close()
            for model in player.models:
                await model.close()
        self._open.clear()

    def run(self, adapter: Adapter | None, like: Adapter, purpose: Purpose) -> Run:
        """The run that holds a player's episodes; created where it is not there."""
        config, turns = self._search.config, _consult_turns(adapter or like)
        folder = self._search.play(UNTRAINED if adapter is None else adapter.identity, purpose)
        if _consults_otherwise(folder, turns):
            folder = folder.with_name(f"{purpose}-{turns}-turns")
        if (folder / runs.RUN).is_file():
            return runs.load(str(folder))
        seeds = config.gate_seeds if purpose == "gate" else config.held_out
        tasks = [task.model_copy(update={"seeds": seeds}) for task in config.tasks]
        return runs.create(
            run_config(self._search, folder, tasks, config.gameplay, _played(config, adapter, turns)),
            {config.game: self._search.scaffold()},
            folder,
        )

    async def _once(self, executor: LocalExecutor, job: EpisodeJob) -> None:
        await asyncio.to_thread(self._cache.fetch, job)
        outcome = await executor.play(job)
        if outcome.result is None:
            raise UserError(f"{job.task}, seed {job.seed}: {outcome.error}")

    async def _ready(self, adapter: Adapter | None, turns: int) -> _Player:
        name = f"{UNTRAINED}, {turns}" if adapter is None else adapter.identity
        if name in self._open:
            return self._open[name]
        config = self._search.config
        if adapter is not None and not config.base.merged:
            needed = slots_for([adapter])
            if self._slots is None or not self._slots.hold(needed):
                await self.close()  # a server with more room takes the place of the one there is
                self._slots = needed
        memory = self._memory(adapter)
        player = acting(config, self._slots, self._workers)
        await player.ready()
        await memory.ready()
        load: Callable[[Path], Scaffold] = cache(lambda folder: scaffold.load(str(folder)))
        processes = min(self._workers, os.cpu_count() or 1)
        specialist = Specialist(memory, turns)
        executor = LocalExecutor(player, load, self._workers, processes, self._listener, config.sandbox, specialist)
        self._open[name] = _Player(executor, (player, memory))
        return self._open[name]

    def _memory(self, adapter: Adapter | None) -> Model:
        base = self._search.config.base
        return make_memory_model(
            base.server or base.name,
            adapter,
            Sampling(max_tokens=base.max_tokens or None),
            slots=None if base.merged else self._slots,
            merged=base.merged,
            gpu_share=HALF_A_GPU if base.merged else None,
            api_base=base.api_base,
        )


def acting(config: SearchConfig, slots: LoraSlots | None, workers: int) -> Model:
    """The model that commits every action.

    Args:
        config: the search's settings.
        slots: of the server that the base model shares with its specialists; None for as many as the model has alone.
        workers: episodes at once.
    """
    played = config.gameplay
    if not config.serves(played):
        return evaluate.make_model(played, processes=min(workers, os.cpu_count() or 1))
    if config.base.merged:  # specialists have servers of their own
        found = bases.base(played.name)
        return Served(played.name, lambda: found.config(None, gpu_share=HALF_A_GPU), found.sampling(played.sampling))
    return base_with_slots(played.name, played.sampling, slots)


def run_config(
    search: SearchFolder,
    folder: Path,
    tasks: Sequence[PlannedTask],
    model: PlayedModel,
    specialist: PlayedSpecialist,
) -> RunConfig:
    """The settings of one of a search's runs."""
    config, played = search.config, search.scaffold()
    return RunConfig(
        name=folder.relative_to(search.folder.parent).as_posix(),
        target=config.game,
        created=runs.now(),
        model=model,
        scaffolds={
            config.game: PlayedScaffold(ref=played.ref, identity=played.identity, folder=f"scaffolds/{played.ref}")
        },
        tasks=tuple(task.model_copy(update={"facts": games.facts(task.task)}) for task in tasks),
        versions=runs.versions(task.task for task in tasks),
        sandbox=config.sandbox,
        specialist=specialist,
    )


def _played(config: SearchConfig, adapter: Adapter | None, turns: int) -> PlayedSpecialist:
    base = config.base
    model = PlayedModel(name=base.server or base.name, api_base=base.api_base, max_tokens=base.max_tokens)
    if adapter is None:
        return PlayedSpecialist(model=model, consult_turns=turns)
    return PlayedSpecialist(
        model=model.model_copy(update={"name": specialist_name(model.name, adapter, base.merged)}),
        adapter=str(adapter.folder),
        identity=adapter.identity,
        merged=base.merged,
        consult_turns=turns,
    )


def _consult_turns(adapter: Adapter) -> int:
    return max(1, adapter.manifest.consult_turns)


def _consults_otherwise(folder: Path, turns: int) -> bool:
    """Whether a run is there whose memory work has another number of turns: specialists of a search may differ."""
    there = runs.load(str(folder)).config.specialist if (folder / runs.RUN).is_file() else None
    return there is not None and there.consult_turns != turns


def _summarise(run: Run) -> None:
    """Write ``summary.json`` of what was played, for people and reports."""
    found = [Outcome(job, result, None) for job in run.jobs() if (result := load_result(job.folder)) is not None]
    summary = {"run": run.config.name, "model": run.config.players, **summarise(found)}
    write_json(run.folder / runs.SUMMARY, summary)
