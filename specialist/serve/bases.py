"""Base models that we serve ourselves: ``smollm2``, a Hugging Face folder, or a model's name there."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from automem.errors import UserError
from automem.models import smollm2
from automem.models.protocol import Sampling
from automem.models.vllm_server import LoraSlots, ServerConfig
from specialist import base_model

MAX_CONTEXT = 16_384
"""Tokens of context that a model gets at most, where it could have more: what training takes at most."""

MEMORY_WORK_TOKENS = 256
"""Most tokens of one reply of a small specialist: what it learns from has up to some 200."""

_NAME = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True, slots=True)
class Base:
    """A base model.

    Attributes:
        name: as people write it.
        served_name: under which a server of ours answers.
    """

    name: str
    served_name: str

    def folder(self) -> Path:
        """Its Hugging Face folder; converts or fetches it the first time. Raises `UserError`."""
        return base_model.folder(self.name)

    def fingerprint(self) -> str:
        """See `specialist.adapter.BaseModelId`."""
        return base_model.fingerprint(self.folder())

    def config(self, slots: LoraSlots | None, gpu_share: float | None = None) -> ServerConfig:
        """How a server of ours serves it, with room for adapters.

        Args:
            slots: the room; None for none.
            gpu_share: of one GPU's memory, in (0, 1); default what suits the model alone.
        """
        if self.name == smollm2.NAME:
            config = smollm2.server_config()
        else:
            folder = self.folder()
            config = ServerConfig(str(folder), self.served_name, max_model_len=context_tokens(folder))
        return replace(config, lora=slots, gpu_memory_utilization=gpu_share or config.gpu_memory_utilization)

    def sampling(self, asked: Sampling) -> Sampling:
        """`asked`, with what suits this model as a player where nothing was asked."""
        return smollm2.sampling_for(asked) if self.name == smollm2.NAME else asked

    def memory_sampling(self, asked: Sampling) -> Sampling:
        """`asked`, with what suits this model, with or without an adapter, for memory work."""
        if self.name != smollm2.NAME:
            return asked
        return replace(asked, max_tokens=asked.max_tokens or MEMORY_WORK_TOKENS, stop=asked.stop or smollm2.STOPS)


def base(name: str) -> Base:
    """The base model of this name; contacts nobody. Raises `UserError` when we could not serve it."""
    if name == smollm2.NAME:
        return Base(name, name)
    folder = Path(name).expanduser()
    if folder.is_dir():
        return Base(str(folder.resolve()), folder.resolve().name)
    if _NAME.fullmatch(name):
        return Base(name, name)
    raise UserError(
        f"{name!r} is no model that AutoMem can serve: write smollm2, the folder of a model, or its name on Hugging"
        " Face such as Qwen/Qwen2.5-0.5B-Instruct"
    )


def context_tokens(folder: Path) -> int:
    """Tokens of context that the model of a folder gets: its own, at most `MAX_CONTEXT`."""
    own = base_model.configuration(folder).get("max_position_embeddings")
    return min(own, MAX_CONTEXT) if isinstance(own, int) else MAX_CONTEXT
