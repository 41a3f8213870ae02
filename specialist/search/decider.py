"""What every decider offers: the ledger in, recipes to train next out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

from specialist.recipe import Recipe
from specialist.search.ledger import Row


class Proposal(BaseModel):
    """A recipe to train."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    recipe: Recipe
    why: str
    data: Literal["reuse", "regenerate"] = "reuse"
    """Whether to learn from what is there, or to collect further episodes first."""
    criteria: str = ""
    """Version of the criteria by which ``llm`` selects (`specialist.select.llm`); empty for those in force."""


class Decider(Protocol):
    """Proposes what to train next.

    Attributes:
        name: of its kind.
    """

    name: str

    async def ready(self) -> None:
        """Return once it can be asked; raises `automem.errors.UserError` when it cannot."""
        ...

    async def propose(self, number: int, ledger: Sequence[Row], start: Recipe) -> Sequence[Proposal]:
        """Recipes of a round.

        Args:
            number: of the round, from 1.
            ledger: all rows of earlier rounds, in order.
            start: the recipe that the search began with.

        Returns: at least one; none ends the search.
        """
        ...

    async def close(self) -> None:
        """Let go of connections. Safe to call twice."""
        ...
