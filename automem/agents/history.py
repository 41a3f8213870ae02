"""The recent past as a conversation, as BALROG keeps it (arXiv 2411.13543): observations and the answers to them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from automem import blocks
from automem.agents.protocol import Played, Seat
from automem.models.protocol import ContextTooLong, Message
from games.protocol import Observation

LENGTH = 16
"""Observations that are shown, the present one included: BALROG's ``max_history``."""


@dataclass(frozen=True, slots=True)
class _Past:
    observation: str
    action: str
    reasoning: str


class History:
    """The last observations of an episode with what was answered, and the present one.

    Past observations show their long-term part only; the present one shows both, the short-term part first.
    """

    def __init__(self, seat: Seat, told: str, newest: str = "") -> None:
        """
        Args:
            seat: the agent's.
            told: what every question ends with.
            newest: goes before the reasoning that is shown of the last answer.
        """
        self._seat = seat
        self._newest = newest
        self._told = told
        self._past: deque[_Past] = deque(maxlen=LENGTH - 1)
        self._now = ""

    async def ask(self, observation: Observation) -> str:
        """The model's answer to an observation. The oldest part of the history is left out where it does not fit.

        Raises `automem.models.protocol.ContextTooLong` when not even the present observation fits.
        """
        self._now = _refusal(self._seat.last) + observation.long_term.strip()
        now = "\n\n".join(filter(None, (observation.short_term.strip(), self._now)))
        shown = list(self._past)
        while True:
            try:
                return await self._seat.ask(self._messages(shown, now))
            except ContextTooLong:
                if not shown:
                    raise
                shown = shown[len(shown) // 2 + 1 :]

    def answered(self, action: str, reasoning: str = "") -> None:
        """Keep what was answered to the present observation; its reasoning is shown until the next answer."""
        self._past.append(_Past(self._now, action or "(no answer)", reasoning))

    def _messages(self, shown: Sequence[_Past], now: str) -> list[Message]:
        system = f"{self._seat.rules.instructions.strip()}\n\nThe actions:\n{blocks.actions(self._seat.rules.actions)}"
        messages: list[Message] = [{"role": "system", "content": system}]
        for number, past in enumerate(shown, 1):
            newest = number == len(shown) and past.reasoning
            messages.append({"role": "user", "content": f"Observation:\n{past.observation}"})
            messages.append(
                {"role": "assistant", "content": f"{self._newest}{past.reasoning}" if newest else past.action}
            )
        messages.append({"role": "user", "content": f"Current observation:\n{now}\n\n{self._told}"})
        return messages


def _refusal(last: Played | None) -> str:
    """BALROG tells an agent when what it wrote was no action."""
    if last is None or last.valid:
        return ""
    return f"What you last answered is not an action of the game; {last.action} was played instead.\n\n"
