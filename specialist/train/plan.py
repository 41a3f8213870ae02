"""What a training run will do and take, and everything that is wrong with it, before anything starts."""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from automem.errors import UserError
from specialist import adapter, base_model
from specialist.adapter import BaseModelId
from specialist.example import Dataset
from specialist.recipe import LoraRecipe
from specialist.serve import slots
from specialist.train import memory, spec
from specialist.train.devices import Machine, machine
from specialist.train.launch import command
from specialist.train.memory import GIB
from specialist.train.spec import ADAPTER, Begun, Setup, TrainSpec
from specialist.train.work import Work, material, work

LIBRARIES = ("torch", "transformers", "datasets", "accelerate", "peft", "trl")

SPARE = 0.9
"""Share of the free memory that a run may take: the estimate is one."""

LARGEST_PASS = {"cpu": 6_144, "gpu": 16_384}
"""Tokens that a pass computes at most, if its examples can be divided: more at once is hardly faster, and takes
memory that others may want."""


@dataclass(frozen=True)
class TrainPlan:
    """What a run will do.

    Attributes:
        problems: all that is wrong, for people; with any, nothing is started, and the figures may be missing.
        begun: what the run is told; None with problems.
        command: how it is started, as a person would type it.
        gpus: that are there, as text.
        examples, held_out: that are learned and measured.
        left_out: because they are longer than the recipe's cutoff, or cannot be said.
        epoch_tokens: of all examples, prompts and targets.
        target_tokens: of them, those that are learned.
        computed_tokens: of the whole run, after what examples share is counted once a pass.
        steps: of the optimiser.
        step_examples: examples of one step, all devices together; an epoch's last steps may have fewer.
        adapter_parameters: weights that are trained.
        memory_needed, memory_free: bytes, of one device.
    """

    problems: tuple[str, ...]
    begun: Begun | None = None
    command: str = ""
    gpus: tuple[str, ...] = ()
    examples: int = 0
    held_out: int = 0
    left_out: int = 0
    epoch_tokens: int = 0
    target_tokens: int = 0
    computed_tokens: int = 0
    steps: int = 0
    step_examples: int = 0
    adapter_parameters: int = 0
    memory_needed: int = 0
    memory_free: int = 0

    def seconds(self, computed_per_second: float) -> float:
        """How long training takes where so many tokens are computed in a second; measuring is not counted."""
        return self.computed_tokens / computed_per_second


def plan(what: TrainSpec, folder: Path, here: Machine | None = None) -> TrainPlan:
    """Plan a run, and look for everything that is wrong with it.

    Args:
        what: to train.
        folder: of the run; it may have been begun.
        here: the machine; looked at when not given.

    Nothing is started, and nothing fetched. Raises nothing that a person can mend: that is in `problems`.
    """
    try:
        return _plan(what, folder, here)
    except UserError as error:
        return TrainPlan((str(error),))


def outlook(what: TrainSpec, folder: Path, here: Machine | None = None) -> TrainPlan:
    """What is known of a run before there is a dataset, so that nothing is collected for what cannot be trained.

    Args:
        what: to train; its dataset is not looked at.
        folder: where a run would be.
        here: the machine; looked at when not given.

    Tokens and memory are bounds: every example as long as the recipe's cutoff, and one computed at a time. Memory that
    such a one would not have is no problem yet, as examples may be shorter. Nothing is fetched, and nothing raised.
    """
    if missing := _missing():
        return TrainPlan(missing)
    here = here or machine()
    lora, train = what.recipe.lora, what.recipe.train
    setup = _setup(what, here).model_copy(update={"batch": 1})
    known = TrainPlan(
        (*_unserved(what), *_no_devices(what, here)),
        command=shlex.join(command(setup, folder, port=0)),
        gpus=_named(here),
        examples=what.recipe.data.examples,
        epoch_tokens=what.recipe.data.examples * train.cutoff,
        step_examples=train.batch * train.accumulation * setup.processes,
        memory_free=_free(setup, here),
    )
    try:
        model = memory.shape(base_model.folder(what.base, download=False))
    except UserError as error:
        return replace(known, problems=(*known.problems, str(error)))
    takes = memory.needed(
        model, lora, setup, computed=train.cutoff, longest=train.cutoff, target=train.cutoff // 8, sharing=False
    )
    return replace(
        known,
        problems=(*known.problems, *_no_modules(lora, model, what.base)),
        adapter_parameters=memory.adapter_parameters(model, lora),
        memory_needed=takes,
    )


