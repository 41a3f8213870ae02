"""Gates: from paired differences in progression to a decision about a revision.

A gate is a pure function of what was measured, asked again after each batch of seeds. A new one is one
file and a line in `GATES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from meta.gate.look import Decision, Gate, Look
from meta.gate.paper import Paper
from meta.gate.sequential import Sequential

if TYPE_CHECKING:
    from meta.settings import GateSettings

__all__ = ["GATES", "Decision", "Gate", "Look", "Paper", "Sequential", "make"]

GATES: dict[str, Callable[[GateSettings], Gate]] = {
    "sequential": lambda settings: Sequential(
        settings.batch, settings.most, settings.smallest_gain, margin=settings.margin
    ),
    "paper": lambda settings: Paper(settings.most),
}
"""By the names that settings call them."""


def make(settings: GateSettings) -> Gate:
    """The gate that settings ask for. Raises `UserError` when they do not fit each other."""
    return GATES[settings.kind](settings)
