"""`halving`: no LLM. Each round tries variants of the best recipe so far; held-out loss says which go on.

How the variants are narrowed down is successive halving (Jamieson and Talwalkar 2016): `specialist.search.rungs`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from specialist.recipe import Recipe
from specialist.search.decider import Proposal
from specialist.search.ledger import Row

STEPS = (0.25, 0.5, 2.0, 4.0)
"""Factors by which a learning rate, rank or number of epochs is changed."""

_HIGHEST_RANK = 512


class Halving:
    """Variants of the best recipe; the best itself is among them in the first round."""

    name = "halving"

    def __init__(self, width: int, seed: int = 0) -> None:
        """Args: width: recipes of a round; seed: of the choice of variants."""
        self._width = width
        self._seed = seed

    async def ready(self) -> None:
        """Nothing to reach."""

    async def propose(self, number: int, ledger: Sequence[Row], start: Recipe) -> Sequence[Proposal]:
        """As `specialist.search.decider.Decider`; a pure function of its arguments."""
        full = [row for row in ledger if row.is_whole]
        best = min(full, key=lambda row: row.rank_loss) if full else None
        centre = start if best is None else best.recipe
        tried = {_key(row.recipe) for row in full}
        proposals = []
        if best is None:
            proposals.append(Proposal(recipe=start, why="the recipe that the search began with"))
            tried.add(_key(start))
        around = "the first one" if best is None else f"{best.number}, loss {best.rank_loss:.3f}"
        for recipe, why in self._variants(number, centre):
            if len(proposals) == self._width:
                break
            if _key(recipe) not in tried:
                tried.add(_key(recipe))
                proposals.append(Proposal(recipe=recipe, why=f"{why}; from {around}"))
        return proposals

    def _variants(self, number: int, centre: Recipe) -> Iterator[tuple[Recipe, str]]:
        """Single changes first, in an order drawn for the round, then pairs of them."""
        single = [
            *(_rate(centre, factor) for factor in STEPS),
            *(_rank(centre, factor) for factor in STEPS),
            *(_epochs(centre, factor) for factor in STEPS[1:3]),
        ]
        order = random.Random(f"{self._seed}/{number}")
        order.shuffle(single)
        yield from single
        for _ in range(50):
            recipe, first = order.choice([_rate(centre, factor) for factor in STEPS])
            recipe, second = _rank(recipe, order.choice(STEPS))
            yield recipe, f"{first}, {second}"

    async def close(self) -> None:
        """Nothing to end."""


def _rate(recipe: Recipe, factor: float) -> tuple[Recipe, str]:
    rate = min(0.5, recipe.train.learning_rate * factor)
    train = recipe.train.model_copy(update={"learning_rate": rate})
    return recipe.model_copy(update={"train": train}), f"learning rate {rate:.3g}"


def _rank(recipe: Recipe, factor: float) -> tuple[Recipe, str]:
    """The scale of the update, alpha over rank, stays as it is."""
    rank = max(1, min(_HIGHEST_RANK, round(recipe.lora.rank * factor)))
    lora = recipe.lora.model_copy(update={"rank": rank, "alpha": recipe.lora.alpha * rank / recipe.lora.rank})
    return recipe.model_copy(update={"lora": lora}), f"rank {rank}"


def _epochs(recipe: Recipe, factor: float) -> tuple[Recipe, str]:
    epochs = recipe.train.epochs * factor
    train = recipe.train.model_copy(update={"epochs": epochs})
    return recipe.model_copy(update={"train": train}), f"{epochs:g} epochs"


def _key(recipe: Recipe) -> str:
    return recipe.model_dump_json(exclude={"name"})
