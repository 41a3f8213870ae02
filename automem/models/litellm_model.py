"""Any model that LiteLLM can reach, as ``provider/model``: hosted ones and OpenAI-compatible servers.

LiteLLM is imported on first use only (it takes seconds). Retries are ours, so that what is
worth another try, and how long to wait, is decided in one place for every provider.
"""

from __future__ import annotations

import asyncio
import difflib
import functools
import json
import logging
import os
import random
import re
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any, TypeVar

from automem.models.protocol import (
    ChatReply,
    ContextTooLong,
    Message,
    ModelError,
    ModelUnavailable,
    Reply,
    Sampling,
    ToolCall,
    ToolsRefused,
    UnknownModel,
)
from automem.models.secrets import scrub
from automem.models.serving import base_from_environment, check_server

_Read = TypeVar("_Read")

MAX_CONNECTIONS = 2048
"""Sockets to one server: hundreds of episodes may wait for one vLLM at once."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for an answer, and how often to ask again.

    Attributes:
        attempts: calls of the server for one reply, the first included; at least 1.
        first_wait: seconds before the second attempt; doubled before each one after, with jitter.
        longest_wait: most seconds between two attempts, also where the server asks for more.
        timeout: seconds of one attempt, waiting in the server's queue included.
    """

    attempts: int = 7
    first_wait: float = 0.5
    longest_wait: float = 60.0
    timeout: float = 300.0


