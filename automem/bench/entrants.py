"""Who takes part in a bench: agents, as people name them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from automem.agents import registry
from automem.bench.storage import BENCH, RESULTS, SCOREBOARD, TABLES
from automem.errors import UserError

SPECIALIST = "specialist"
"""The memory agent with the specialist that the bench is given."""

MOST = 16

TAKEN = frozenset({BENCH, RESULTS, TABLES, SCOREBOARD})
"""Names of a bench's own files."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """An agent with what it plays by.

    Attributes:
        label: names it in results, and the folder of its run.
        agent: one of `automem.agents.registry.names`.
        scaffolds: versions, at most one a game; other games use their v0.
        specialist: with the memory specialist of the bench.
    """

    label: str
    agent: str
    scaffolds: tuple[str, ...] = ()
    specialist: bool = False

    @property
    def written(self) -> str:
        """As a person writes it."""
        agent = SPECIALIST if self.specialist else self.agent
        return f"{agent}:{'+'.join(self.scaffolds)}" if self.scaffolds else agent


def parse(text: str) -> tuple[Entrant, ...]:
    """The entrants that a person wrote: ``random,naive,memory,memory:crafter/v1+nethack/v1,specialist``.

    Between commas stands an agent, and after a colon the scaffolds that it plays by, one a game, joined by
    ``+``. ``specialist`` is the memory agent with a memory specialist. Raises `UserError`.
    """
    entrants = [_entrant(part.strip(), text) for part in text.split(",")]
    labels = [entrant.label for entrant in entrants]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise UserError(f"--agents {text!r} names {twice} twice: the same agent plays the same episodes")
    if len(entrants) > MOST:
        raise UserError(f"--agents names {len(entrants)} agents; a bench has at most {MOST}")
    return tuple(entrants)


def _entrant(part: str, text: str) -> Entrant:
    agent, colon, given = part.partition(":")
    scaffolds = tuple(given.split("+")) if colon else ()
    if not agent or not all(scaffolds):
        raise UserError(
            f"--agents {text!r} has an empty place: write agents with commas between them, and scaffolds after a "
            f"colon, such as random,naive,memory,memory:crafter/v1; the agents are {', '.join(known())}"
        )
    specialist = agent == SPECIALIST
    if specialist:
        agent = registry.MEMORY
    registry.kind(agent)
    if scaffolds and not registry.remembers(agent):
        raise UserError(f"--agents {part}: agent {agent} plays without a scaffold")
    label = _label(part)
    if not label or label in TAKEN:
        raise UserError(f"--agents {part}: {label or 'this'!r} cannot name an agent's folder in a bench")
    return Entrant(label, agent, scaffolds, specialist)


def known() -> tuple[str, ...]:
    """What can be named."""
    return (*registry.names(), SPECIALIST)


def _label(part: str) -> str:
    """The name as a folder's."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", part).strip("-._")[:100]