def _missing() -> tuple[str, ...]:
    """Which libraries are not there, in words."""
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    return (f"not installed: {', '.join(missing)}; get them with `make setup`",) if missing else ()


def _plan(what: TrainSpec, folder: Path, here: Machine | None) -> TrainPlan:
    if missing := _missing():
        return TrainPlan(missing)
    here = here or machine()
    recipe = what.recipe
    dataset = Dataset(what.dataset)
    base = base_model.folder(what.base, download=False)
    model = memory.shape(base)
    problems = [*_unserved(what), *_no_modules(recipe.lora, model, what.base), *_no_devices(what, here)]
    before = spec.begun(folder)
    identity = BaseModelId(name=what.base, fingerprint=base_model.fingerprint(base))
    setup = before.setup if before else _setup(what, here)
    begun = Begun(spec=what, setup=setup, base=identity, data=dataset.facts.identity)
    problems += _another(folder, before, begun)
    if before and not problems and setup.device == "gpu" and len(here.gpus) < setup.processes:
        problems.append(
            f"{folder} was begun on {setup.processes} GPUs, and there are {len(here.gpus)}; go on where it began"
        )
    if problems:
        return TrainPlan(tuple(problems), gpus=_named(here))

    given = material(dataset, base, recipe.train.cutoff)
    free = _free(setup, here)
    for chosen in [setup] if before else _setups(setup, recipe.train.batch * recipe.train.accumulation):
        planned = work(given, recipe.train, chosen)
        takes = _takes(planned, model, recipe.lora, chosen)
        if takes <= SPARE * free and planned.schedule.largest <= LARGEST_PASS[chosen.device]:
            break
    # A run that was begun has shown that it fits.
    if takes > SPARE * free and not before:
        problems.append(_too_little(takes, free, chosen, planned))
    examples = given.train.examples
    return TrainPlan(
        tuple(problems),
        begun.model_copy(update={"setup": chosen}),
        shlex.join(command(chosen, folder, port=0)),
        _named(here),
        examples=len(examples),
        held_out=len(planned.held_out),
        left_out=dataset.facts.train - len(examples),
        epoch_tokens=sum(map(len, examples)),
        target_tokens=sum(len(one.target) for one in examples),
        computed_tokens=sum(planned.schedule.computed),
        steps=len(planned.schedule.steps),
        step_examples=recipe.train.batch * recipe.train.accumulation * chosen.processes,
        adapter_parameters=memory.adapter_parameters(model, recipe.lora),
        memory_needed=takes,
        memory_free=free,
    )


def _unserved(what: TrainSpec) -> list[str]:
    """Why no server could serve the adapter."""
    rank = what.recipe.lora.rank
    if what.max_rank is not None and rank > what.max_rank:
        return [
            f"rank {rank} is above the server's maximum, {what.max_rank}: give the server more room, or a lower rank"
        ]
    try:
        slots.room_for(rank)
    except UserError as error:
        return [str(error)]
    return []


def _no_modules(lora: LoraRecipe, model: memory.Shape, base: str) -> list[str]:
    """Which modules the base model does not have."""
    absent = [module for module, sizes in memory.adapted(model, lora.modules).items() if not sizes]
    if not absent:
        return []
    has = sorted({name.rpartition(".")[2] for name in model.matrices if ".layers." in name})
    return [f"{base} has no {', '.join(absent)} to adapt; it has {', '.join(has)}"]


