"""Models in this process that are none: one answers at once, by a rule, the other must not be asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from automem.models.protocol import Message, ModelUnavailable, Reply


class Fixed:
    """Answers with `rule(messages)`. Counts characters as tokens; reported as ``fixed``, never as an LLM."""

    name = "fixed"

    def __init__(self, rule: Callable[[Sequence[Message]], str]) -> None:
        self._rule = rule

    async def ready(self) -> None:
        """Always."""

    async def complete(self, messages: Sequence[Message]) -> Reply:
        """What the rule says."""
        text = self._rule(messages)
        read = sum(len(message["content"]) for message in messages)
        return Reply(text, read, len(text), 0, None, 0.0, self.name)

    async def close(self) -> None:
        """Nothing to close."""


class Nobody:
    """Who answers agents that ask no model."""

    name = "none"

    async def ready(self) -> None:
        """Always."""

    async def complete(self, messages: Sequence[Message]) -> Reply:
        """Raises `ModelUnavailable`."""
        raise ModelUnavailable("model none answers nobody; an agent that asks needs a model: --model")

    async def close(self) -> None:
        """Nothing to close."""


_LISTED = re.compile(r"^(?:# Actions|The actions:)\n- (.{1,60}?): ", re.MULTILINE)


def first_action(messages: Sequence[Message]) -> str:
    """The reply of model ``fixed``: the first action that its system message lists; DONE where that is asked for.

    It does not depend on what happened before: with it, all that is around a model can be run and measured.
    """
    if "<|DONE|>" in messages[-1]["content"]:
        return "<|DONE|><|END|>"
    found = _LISTED.search(messages[0]["content"])
    return f"<|ACTION|>{found[1] if found else 'wait'}<|END|>"