class LiteLLM:
    """A model reached through LiteLLM. See `automem.models.protocol.Model`."""

    def __init__(
        self,
        name: str,
        sampling: Sampling,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        patience: Patience | None = None,
        label: str | None = None,
    ) -> None:
        """Nothing is imported or contacted yet.

        Args:
            name: ``provider/model`` as LiteLLM spells it.
            sampling: sent with every call; what a provider does not take is left out.
            api_base: the server's address, usually ending in ``/v1``; default the provider's own,
                or what LiteLLM finds in the environment.
            api_key: default what LiteLLM finds in the environment.
            patience: timeouts and retries.
            label: the name under which replies and errors report it; default `name`.
        """
        self.name = label or name
        self._litellm_name = name
        self.api_base = api_base.rstrip("/") if api_base else None
        self._api_key = api_key
        self._patience = patience or Patience()
        self._parameters = _parameters(sampling)

    async def ready(self) -> None:
        """Check key and server once, within seconds. Raises `UnknownModel` or `ModelUnavailable`."""
        litellm = await asyncio.to_thread(_litellm)
        check(self._litellm_name)
        base = self.api_base or base_from_environment(self._litellm_name)
        if base is not None:
            await asyncio.to_thread(check_server, self._litellm_name, base, self._key())
            return
        if self._litellm_name.startswith("hosted_vllm/"):
            raise ModelUnavailable(
                f"{self.name} needs the address of its server: --api-base http://HOST:PORT/v1, or HOSTED_VLLM_API_BASE."
            )
        missing = litellm.validate_environment(model=self._litellm_name, api_key=self._api_key)["missing_keys"]
        if missing and not self._api_key:
            raise ModelUnavailable(f"{self.name} needs {' and '.join(missing)} in the environment.")

    async def complete(self, messages: Sequence[Message]) -> Reply:
        """One reply. Raises `ModelUnavailable` or `ContextTooLong`; see the protocol."""
        return await self._ask(messages, {}, self._reply)

    async def chat(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> ChatReply:
        """One reply, with calls of tools; see `automem.models.protocol.ChatModel`."""
        if self._litellm_name.startswith("anthropic/"):
            messages = _marked_for_cache(messages)
        return await self._ask(messages, {"tools": list(tools)} if tools else {}, self._chat_reply)

    def knows_tools(self) -> bool | None:
        """Whether the model calls tools, by LiteLLM's list; None where it knows only how to offer them."""
        litellm = _litellm()
        provider, _, model = self._litellm_name.partition("/")
        if litellm.supports_function_calling(self._litellm_name):
            return True
        parameters = litellm.get_supported_openai_params(model=model, custom_llm_provider=provider)
        return None if "tools" in (parameters or ()) else False

    async def _ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        offered: Mapping[str, Any],
        read: Callable[[Any, float], _Read],
    ) -> _Read:
        """What `read` makes of the server's answer and the seconds that it took, retries included."""
        litellm = _litellm()
        _in_use.add(self)
        started = time.perf_counter()
        for attempt in range(1, self._patience.attempts + 1):
            try:
                async with asyncio.timeout(self._patience.timeout):
                    response = await litellm.acompletion(
                        model=self._litellm_name,
                        messages=list(messages),
                        api_base=self.api_base,
                        api_key=self._key(),
                        timeout=self._patience.timeout,
                        num_retries=0,
                        max_retries=0,
                        drop_params=True,
                        **offered,
                        **self._parameters,
                    )
                return read(response, time.perf_counter() - started)
            except Exception as error:
                # What is raised below must not drag the original along: it may hold the request and its key.
                failure = self._failure(error, attempt, bool(offered))
                wait = _wait_seconds(error, attempt, self._patience)
            if failure is not None:
                raise failure
            await asyncio.sleep(wait)
        raise AssertionError("the last attempt either answered or failed")

    async def close(self) -> None:
        """Close LiteLLM's connections, once no other model of this process uses them."""
        if self not in _in_use:
            return
        _in_use.discard(self)
        if not _in_use:
            litellm = _litellm()
            await litellm.close_litellm_async_clients()
            litellm.in_memory_llm_clients_cache.flush_cache()  # else the next model would be given a closed one

    def _key(self) -> str | None:
        # The OpenAI client refuses to speak without a key, even to a server that wants none.
        if self._api_key is None and self.api_base and not os.environ.get("OPENAI_API_KEY"):
            return "none" if self._litellm_name.startswith("openai/") else None
        return self._api_key

    def _reply(self, response: Any, seconds: float) -> Reply:
        try:
            text = response.choices[0].message.content or ""
            usage = response.usage
            details = getattr(usage, "prompt_tokens_details", None)
            return Reply(
                text=text,
                prompt_tokens=usage.prompt_tokens,
                completion_tokens=usage.completion_tokens,
                cached_tokens=getattr(details, "cached_tokens", None) or 0,
                # By LiteLLM's price list; None where that has no price for this model.
                cost=response._hidden_params.get("response_cost"),
                seconds=seconds,
                model=self.name,
            )
        except (AttributeError, IndexError, TypeError) as error:
            raise _Malformed("the server answered with something that is no completion") from error

    def _chat_reply(self, response: Any, seconds: float) -> ChatReply:
        reply = self._reply(response, seconds)
        choice = response.choices[0]
        try:
            calls = tuple(
                ToolCall(
                    call.id or "", self._masked(call.function.name or ""), self._arguments(call.function.arguments)
                )
                for call in choice.message.tool_calls or ()
            )
        except (AttributeError, TypeError, ValueError, RecursionError) as error:
            raise _Malformed("the server answered with tool calls that cannot be read") from error
        cut = getattr(choice, "finish_reason", None) == "length"
        return ChatReply(replace(reply, text=self._masked(reply.text)), calls, cut)

    def _arguments(self, given: Any) -> str:
        # Some servers send the object itself.
        return self._masked(given if isinstance(given, str) else json.dumps({} if given is None else given))

    def _masked(self, text: str) -> str:
        """Text that is kept must hold no key, even if a server sends it back."""
        variable = f"{self._litellm_name.partition('/')[0].upper()}_API_KEY"
        for secret in (self._api_key, os.environ.get(variable)):
            if secret and len(secret) >= 8:
                text = text.replace(secret, "***")
        return text

    def _failure(self, error: Exception, attempt: int, offered: bool) -> ModelError | None:
        """What to tell a person about `error`, or None when another attempt is worth it."""
        said = _first_line(error, self._api_key)
        if _too_long(error):
            return ContextTooLong(f"{self.name}: the messages do not fit its context. The server said: {said}")
        if offered and _refuses_tools(error):
            return ToolsRefused(f"{self.name}: no tools can be offered to it. The server said: {said}")
        status = getattr(error, "status_code", None)
        if status in (401, 403):
            return ModelUnavailable(f"{self.name}: the server refused the API key. It said: {said}")
        if status == 404:
            return ModelUnavailable(f"{self.name}: the server knows no such model or address. It said: {said}")
        if not _worth_another_try(error):
            return ModelUnavailable(f"{self.name}: the server refused the request. It said: {said}")
        if attempt < self._patience.attempts:
            return None
        where = f" at {scrub(self.api_base)}" if self.api_base else ""
        return ModelUnavailable(f"{self.name}: no reply{where} after {attempt} attempts. The last one: {said}")