def _no_devices(what: TrainSpec, here: Machine) -> list[str]:
    """Why there is nothing to train on as it was asked for."""
    if what.device == "gpu" and not here.gpus:
        why = f": {here.unusable}" if here.unusable else ""
        return [f"a GPU was asked for, and there is none that can be used{why}; --device cpu trains without one"]
    on = _setup(what, here).device
    most = len(here.gpus) if on == "gpu" else here.cores
    if what.processes > most:
        return [f"{what.processes} processes were asked for, and there are {most} {'GPUs' if on == 'gpu' else 'cores'}"]
    return []


def _another(folder: Path, before: Begun | None, begun: Begun) -> list[str]:
    """Why the run that was begun in this folder is not the one that is wanted."""
    found = []
    if before and before.base.fingerprint != begun.base.fingerprint:
        found.append(f"{folder} holds an adapter for another base model, {before.base.name}; take another folder")
    elif before and not before.same(begun):
        found.append(f"{folder} was begun with another recipe or other data; take another folder")
    if (folder / ADAPTER).is_dir():
        made = adapter.load(folder / ADAPTER).manifest
        if made.base.fingerprint != begun.base.fingerprint and not found:
            found.append(f"{folder / ADAPTER} is for another base model, {made.base.name}; take another folder")
    return found


def _setup(what: TrainSpec, here: Machine) -> Setup:
    """Where the run computes, with all of a step's examples in one pass."""
    batch = what.recipe.train.batch * what.recipe.train.accumulation
    if what.device == "gpu" or (what.device == "auto" and here.gpus):
        exact = all(gpu.bfloat16 for gpu in here.gpus)
        return Setup(
            device="gpu",
            processes=what.processes or max(1, len(here.gpus)),
            dtype="bfloat16" if exact else "float32",
            batch=batch,
            checkpointing=False,
        )
    dtype: Literal["bfloat16", "float32"] = "bfloat16" if here.bfloat16 else "float32"
    return Setup(device="cpu", processes=what.processes or 1, dtype=dtype, batch=batch, checkpointing=False)


def _setups(setup: Setup, examples: int) -> Iterator[Setup]:
    """Ways to compute a step of so many examples on a device, the one that takes most memory first."""
    divisors = [batch for batch in range(examples, 0, -1) if examples % batch == 0]
    for batch in divisors:
        yield setup.model_copy(update={"batch": batch})
    yield setup.model_copy(update={"batch": 1, "checkpointing": True})


def _takes(planned: Work, model: memory.Shape, lora: LoraRecipe, setup: Setup) -> int:
    examples = planned.given.train.examples
    return memory.needed(
        model,
        lora,
        setup,
        computed=planned.schedule.largest,
        longest=max(map(len, examples)),
        target=max(len(one.target) for one in examples),
        sharing=planned.sharing and setup.batch > 1,
    )


def _free(setup: Setup, here: Machine) -> int:
    """Bytes that one process may have."""
    if setup.device == "gpu":
        return min((gpu.free for gpu in here.gpus[: setup.processes]), default=0)
    return here.free // setup.processes


def _too_little(takes: int, free: int, setup: Setup, planned: Work) -> str:
    longest = max(map(len, planned.given.train.examples))
    where = "the GPU has" if setup.device == "gpu" else "this machine has"
    each = " for each process" if setup.processes > 1 else ""
    return (
        f"about {takes / GIB:.1f} GiB of memory are needed, and {where} {free / GIB:.1f} free{each}, even with one"
        f" example at a time; the longest has {longest} tokens: a lower cutoff, a lower rank or a smaller base model"
        " takes less"
    )


def _named(here: Machine) -> tuple[str, ...]:
    return tuple(f"{gpu.name}, {gpu.free / GIB:.0f} of {gpu.total / GIB:.0f} GiB free" for gpu in here.gpus)
