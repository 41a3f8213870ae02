"""BALROG's naive agent (arXiv 2411.13543): the last 16 observations, and one action a call, without reasoning."""

from __future__ import annotations

from typing import ClassVar

from automem import ops
from automem.agents.history import History
from automem.agents.protocol import Seat
from games.protocol import Observation

TOLD = (
    "Answer with the name of exactly one of the actions and nothing else. You answer with an action at every step "
    "until the game is over.\nAction:"
)


class Naive:
    """Asks the model for an action, and takes its whole reply for one."""

    model: ClassVar[str] = ""

    def __init__(self, seat: Seat) -> None:
        self._history = History(seat, TOLD)

    async def act(self, observation: Observation) -> str:
        """The reply; of one that marks an action, that action."""
        reply = await self._history.ask(observation)
        written = ops.parse(reply, ops.PLAN).action or reply.strip()
        self._history.answered(written)
        return written
