"""How much memory training takes, estimated from a model's shape.

For one process, in bytes::

    weights       parameters x width                           width: 4 in float32, 2 in bfloat16
    adapter       rank x (in + out) of every adapted matrix x 16    itself, its gradient, two moments, in float32
    activations   computed tokens x layers x (A hidden + B intermediate)   kept for the way back
    cache         examples x (shared + own) tokens x layers x 3 hidden     keys and values that examples share
    mask          computed tokens x tokens of the longest x layers    who may look at whom; none for a single example
    logits        examples x kept tokens x vocabulary x 14     of the last columns only, partly in float32
    libraries     1 GiB, and on a GPU another for its own

With checkpointing a layer's input is all that is kept of it, and one layer is computed anew at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from specialist import base_model
from specialist.recipe import LoraRecipe
from specialist.train.spec import Setup

GIB = 2**30
ACTIVATIONS = (10, 4)
"""Numbers kept of a computed token in one layer, for each of `hidden` and of `intermediate`; measured with Llamas."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a model decides memory.

    Attributes:
        parameters: how many weights.
        layers, hidden, intermediate, vocabulary: of the language model.
        matrices: (out, in) of every matrix, by name.
    """

    parameters: int
    layers: int
    hidden: int
    intermediate: int
    vocabulary: int
    matrices: dict[str, tuple[int, int]]


def shape(folder: Path) -> Shape:
    """The shape of the model in a folder. Raises `UserError`."""
    config, weights = base_model.configuration(folder), base_model.shapes(folder)
    hidden = int(config.get("hidden_size") or 0)
    matrices = {name.removesuffix(".weight"): size for name, size in weights.items() if len(size) == 2}
    return Shape(
        parameters=sum(math.prod(size) for size in weights.values()),
        layers=int(config.get("num_hidden_layers") or 0),
        hidden=hidden,
        intermediate=int(config.get("intermediate_size") or 4 * hidden),
        vocabulary=int(config.get("vocab_size") or 0),
        matrices={name: (size[0], size[1]) for name, size in matrices.items()},
    )


def adapted(model: Shape, modules: Iterable[str]) -> dict[str, list[tuple[int, int]]]:
    """The matrices that each of these module names means, as PEFT reads them; empty for a name that means none."""
    return {
        module: [size for name, size in model.matrices.items() if name == module or name.endswith(f".{module}")]
        for module in modules
    }


def adapter_parameters(model: Shape, lora: LoraRecipe) -> int:
    """Weights of an adapter."""
    found = adapted(model, lora.modules).values()
    return sum(lora.rank * (rows + columns) for sizes in found for rows, columns in sizes)


def needed(
    model: Shape, lora: LoraRecipe, setup: Setup, *, computed: int, longest: int, target: int, sharing: bool
) -> int:
    """Bytes that one process of a training run takes at most.

    Args:
        model: of the base model.
        lora: the adapter.
        setup: how it computes.
        computed: tokens that the largest pass computes.
        longest: tokens of the longest example.
        target: tokens of the longest target.
        sharing: whether passes compute what their examples share once.
    """
    width = 4 if setup.dtype == "float32" else 2
    kept_a_layer = computed * (ACTIVATIONS[0] * model.hidden + ACTIVATIONS[1] * model.intermediate) * width
    if setup.checkpointing:
        activations = model.layers * computed * model.hidden * width + kept_a_layer
    else:
        activations = model.layers * kept_a_layer
    cache = model.layers * setup.batch * longest * 3 * model.hidden * width if sharing else 0
    masks = (1 if setup.checkpointing else model.layers) if setup.batch > 1 else 0
    mask = masks * computed * longest * width
    logits = setup.batch * (target + 1) * model.vocabulary * 14
    libraries = GIB if setup.device == "cpu" else 2 * GIB
    adapter = adapter_parameters(model, lora) * 16
    return model.parameters * width + adapter + activations + cache + mask + logits + libraries
