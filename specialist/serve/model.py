"""A specialist, and the base model beside it, as models that an episode can ask. Both live in one server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from automem.errors import UserError
from automem.models import registry
from automem.models.litellm_model import LiteLLM, Patience
from automem.models.protocol import Message, Model, ModelUnavailable, Reply, Sampling
from automem.models.served import QUEUED, Served, join
from automem.models.serving import base_from_environment
from automem.models.vllm_server import Attached, LoraSlots, ServerConfig, covering
from specialist.adapter import Adapter
from specialist.base_model import fingerprint
from specialist.serve import loading
from specialist.serve.bases import Base, base
from specialist.serve.merged import ensure_merged
from specialist.serve.slots import check, slots_for

THEIRS = "hosted_vllm/"
"""How LiteLLM names what a vLLM of the user's own serves."""

_UNKNOWN = "knows no such model"
"""How `LiteLLM` says that the server does not have the adapter."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Who plays an episode with a specialist.

    Attributes:
        gameplay: commits every action.
        memory: does the memory work: the specialist, or the untrained base model in its place.
    """

    gameplay: Model
    memory: Model


class SpecialistModel:
    """An adapter on a server that holds its base model. See `automem.models.protocol.Model`."""

    def __init__(
        self,
        name: str,
        adapter: Adapter,
        sampling: Sampling,
        *,
        config: Callable[[], ServerConfig] | None = None,
        api_base: str = "",
        api_key: str | None = None,
        patience: Patience = QUEUED,
    ) -> None:
        """Nothing is started or contacted yet.

        Args:
            name: under which replies report it.
            adapter: loaded when the server is there, and again should the server have lost it.
            sampling: how it chooses its words.
            config: of a server of ours, made in a thread when it is needed; None for one of the user's own.
            api_base, api_key: the user's own server.
            patience: timeouts and retries.
        """
        self.name = name
        self.adapter = adapter
        self._sampling = sampling
        self._config = config
        self._api_base = api_base.rstrip("/")
        self._api_key = api_key
        self._patience = patience
        self._starting = asyncio.Lock()
        self._server: Attached | None = None
        self._client: LiteLLM | None = None

    @property
    def server(self) -> Attached | None:
        """The server of ours, once `ready` has returned."""
        return self._server

    @property
    def api_base(self) -> str:
        """The server's address, ours once `ready` has returned."""
        return self._api_base

    async def ready(self) -> None:
        """Start or join the server, and load the adapter. Raises `UserError`, mostly `ModelUnavailable`."""
        async with self._starting:
            if self._client is not None:
                return
            if self._config is not None:
                await self._join(self._config)
            else:
                await asyncio.to_thread(_same_base, self._api_base, self.adapter, self._api_key)
            await asyncio.to_thread(loading.load, self._api_base, self.adapter, self._api_key)
            client = LiteLLM(
                f"hosted_vllm/{self.adapter.served_name}",
                self._sampling,
                api_base=self._api_base,
                api_key=self._api_key,
                patience=self._patience,
                label=self.name,
            )
            await client.ready()
            self._client = client

    async def complete(self, messages: Sequence[Message]) -> Reply:
        """One reply; the server is started when it was not yet."""
        if self._client is None:
            await self.ready()
        assert self._client is not None
        try:
            return await self._client.complete(messages)
        except ModelUnavailable as error:
            if self._server is not None and not self._server.alive():
                raise ModelUnavailable(f"{self.name}: its vLLM ended. Its log: {self._server.log}") from error
            if _UNKNOWN not in str(error):
                raise
        # Somebody unloaded it, or started their server again.
        await asyncio.to_thread(loading.load, self._api_base, self.adapter, self._api_key)
        return await self._client.complete(messages)

    async def close(self) -> None:
        """Let go of the server, which keeps the adapter while others use it. Safe to call twice."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
        server, self._server = self._server, None
        if server is not None:
            server.release()

    async def _join(self, config: Callable[[], ServerConfig]) -> None:
        self._server = await join(config)
        self._api_base = self._server.api_base
        self._api_key = "none"  # else a key in the environment, meant for another server, would be sent


def specialist_name(base_name: str, adapter: Adapter, merged: bool = False) -> str:
    """The name under which results report a specialist, e.g. ``smollm2+specialist-0123456789ab``."""
    return f"{base_name}+specialist-{adapter.identity[:12]}{'-merged' if merged else ''}"


def base_with_slots(base_name: str, sampling: Sampling | None = None, slots: LoraSlots | None = None) -> Model:
    """The base model as a player, on the server that specialists with these slots are loaded into."""
    found = base(base_name)
    room = slots or LoraSlots()
    return Served(base_name, lambda: covering(found.config(room)), found.sampling(sampling or Sampling()))


def make_memory_model(
    base_name: str,
    adapter: Adapter | None,
    sampling: Sampling | None = None,
    *,
    slots: LoraSlots | None = None,
    merged: bool = False,
    gpu_share: float | None = None,
    api_base: str = "",
    api_key: str | None = None,
) -> Model:
    """Whoever does the memory work.

    Args:
        base_name: ``smollm2``, the folder or Hugging Face name of a model, which we serve; or, with `api_base`,
            LiteLLM's ``hosted_vllm/NAME`` of a server of the user's own.
        adapter: the specialist; None for the base model itself, asked in the same way.
        sampling: default greedy, replies of a length that suits memory work.
        slots: room of the server; default just what the adapter needs.
        merged: serve a copy with the adapter worked in, or the base model itself, without room for others.
        gpu_share: of a GPU's memory, for the server of a merged copy.
        api_base, api_key: of the user's own server.

    Raises:
        UserError: the server could not serve this adapter, or `base_name` is no model. That an adapter belongs to
            another base model is said by `Model.ready`, before a server starts.
    """
    sampling = sampling or Sampling()
    if api_base or base_name.startswith(THEIRS):
        return _on_their_server(base_name, adapter, sampling, merged, api_base, api_key)
    found = base(base_name)
    chosen = found.memory_sampling(sampling)
    if adapter is None and merged:
        return Served(base_name, lambda: found.config(None, gpu_share), chosen)
    if adapter is None:
        room = slots or LoraSlots()
        return Served(base_name, lambda: covering(found.config(room)), chosen)
    name = specialist_name(base_name, adapter, merged)
    if merged:
        return Served(name, lambda: merged_config(found, adapter, gpu_share), chosen)
    room = slots or slots_for([adapter])
    check(adapter, room, base_name, None)
    return SpecialistModel(name, adapter, chosen, config=lambda: covering(config_for(found, adapter, room)))


def make_pair(
    base_name: str,
    adapter: Adapter | None,
    sampling: Sampling | None = None,
    *,
    gameplay: Model | None = None,
    gameplay_sampling: Sampling | None = None,
    slots: LoraSlots | None = None,
    merged: bool = False,
    api_base: str = "",
    api_key: str | None = None,
) -> Pair:
    """A player and whoever does its memory work; both on one server unless `merged`.

    Args:
        base_name, adapter, slots, merged, api_base, api_key: as `make_memory_model` takes them.
        sampling: of the memory work.
        gameplay: another player than the base model, for instance ``scripted``.
        gameplay_sampling: of the base model as a player; default that of the memory work.
    """
    acts = gameplay_sampling or sampling or Sampling()
    both = merged and gameplay is None and adapter is not None
    memory = make_memory_model(
        base_name,
        adapter,
        sampling,
        slots=slots,
        merged=merged,
        gpu_share=0.45 if both else None,
        api_base=api_base,
        api_key=api_key,
    )
    if gameplay is not None:
        return Pair(gameplay, memory)
    if api_base or base_name.startswith(THEIRS):
        return Pair(registry.make_model(base_name, acts, api_base=api_base, api_key=api_key), memory)
    if both:
        found = base(base_name)
        return Pair(Served(base_name, lambda: found.config(None, gpu_share=0.45), found.sampling(acts)), memory)
    room = slots or (slots_for([adapter]) if adapter is not None else None)
    return Pair(base_with_slots(base_name, acts, room), memory)


def config_for(found: Base, adapter: Adapter, slots: LoraSlots) -> ServerConfig:
    """How a server of ours serves `found` for this adapter. Raises `UserError` when they do not belong together."""
    check(adapter, slots, found.name, found.fingerprint())
    return found.config(slots)


def merged_config(found: Base, adapter: Adapter, gpu_share: float | None = None) -> ServerConfig:
    """How a server of ours serves `found` with the adapter worked in; makes that copy the first time.

    Raises `UserError` when they do not belong together.
    """
    check(adapter, None, found.name, found.fingerprint())
    folder = ensure_merged(found.folder(), adapter)
    return replace(found.config(None, gpu_share), model=str(folder), served_name=adapter.served_name)


def _on_their_server(
    name: str, adapter: Adapter | None, sampling: Sampling, merged: bool, api_base: str, api_key: str | None
) -> Model:
    """On a server that the user started."""
    if merged:
        raise UserError("a merged copy is served by a vLLM of our own: leave --api-base out, or --merged")
    if adapter is None:
        return registry.make_model(name, sampling, api_base=api_base, api_key=api_key)
    api_base = api_base or os.environ.get("AUTOMEM_API_BASE") or base_from_environment(name) or ""
    if not api_base or not name.startswith(THEIRS):
        raise UserError(
            f"{name}: only a vLLM can load a specialist while it runs. Name the model hosted_vllm/NAME, and give the"
            " address of its server with --api-base http://HOST:PORT/v1."
        )
    key = api_key or os.environ.get("HOSTED_VLLM_API_KEY")
    return SpecialistModel(specialist_name(name, adapter), adapter, sampling, api_base=api_base, api_key=key)


def _same_base(api_base: str, adapter: Adapter, api_key: str | None) -> None:
    """Raise `UserError` when a server's base model can be seen from here, and is not the adapter's."""
    for model in loading.served(api_base, api_key):
        if model.parent is None and model.root and Path(model.root).is_dir():
            check(adapter, None, model.name, fingerprint(Path(model.root)))
