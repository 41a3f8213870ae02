"""The conversation with the meta-LLM: what was said, and how it is made shorter when it does not fit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from automem.models.protocol import ToolCall
from meta.dialogue.calling import Malformed, arguments_of, storable

GONE = "(removed to make room; ask again)"

_WORTH = 400
"""Characters of a text from which removing it makes room."""


@dataclass
class Exchange:
    """A reply and what came back.

    Attributes:
        text: what the model wrote.
        calls: the tools it called.
        native: the calls came beside the text and not in it.
        answers: one a call, or, without calls, one that says what to do.
        notice: what is added to them.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    native: bool = True
    answers: list[str] = field(default_factory=list)
    notice: str = ""


@dataclass
class Conversation:
    """All of it, as it will be sent.

    Attributes:
        system, opening: the first two messages.
        exchanges: what followed.
    """

    system: str
    opening: str
    exchanges: list[Exchange] = field(default_factory=list)

    def messages(self) -> list[dict[str, Any]]:
        """As chat completions take them."""
        said: list[dict[str, Any]] = [
            {"role": "system", "content": self.system},
            {"role": "user", "content": self.opening},
        ]
        for exchange in self.exchanges:
            said += _native(exchange) if exchange.native and exchange.calls else _as_text(exchange)
        return said

    def shorten(self) -> bool:
        """Remove the oldest half of what tools answered and were given, the last exchange's only if nothing else is
        left. False when nothing is left to remove."""
        for exchanges in (self.exchanges[:-1], self.exchanges[-1:]):
            removable = [(exchange, i) for exchange in exchanges for i in _removable(exchange)]
            if removable:
                break
        else:
            return False
        sizes = [_size(exchange, i) for exchange, i in removable]
        removed = 0
        for (exchange, i), size in zip(removable, sizes, strict=True):
            _remove(exchange, i)
            removed += size
            if removed * 2 >= sum(sizes):
                break
        return True


def _native(exchange: Exchange) -> Iterator[dict[str, Any]]:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": _name(call.name), "arguments": _arguments(call)}}
        for call in exchange.calls
    ]
    yield {"role": "assistant", "content": exchange.text or None, "tool_calls": calls}
    for i, (call, answer) in enumerate(zip(exchange.calls, exchange.answers, strict=True), 1):
        # Beside the last answer and not in a message of its own: several servers take no user message here.
        notice = f"\n\n{exchange.notice}" if exchange.notice and i == len(exchange.calls) else ""
        yield {"role": "tool", "tool_call_id": call.id, "content": f"{answer}{notice}" or "(nothing)"}


def _as_text(exchange: Exchange) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": exchange.text or "(no reply)"}
    if exchange.calls:
        answers = [
            f"[{i}. {call.name}]\n{answer}"
            for i, (call, answer) in enumerate(zip(exchange.calls, exchange.answers, strict=True), 1)
        ]
    else:
        answers = exchange.answers
    yield {"role": "user", "content": "\n\n".join([*answers, *filter(None, [exchange.notice])])}


def _name(name: str) -> str:
    """A name that servers accept in a conversation; the answer tells the model that there is no such tool."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"


def _arguments(call: ToolCall) -> str:
    """Arguments that servers accept in a conversation: some read them, and refuse what is not an object."""
    try:
        return json.dumps(arguments_of(call))
    except Malformed:
        return json.dumps({"unreadable": storable(call.arguments[:200])})


def _removable(exchange: Exchange) -> list[int]:
    """What can be removed: answers by number, and -1 for the long texts that the model itself wrote into calls."""
    found = [i for i, answer in enumerate(exchange.answers) if len(answer) > _WORTH]
    written = sum(len(call.arguments) for call in exchange.calls) if exchange.native else len(exchange.text)
    return [-1, *found] if exchange.calls and written > 4 * _WORTH else found


def _size(exchange: Exchange, which: int) -> int:
    if which >= 0:
        return len(exchange.answers[which])
    return sum(len(call.arguments) for call in exchange.calls) if exchange.native else len(exchange.text)


def _remove(exchange: Exchange, which: int) -> None:
    if which >= 0:
        exchange.answers[which] = GONE
    elif exchange.native:
        exchange.calls = tuple(ToolCall(call.id, call.name, _shortened(call)) for call in exchange.calls)
    else:
        exchange.text = exchange.text[:_WORTH] + f"\n{GONE}"


def _shortened(call: ToolCall) -> str:
    try:
        given = arguments_of(call)
    except Malformed:
        return "{}"
    return json.dumps({k: GONE if isinstance(v, str) and len(v) > _WORTH else v for k, v in given.items()})
