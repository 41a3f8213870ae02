"""What an agent is, and what it is given for an episode.

An agent plays one episode: for every observation it names an action. What it needs for that it gets
from its `Seat`: the rules of the game, dice that fall the same for the same episode, and a model to ask.
Everything else (the game, the trace, resuming, what to do with an action that the game does not have)
is done around it.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from automem.agent import Decision, Rules
from automem.errors import UserError
from automem.memory import Memory
from automem.models.protocol import Message
from automem.records import StepRecord
from games.protocol import Observation


class AgentFailed(UserError):
    """An agent cannot go on: its own code raised, or answered with what is no action. Other episodes can."""


@dataclass(frozen=True, slots=True)
class Played:
    """The last step's action.

    Attributes:
        written: as the agent named it; None when it named none.
        action: what was played.
        valid: `written` named an action that the game has; otherwise its default was played.
    """

    written: str | None
    action: str
    valid: bool


@dataclass(slots=True)
class Seat:
    """What an agent is given for one episode.

    Attributes:
        rules: task, actions with what they do, instructions, default action.
        dice: chance that is the same whenever this episode is played; an agent uses no other.
        ask: the text of the model's reply to a conversation that ends with a user message. Raises
            `automem.models.protocol.ContextTooLong` when it does not fit, and may be called again then. Where there
            is no reply at all, the episode pauses, whatever the agent makes of it.
        last: the last step's action; None at the first step.
    """

    rules: Rules
    dice: random.Random
    ask: Callable[[Sequence[Message]], Awaitable[str]]
    last: Played | None = None


class Agent(Protocol):
    """An agent without a memory folder. One object plays one episode.

    To be resumable, what it does may depend on its seat, its observations and the replies to what it asked,
    and on nothing else: an interrupted episode is played again from its trace, with the recorded replies.
    """

    model: ClassVar[str]
    """The model that it always plays with, by name; ``none`` for an agent that asks none, empty for the one that
    is asked for."""

    def __init__(self, seat: Seat) -> None: ...

    async def act(self, observation: Observation) -> str | None:
        """The action to play, as the game names it; letter case and quotes are forgiven. None plays the default."""
        ...


class Player(Protocol):
    """An agent at work on an episode, as `automem.episode` sees it."""

    @property
    def step(self) -> int:
        """Steps decided so far."""
        ...

    @property
    def system(self) -> str:
        """The system message of its conversations; empty where there is none."""
        ...

    @property
    def memory(self) -> Memory:
        """Its memory folder; an empty one for agents that keep none."""
        ...

    async def decide(self, observation: Observation, past: StepRecord | None = None) -> Decision:
        """Decide on an observation; with `past`, a recorded step, as it was decided then, asking no model."""
        ...

    async def close(self) -> None:
        """End what was started for the episode; the memory folder is closed, too."""
        ...
