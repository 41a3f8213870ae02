"""A model served by a vLLM of our own: started on first use, reached like any other server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

from automem.models.litellm_model import LiteLLM, Patience
from automem.models.protocol import Message, ModelUnavailable, Reply, Sampling
from automem.models.vllm_server import Attached, PrefixCache, ServerConfig, attach

QUEUED = Patience(attempts=4, first_wait=0.5, longest_wait=4.0, timeout=900.0)
"""For a server on this machine: it may have a long queue, but it is either there or gone."""


async def join(config: Callable[[], ServerConfig]) -> Attached:
    """Start or join the server of a configuration, which may take minutes, in a thread; its making, too.

    Raises as `attach`. When this is cancelled (Ctrl-C), the thread does not wait on.
    """
    stop = threading.Event()
    try:
        return await asyncio.to_thread(lambda: attach(config(), stop=stop))
    finally:
        stop.set()


class Served:
    """A managed vLLM as a `Model`. Processes that ask for the same configuration share one server."""

    def __init__(
        self,
        name: str,
        config: Callable[[], ServerConfig],
        sampling: Sampling,
        *,
        patience: Patience = QUEUED,
    ) -> None:
        """Nothing is started yet. `config` is called (in a thread) when it is: it may prepare the weights."""
        self.name = name
        self._config = config
        self._sampling = sampling
        self._patience = patience
        self._starting = asyncio.Lock()
        self._server: Attached | None = None
        self._client: LiteLLM | None = None

    @property
    def server(self) -> Attached | None:
        """The server, once `ready` has returned: its address and log."""
        return self._server

    async def ready(self) -> None:
        """Start or join the server. Raises `ModelUnavailable`; the message ends with the log's tail."""
        async with self._starting:
            if self._client is not None:
                return
            self._server = await join(self._config)
            client = LiteLLM(
                f"hosted_vllm/{self._server.served_name}",
                self._sampling,
                api_base=self._server.api_base,
                api_key="none",  # else a key in the environment, meant for another server, would be sent
                patience=self._patience,
                label=self.name,
            )
            await client.ready()
            self._client = client

    async def complete(self, messages: Sequence[Message]) -> Reply:
        """One reply of the server, started when it was not yet."""
        if self._client is None:
            await self.ready()
        assert self._client is not None and self._server is not None
        try:
            return await self._client.complete(messages)
        except ModelUnavailable as error:
            if self._server.alive():
                raise
            raise ModelUnavailable(f"{self.name}: its vLLM ended. Its log: {self._server.log}") from error

    async def prefix_cache(self) -> PrefixCache:
        """The server's prefix-cache counters, in tokens since it started."""
        if self._server is None:
            await self.ready()
        assert self._server is not None
        return await asyncio.to_thread(self._server.prefix_cache)

    async def close(self) -> None:
        """Let go of the server; it ends when nobody else uses it."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
        server, self._server = self._server, None
        if server is not None:
            server.release()
