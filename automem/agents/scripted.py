"""The memory agent with the `scripted` player in the model's place: not a language model."""

from __future__ import annotations

from typing import ClassVar

from automem.agents.memory import MemoryAgent
from automem.models.registry import SCRIPTED


class ScriptedAgent(MemoryAgent):
    """A scaffold and its memory folder, used by a program."""

    model: ClassVar[str] = SCRIPTED
