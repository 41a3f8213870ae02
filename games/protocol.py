"""What every game offers to the agent: text in, one named action out.

`games` knows nothing of agents, memory or how many episodes run; it only turns
a simulator into observations, transitions and progress.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

Span = tuple[str, str]
"""A run of characters and its style, in the words terminals use: ``("@", "bold white")``."""

Screen = tuple[tuple[Span, ...], ...]
"""What a person would see: rows of spans, top row first."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation as text, divided as BALROG divides it (arXiv 2411.13543).

    Attributes:
        long_term: what is around, worth keeping in a history (map, message, things in view).
        short_term: what is only true now (status, inventory).
    """

    long_term: str
    short_term: str

    @property
    def text(self) -> str:
        """Both parts, long-term first, separated by one empty line."""
        return f"{self.long_term.rstrip()}\n\n{self.short_term.rstrip()}".strip("\n")

    @property
    def long_term_length(self) -> int:
        """How many characters of `text`, from its beginning, are the long-term part."""
        return len(self.long_term.rstrip().strip("\n"))


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an episode has come.

    Attributes:
        progression: BALROG's score of the episode so far, in [0, 1].
        achievements: what was reached, each with the number of times or the level reached.
        facts: labels that results must carry, e.g. ``{"levels": "generated"}``.
    """

    progression: float
    achievements: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Transition:
    """The outcome of one action.

    Attributes:
        observation: the text after the action.
        reward: the simulator's own reward for this step.
        terminated: the game itself ended (death, success, quit).
        truncated: the step limit or the no-progress limit ended it.
        progress: progress after the action.
    """

    observation: Observation
    reward: float
    terminated: bool
    truncated: bool
    progress: Progress

    @property
    def done(self) -> bool:
        """True once no further action can be taken."""
        return self.terminated or self.truncated


class InvalidAction(ValueError):
    """The game cannot take this action; nothing was played."""


class Game(Protocol):
    """One game, one task. Every episode uses a fresh object: ``reset`` is called once."""

    task: str
    """The task's canonical name, one of `games.tasks()`."""

    actions: Mapping[str, str]
    """Every action the game can take, in a fixed order, each with what it does in a few words."""

    instructions: str
    """Rules and goal in our own words, without the list of actions; the same at every step."""

    default_action: str
    """What is played when a model committed no action (the least harmful one)."""

    def reset(self, seed: int) -> Observation:
        """Start the episode of this seed. The same seed and actions give the same game anywhere."""
        ...

    def step(self, action: str) -> Transition:
        """Play one action. Raises `InvalidAction` when it is not in `actions`."""
        ...

    def progress(self) -> Progress:
        """Progress of the episode so far."""
        ...

    def screen(self) -> Screen:
        """What a person would see now. Never changes the game."""
        ...

    def close(self) -> None:
        """Free the simulator. Safe to call twice."""
        ...
