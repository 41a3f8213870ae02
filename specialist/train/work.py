"""All that a training run will do, known before it begins: what is learned when, measured when, saved when."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from automem.errors import UserError
from specialist import base_model
from specialist.example import Dataset
from specialist.recipe import TrainRecipe
from specialist.train.schedule import Pass, Schedule, cost, schedule, shapes_of, together
from specialist.train.spec import Setup
from specialist.train.tokens import Selection, Tokenised, Tokens

MEASURED = 5
"""How often the held-out loss is measured after the beginning."""

SAVED = 20
"""How often a run is saved at most."""

MEASURING_SHARE = 0.15
"""Of the time of a run that measuring may take."""

LEARNING = 2.5
"""Times as long as computing a loss takes learning from it."""

SHAREABLE = {"full_attention", "sliding_attention"}
"""Kinds of layers whose state after a beginning is a cache of keys and values."""

LEAST_HELD_OUT = 8
"""Held-out examples that are measured even where they take longer."""


@dataclass(frozen=True, slots=True)
class Material:
    """A dataset as tokens.

    Attributes:
        padding: token id to fill up with.
        shareable: whether the model computes what follows a beginning from cached keys and values alone.
        train, held_out: the examples to learn, and those to measure.
    """

    padding: int
    shareable: bool
    train: Selection
    held_out: Selection


@dataclass(frozen=True, slots=True)
class Work:
    """A training run's work.

    Attributes:
        given: the examples.
        sharing: whether passes compute what their examples share once.
        held_out: those of the held-out ones that are measured; none where there are none.
        schedule: who is learned when.
        measured: passes over `held_out`.
        measure_after: steps after which the held-out loss is measured, beside before the first; ends with the last.
        save_after: steps after which the run is saved.
    """

    given: Material
    sharing: bool
    held_out: tuple[Tokenised, ...]
    schedule: Schedule
    measured: tuple[Pass, ...]
    measure_after: tuple[int, ...]
    save_after: tuple[int, ...]


def material(dataset: Dataset, base: Path, cutoff: int) -> Material:
    """The examples of a dataset as tokens of the model in the folder `base`; longer ones left out.

    Raises `UserError` when nothing is left to learn, or this model cannot learn it.
    """
    tokens = Tokens(base)
    train, held_out = tokens.select(dataset.train(), cutoff), tokens.select(dataset.held_out(), cutoff)
    if not train.examples:
        raise UserError(
            f"{dataset.folder}: nothing to learn: of {dataset.facts.train} examples none has at most {cutoff} tokens,"
            f" the recipe's cutoff; the longest has {train.longest}"
        )
    layers = base_model.configuration(base).get("layer_types") or ()
    return Material(tokens.padding, set(layers) <= SHAREABLE, train, held_out)


def work(given: Material, recipe: TrainRecipe, setup: Setup) -> Work:
    """The work of training on this material.

    Args:
        given: what to learn.
        recipe: how.
        setup: where; `setup.batch` divides the examples that a device sees in a step.
    """
    sharing = given.shareable and not setup.checkpointing
    planned = schedule(
        given.train.examples,
        epochs=recipe.epochs,
        batch=setup.batch,
        slots=recipe.batch * recipe.accumulation // setup.batch,
        devices=setup.processes,
        seed=recipe.seed,
        sharing=sharing,
    )
    steps = len(planned.steps)
    measure_after = _evenly(steps, MEASURED)
    # A fixed order: the losses of all runs on a dataset are of the same examples, as far as they measure as many.
    held_out = tuple(random.Random(0).sample(given.held_out.examples, len(given.held_out.examples)))
    allowed = MEASURING_SHARE * LEARNING * sum(planned.computed) / (len(measure_after) + 1)
    while True:
        shapes = shapes_of(held_out, sharing)
        measured = together(range(len(held_out)), shapes, setup.batch)
        takes = sum(cost([shapes[i] for i in one]) for one in measured)
        if takes <= allowed or len(held_out) <= LEAST_HELD_OUT:
            break
        held_out = held_out[: max(LEAST_HELD_OUT, min(len(held_out) - 1, int(len(held_out) * allowed / takes)))]
    return Work(given, sharing, held_out, planned, tuple(measured), measure_after, _evenly(steps, SAVED))


def _evenly(steps: int, times: int) -> tuple[int, ...]:
    """So many steps out of 1..steps, as evenly as can be, with the last one."""
    return tuple(sorted({-(-steps * i // times) for i in range(1, times + 1)}))
