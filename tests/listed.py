"""A model that follows a list of replies, and the rules of a game that does not exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from automem.models.fixed import Fixed
from automem.models.protocol import Message


class Listed(Fixed):
    """Gives the replies in order, raises those that are exceptions, and keeps all that it was sent."""

    def __init__(self, replies: Sequence[str | Exception], name: str = Fixed.name) -> None:
        self.sent: list[list[Message]] = []
        left = iter(replies)

        def rule(asked: Sequence[Message]) -> str:
            self.sent.append([dict(message) for message in asked])
            reply = next(left)
            if isinstance(reply, Exception):
                raise reply
            return reply

        super().__init__(rule)
        self.name = name


@dataclass
class Rules:
    """Three actions."""

    task: str = "Crafter"
    actions: dict[str, str] = field(default_factory=lambda: {"Noop": "wait", "Move West": "left", "Do": "use"})
    instructions: str = "Survive."
    default_action: str = "Noop"
