"""How the decider `llm` asks, and what it may spend."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from meta.dialogue import LlmOptions


class LlmDeciderOptions(LlmOptions):
    """Options of the decider, as settings give them."""

    shown: Annotated[int, Field(ge=0)] = 8
    """Gate seeds whose episodes it may read; it never sees the others, nor held-out ones."""
    turns: Annotated[int, Field(ge=1)] = 40
    """Replies of one round at most."""
    tokens: Annotated[int, Field(ge=1)] = 1_000_000
    """Tokens of one round at most, prompts and cached ones included."""
    minutes: Annotated[float, Field(gt=0)] = 30.0
    """Of one round."""
    usd: Annotated[float, Field(gt=0)] | None = None
    """Dollars of one round, as far as prices are known."""
