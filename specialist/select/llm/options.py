"""How the engine `llm` asks, how much it shows, and what it may spend."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from meta.dialogue import LlmOptions


class LlmEngineOptions(LlmOptions):
    """Options of the engine, as settings give them."""

    most: Annotated[int, Field(ge=1, le=10_000)] = 40
    """Candidates of one episode that are shown: those that `rules` finds best, LOG and PLAN alike. All others are
    rejected. With `batch` it bounds what an episode costs: ceil(most / batch) dialogues."""
    batch: Annotated[int, Field(ge=1, le=64)] = 8
    """Candidates that are judged in one dialogue."""
    hints: bool = True
    """What `rules` says of a candidate is shown with it."""
    revise: bool = True
    """The model may revise the criteria, once a dialogue; what it writes is in force from the next round on."""
    turns: Annotated[int, Field(ge=1)] = 12
    """Replies of one dialogue at most."""
    tokens: Annotated[int, Field(ge=1)] = 200_000
    """Tokens of one dialogue at most, prompts and cached ones included."""
    minutes: Annotated[float, Field(gt=0)] = 10.0
    """Of one dialogue."""
    usd: Annotated[float, Field(gt=0)] | None = None
    """Dollars of all dialogues of a search, as far as prices are known; no dialogue is begun beyond that."""
