"""What every model offers to the agent: messages in, one reply out.

The agent, the reviewers and the specialist see a model only through this file, so
that a provider, a local server and the `scripted` player are interchangeable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from automem.errors import UserError

Message = dict[str, str]
"""One message of a conversation: ``{"role": "system" | "user" | "assistant", "content": text}``."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a model chooses its words.

    Attributes:
        temperature: 0 is greedy, the default: with the same seed and server an episode then plays
            the same again, as far as the server allows. Left out for models that refuse it.
        max_tokens: most tokens of one reply; None leaves it to the model's own default.
        stop: strings that end a reply; they are not part of its text.
        seed: given to servers that take one; None sends none.
    """

    temperature: float = 0.0
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a model, and what it took.

    Attributes:
        text: what the model wrote; may be empty.
        prompt_tokens: tokens read, cached ones included, as the server counted them.
        completion_tokens: tokens written.
        cached_tokens: how many of `prompt_tokens` came from the server's prefix cache.
        cost: US dollars; None where no price is known (local servers).
        seconds: from asking to the answer, waiting and retries included.
        model: the name under which the model was asked for, e.g. ``openai/gpt-4o-mini``.
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cost: float | None
    seconds: float
    model: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that a model wants to be called.

    Attributes:
        id: the server's name for the call; the answer is sent back under it. May be empty.
        name: of the tool, as the model wrote it.
        arguments: JSON, as the model wrote it; may be anything.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatReply:
    """One answer of a model that was offered tools.

    Attributes:
        reply: the text, and what the answer took.
        calls: the tools to call, in order.
        cut: the answer ended at the model's limit of tokens, and may be incomplete.
    """

    reply: Reply
    calls: tuple[ToolCall, ...] = ()
    cut: bool = False


class ModelError(UserError):
    """A model gave no reply. The message says what happened and what to do; it never holds a key."""


class ModelUnavailable(ModelError):
    """The model could not be reached, or refused us: retries did not help, or could not have.

    Not a bad action of the agent: an episode pauses and is reported, to be resumed.
    """


class ContextTooLong(ModelError):
    """The messages do not fit the model's context. Asking again does not help; asking for less does."""


class ToolsRefused(ModelError):
    """The server, or the model, takes no tools. Asking without them may work."""


class UnknownModel(ModelError):
    """No model has this name. Raised before anything starts."""


class Model(Protocol):
    """Anything that answers messages. Safe to call from many episodes at once, on one event loop."""

    name: str
    """The name under which results report it: ``scripted``, ``smollm2`` or ``provider/model``."""

    async def ready(self) -> None:
        """Return once the model can answer; called once, before the first episode.

        Starts what has to be started. Raises `ModelUnavailable` when there is nothing to reach.
        """
        ...

    async def complete(self, messages: Sequence[Message]) -> Reply:
        """The model's answer to a conversation that ends with a user message.

        Temporary failures (rate limits, timeouts, lost connections, server errors) are retried
        inside. Raises `ModelUnavailable` when that does not help, `ContextTooLong` when the
        messages do not fit.
        """
        ...

    async def close(self) -> None:
        """Let go of connections. Safe to call twice."""
        ...


class ChatModel(Protocol):
    """A model that is offered tools: messages as OpenAI's chat completions have them, one reply out."""

    name: str
    """``provider/model``."""

    def knows_tools(self) -> bool | None:
        """Whether the model calls tools; None when nothing is known but that it can be offered them."""
        ...

    async def ready(self) -> None:
        """As `Model.ready`."""
        ...

    async def chat(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> ChatReply:
        """The model's answer to a conversation, in which it may have called tools before.

        Args:
            messages: with ``tool_calls`` of assistant messages, and messages of the role ``tool`` that answer them.
            tools: what is offered, each ``{"type": "function", "function": {"name", "description", "parameters"}}``.

        Retries and raises as `Model.complete`; `ToolsRefused` when it would not be offered tools.
        """
        ...

    async def close(self) -> None:
        """As `Model.close`."""
        ...
