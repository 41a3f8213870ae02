"""Successive halving: many recipes get a little training, and the better ones of each rung get more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specialist.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Rung:
    """One rung.

    Attributes:
        recipes: that are trained.
        part: of the epochs that each asks for, in (0, 1].
    """

    recipes: int
    part: float


def rungs(width: int, keep: int) -> list[Rung]:
    """The rungs for so many recipes, of which one in `keep` goes on each time; the last one trains in full.

    One recipe is trained in full at once: there is nothing to choose.
    """
    sizes = [width]
    while sizes[-1] > 1:
        sizes.append(math.ceil(sizes[-1] / keep))
    return [Rung(size, keep ** -(len(sizes) - 1 - i)) for i, size in enumerate(sizes)]


def shortened(recipe: Recipe, part: float) -> Recipe:
    """The recipe with a part of its epochs; its schedule of learning rates ends with them."""
    if part == 1:
        return recipe
    train = recipe.train.model_copy(update={"epochs": recipe.train.epochs * part})
    return recipe.model_copy(update={"train": train})


def survivors(losses: Sequence[float], most: int) -> list[int]:
    """Which go on: the positions of the lowest finite losses, at most so many, in their own order."""
    finite = [i for i, loss in enumerate(losses) if math.isfinite(loss)]
    return sorted(sorted(finite, key=lambda i: (losses[i], i))[:most])
