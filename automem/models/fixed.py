"""A model in this process that answers at once, by a rule: for tests and for measuring everything else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from automem.models.protocol import Message, Reply


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
