"""How a meta-LLM is asked."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class LlmOptions(BaseModel):
    """Options of a dialogue, as settings give them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tools: Literal["native", "text", "auto"] = "auto"
    """How it calls tools: as its server offers it; in text; in text where model or server know nothing else."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Of its sampling; not sent to models that refuse it."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """Tokens of one reply at most; None leaves it to the model's own default."""
    timeout: Annotated[float, Field(gt=0)] = 600.0
    """Seconds to wait for a reply."""
    retries: Annotated[int, Field(ge=0, le=20)] = 6
    """How often it is asked again after rate limits, timeouts and errors of the server."""
    malformed: Annotated[int, Field(ge=1, le=100)] = 6
    """Replies in a row without one call that can be understood, after which a dialogue fails."""
    calls: Annotated[int, Field(ge=1, le=100)] = 16
    """Calls of one reply that are carried out."""
    shortenings: Annotated[int, Field(ge=0, le=10)] = 4
    """How often a conversation that does not fit is made shorter for one reply."""
