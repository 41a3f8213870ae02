"""Calls of tools written as text, for models and servers that know no others.

A call is a fenced block::

    ```tool
    {"name": "read_steps", "arguments": {"seed": 3, "start": 40}}
    ```

Slips that models make are understood: another word after the fence or none, a missing end, ``<tool_call>`` instead
of a fence, ``parameters`` for ``arguments``, arguments beside the name, line breaks within texts. The end of a block
is where its JSON ends, so that a text in it may hold fences.
"""

from __future__ import annotations

import json
import re
from typing import Any

from automem.models.protocol import ToolCall

MOST = 32
"""Blocks of one reply that are looked at; each costs at most one pass over the reply."""

_OPENED = re.compile(
    r"```[ \t]{0,4}(?:tool|tool_call|tool_code|json|)[ \t]{0,4}\r?\n\s{0,40}(?=\{)|<tool_call>\s{0,40}(?=\{)"
)
_NAMED = re.compile(r'"(?:name|tool)"\s{0,9}:\s{0,9}"(\w{1,64})"')
_NAMES = ("name", "tool", "tool_name", "function")
_ARGUMENTS = ("arguments", "args", "parameters", "input")
_DECODER = json.JSONDecoder(strict=False)


def read(text: str) -> tuple[ToolCall, ...]:
    """The calls in a reply, in order. One that cannot be read has its text as arguments, which are then no JSON."""
    calls: list[ToolCall] = []
    at = 0
    for _ in range(MOST):
        opened = _OPENED.search(text, at)
        if opened is None:
            break
        found, at = _block(text, opened.end(), opened.group().startswith("```tool"))
        if found is not None:
            calls.append(ToolCall(f"text-{len(calls) + 1}", found.name, found.arguments))
    return tuple(calls)


def _block(text: str, start: int, for_tools: bool) -> tuple[ToolCall | None, int]:
    """The call whose JSON begins here, and where to read on. None for a block that is something else."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        closed = text.find("\n```", start)
        end = len(text) if closed < 0 else closed + 4
        named = _NAMED.search(text, start, min(end, start + 400))
        if named is None and not for_tools:
            return None, end
        return ToolCall("", named[1] if named else "", text[start:end].strip().removesuffix("```")), end
    if text.startswith("\n```", end):  # else the end of this block would open another one
        end += 4
    return (_call(value), end) if isinstance(value, dict) else (None, end)


def _call(value: dict[str, Any]) -> ToolCall | None:
    key = next((key for key in _NAMES if isinstance(value.get(key), str | dict)), None)
    if key is None:
        return None
    if isinstance(value[key], dict):  # {"function": {"name": …, "arguments": …}}
        return _call(value[key]) if "name" in value[key] else None
    given = next((value[name] for name in _ARGUMENTS if name in value), None)
    if given is None:
        given = {name: one for name, one in value.items() if name not in (key, "id", "type")}
    return ToolCall("", value[key], given if isinstance(given, str) else json.dumps(given))