def check(name: str) -> None:
    """Whether `name` can be a model at all; reaches nothing. Raises `UnknownModel`."""
    provider, slash, model = name.partition("/")
    example = "Write provider/model, e.g. openai/gpt-4o-mini or hosted_vllm/NAME, or one of: scripted, smollm2."
    if not slash or not provider or not model.strip("/") or name != name.strip() or name.endswith("/"):
        raise UnknownModel(f"{name!r} is no model's name. {example}")
    providers = sorted(str(getattr(known, "value", known)) for known in _litellm().provider_list)
    if provider not in providers:
        near = difflib.get_close_matches(provider, providers, n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise UnknownModel(f"{name!r}: LiteLLM knows no provider {provider!r}.{hint} {example}")


_in_use: weakref.WeakSet[LiteLLM] = weakref.WeakSet()
"""Models that have asked something and were not closed: LiteLLM's connections are shared by all of them."""


class _Malformed(Exception):
    """The server answered, but not with a completion. Worth another try: proxies do that when overloaded."""


@functools.lru_cache(maxsize=1)
def _litellm() -> ModuleType:
    """LiteLLM, set up to be quiet and to call nobody but the model."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else the import fetches prices from the network
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")  # else it reads a .env file of whatever folder we are in
    os.environ.setdefault("LITELLM_LOG", "CRITICAL")
    os.environ.setdefault("AIOHTTP_CONNECTOR_LIMIT", str(MAX_CONNECTIONS))
    os.environ.setdefault("AIOHTTP_CONNECTOR_LIMIT_PER_HOST", str(MAX_CONNECTIONS))
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    for logger in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "httpx"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    return litellm


def _parameters(sampling: Sampling) -> dict[str, Any]:
    chosen: dict[str, Any] = {"temperature": sampling.temperature}
    if sampling.max_tokens is not None:
        chosen["max_tokens"] = sampling.max_tokens
    if sampling.stop:
        chosen["stop"] = list(sampling.stop)
    if sampling.seed is not None:
        chosen["seed"] = sampling.seed
    return chosen


_TOO_LONG = re.compile(
    r"context[ _](length|window)|maximum context|max_model_len|prompt is too long|too many (input )?tokens", re.I
)


def _too_long(error: Exception) -> bool:
    if type(error).__name__ == "ContextWindowExceededError":
        return True
    return getattr(error, "status_code", None) in (400, 413, 422) and bool(_TOO_LONG.search(str(error)))


def _marked_for_cache(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Anthropic caches a conversation only as far as it is told to: here the first message, and all of them."""
    ends = {0, len(messages) - 1}
    mark = {"cache_control": {"type": "ephemeral"}}
    return [{**message, **mark} if i in ends else message for i, message in enumerate(messages)]


_NO_TOOLS = re.compile(
    r"(support|enable|require|allow|permit|unknown|unrecogni[sz]ed|unexpected|extra)[^\n]{0,80}\b(tools?|functions?)\b"
    r"|\b(tools?|tool[_ ]choice|function[_ ]call\w*)\b[^\n]{0,80}(support|enable|require|allow|permit|unknown)",
    re.I,
)


def _refuses_tools(error: Exception) -> bool:
    """As vLLM without a parser of tool calls, Ollama and routers to other servers say it."""
    return getattr(error, "status_code", None) in (400, 404, 405, 422, 501) and bool(_NO_TOOLS.search(str(error)))


def _worth_another_try(error: Exception) -> bool:
    """Rate limits, timeouts, lost connections and server errors pass; wrong requests do not."""
    if isinstance(error, (TimeoutError, ConnectionError, _Malformed)):
        return True
    if "insufficient_quota" in str(error):  # sent as a rate limit, but no waiting helps
        return False
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return False
    # Below 400: the server was content with itself, but what it sent is no completion.
    return status in (408, 409, 425, 429) or status >= 500 or status < 400


def _wait_seconds(error: Exception, attempt: int, patience: Patience) -> float:
    """Seconds before the next attempt: what the server asks for, else doubling with jitter."""
    asked = _retry_after(error)
    if asked is not None:
        return min(asked, patience.longest_wait)
    # Jitter spreads hundreds of episodes that were refused at the same moment.
    return min(patience.first_wait * 2 ** (attempt - 1), patience.longest_wait) * random.uniform(0.5, 1.0)


def _retry_after(error: Exception) -> float | None:
    headers: Mapping[str, str] = {}
    for holder in (getattr(error, "response", None), error):
        headers = getattr(holder, "headers", None) or getattr(holder, "litellm_response_headers", None) or headers
    value = next((v for k, v in headers.items() if k.lower().endswith("retry-after")), None)
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _first_line(error: Exception, *secrets: str | None) -> str:
    """The start of an error's message without keys: its class where it says nothing, at most 300 characters."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    # Scrubbed before it is cut: half a key would not be known for one.
    line = " ".join(scrub(str(error), *secrets).split()) or type(error).__name__
    return line if len(line) <= 300 else line[:297] + "..."
