"""A recorded phase in the model's place, so that a step can happen again as it was recorded."""

from __future__ import annotations

from collections.abc import Sequence

from automem.models.protocol import ContextTooLong, Message, Reply
from automem.records import Turn


class RecordedModel:
    """Answers a phase with the replies of its recorded turns, in order."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.name = turns[0].model if turns else ""
        self._turns = iter(turns)

    async def ready(self) -> None:
        """Nothing to reach."""

    async def complete(self, messages: Sequence[Message]) -> Reply:
        """The next recorded reply.

        Raises `ContextTooLong` where the recording ends: that is why a phase ended without its last turn.
        """
        turn = next(self._turns, None)
        if turn is None:
            raise ContextTooLong("the recorded phase ended here")
        return Reply(
            text=turn.text,
            model=turn.model,
            prompt_tokens=turn.prompt_tokens,
            completion_tokens=turn.completion_tokens,
            cached_tokens=turn.cached_tokens,
            cost=turn.cost,
            seconds=turn.seconds,
        )

    async def close(self) -> None:
        """Nothing to end."""
