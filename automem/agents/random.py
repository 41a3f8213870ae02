"""Every action is as likely as any other: what no thinking at all comes to."""

from __future__ import annotations

from typing import ClassVar

from automem.agents.protocol import Seat
from games.protocol import Observation


class Random:
    """Asks no model."""

    model: ClassVar[str] = "none"

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._actions = list(seat.rules.actions)

    async def act(self, observation: Observation) -> str:
        """Any action."""
        return self._seat.dice.choice(self._actions)
