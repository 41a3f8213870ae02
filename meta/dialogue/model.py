"""The meta-LLM of a dialogue, made from settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from automem.errors import UserError
from automem.models import litellm_model
from automem.models.litellm_model import LiteLLM, Patience
from automem.models.protocol import Sampling
from meta.dialogue.options import LlmOptions

Options = TypeVar("Options", bound=BaseModel)


def options_of(kind: type[Options], given: Mapping[str, Any], whose: str) -> Options:
    """Options as settings give them, checked. Raises `UserError` that begins with `whose` they are."""
    try:
        return kind.model_validate(dict(given))
    except ValidationError as error:
        listed = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise UserError(f"{whose}: {listed}") from error


def make(name: str, api_base: str, options: LlmOptions, whose: str) -> LiteLLM:
    """The model of this name; reaches nothing. Raises `UserError` that begins with `whose` it is."""
    if not name:
        raise UserError(f"{whose}: name the meta-LLM: --meta-model provider/model, such as openai/gpt-4o-mini")
    litellm_model.check(name)
    return LiteLLM(
        name,
        Sampling(temperature=options.temperature, max_tokens=options.max_tokens),
        api_base=api_base or None,
        patience=Patience(attempts=options.retries + 1, timeout=options.timeout),
    )
