"""What a dialogue has spent of its budget, and what it may still spend."""

from __future__ import annotations

import time
from dataclasses import replace

from meta.reviewer import Budget, Spent

NEAR = 0.25
"""Share of a budget that is left when the model is first told."""

LAST = 0.1
"""Share at which it should come to an end."""


class Meter:
    """Counts as replies come, recorded ones included.

    Attributes:
        spent: as of the last reply.
    """

    def __init__(self, budget: Budget, spent: Spent) -> None:
        """`spent`: before a resumption; its seconds are those that somebody was at it."""
        self.budget = budget
        self.spent = spent
        self._since = time.monotonic() - spent.seconds

    @property
    def seconds(self) -> float:
        """Since the dialogue began, without the time in which nobody was at it."""
        return time.monotonic() - self._since

    def total(self) -> Spent:
        """What was spent until now."""
        return replace(self.spent, seconds=self.seconds)

    def seconds_left(self) -> float | None:
        """Until the time is over; None without a limit."""
        return None if self.budget.minutes is None else max(0.0, 60 * self.budget.minutes - self.seconds)

    def over(self) -> str:
        """Which limit is reached, in words; empty when none is."""
        now = self.total()
        for name, used, most, unit in self._limits(now):
            if used >= most:
                return f"its budget of {name} is spent: {_number(used)} of {_number(most)} {unit}".rstrip()
        return ""

    def left(self) -> list[str]:
        """What is left of each limit, in words, as of the last reply."""
        return [f"{_number(max(0.0, most - used))} of {_number(most)} {unit}" for _, used, most, unit in self._limits()]

    def share_left(self) -> float:
        """Of the limit that is nearest, as of the last reply; 1 without limits."""
        return min((1 - used / most if most else 0.0 for _, used, most, _ in self._limits()), default=1.0)

    def _limits(self, spent: Spent | None = None) -> list[tuple[str, float, float, str]]:
        used = spent or self.spent
        limits = (
            ("turns", used.turns, self.budget.turns, "replies"),
            ("tokens", used.prompt_tokens + used.completion_tokens, self.budget.tokens, "tokens"),
            ("money", used.usd, self.budget.usd, "dollars"),
            ("time", used.seconds / 60, self.budget.minutes, "minutes"),
        )
        return [(name, float(value), float(most), unit) for name, value, most, unit in limits if most is not None]


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.2f}" if value < 100 else f"{value:.0f}"
