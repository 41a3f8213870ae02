"""BALROG's chain-of-thought agent (arXiv 2411.13543): reasoning first, then an action, in one reply."""

from __future__ import annotations

from typing import ClassVar

from automem import ops
from automem.agents.history import History
from automem.agents.protocol import Seat
from games.protocol import Observation

TOLD = (
    "First think step by step about what to do now. Then commit to exactly one of the actions, written as\n"
    "<|ACTION|>name of the action<|END|>"
)


class CoT:
    """Asks the model to reason and then to act. The history shows its last reasoning and, before that, actions alone.

    BALROG keeps the reasoning of one step (``max_cot_history``).
    """

    model: ClassVar[str] = ""

    def __init__(self, seat: Seat) -> None:
        self._history = History(seat, TOLD, newest="Previous plan:\n")

    async def act(self, observation: Observation) -> str:
        """The action that the reply commits; of one that marks none, the whole of it."""
        reply = await self._history.ask(observation)
        written = ops.parse(reply, ops.PLAN).action or reply.strip()
        self._history.answered(written, reply.strip())
        return written
