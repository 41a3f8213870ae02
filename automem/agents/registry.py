"""Which agents there are, and an agent of a kind for an episode.

Other packages add agents through entry points of the group ``automem.agents``: the entry's name is the
agent's, its value a class as `automem.agents.protocol.Agent` describes it, or a kind of `MemoryAgent`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from automem import choosing
from automem.agent import Listener, Rules, Specialist
from automem.agents.cot import CoT
from automem.agents.memory import MemoryAgent
from automem.agents.naive import Naive
from automem.agents.protocol import Player
from automem.agents.random import Random
from automem.agents.scripted import ScriptedAgent
from automem.agents.simple import TOLD, Simple
from automem.errors import UserError
from automem.models.protocol import Model
from automem.sandbox import Sandbox
from automem.scaffold import Scaffold
from automem.vocabulary import one_line

ENTRY_POINTS = "automem.agents"

MEMORY = "memory"

OURS: Mapping[str, type] = {
    "random": Random,
    "naive": Naive,
    "cot": CoT,
    MEMORY: MemoryAgent,
    "scripted": ScriptedAgent,
}


def names() -> tuple[str, ...]:
    """Every agent's name."""
    return choosing.kinds(OURS, ENTRY_POINTS)


def kind(name: str) -> Any:
    """The class of the agent of this name. Raises `UserError` when there is none, or none that could play."""
    try:
        found: Any = choosing.chosen(name, OURS, ENTRY_POINTS, "agent")
    except UserError:
        raise
    except Exception as error:  # whatever the import of a package runs into
        told = one_line(f"{type(error).__name__}: {error}", TOLD)
        raise UserError(f"agent {name!r} cannot be loaded from its package: {told}") from error
    if not isinstance(found, type) or not isinstance(getattr(found, "model", None), str):
        raise UserError(
            f"agent {name!r}: {found!r} is not the class of an agent; it needs `model`, the name of the model that it "
            'plays with ("" for the one that is asked for, "none" for none)'
        )
    if lacking := _lacking(found):
        raise UserError(f"agent {name!r}: class {found.__qualname__} {lacking} (automem/agents/protocol.py)")
    return found


def _lacking(kind: type) -> str:
    """What keeps a class from being an agent; empty when nothing does."""
    if issubclass(kind, MemoryAgent):
        return ""
    if not callable(getattr(kind, "act", None)):
        return "has no method `act`; write async def act(self, observation)"
    try:
        inspect.signature(kind).bind(None)
    except TypeError:
        return "cannot be made with a seat alone; write def __init__(self, seat)"
    except ValueError:  # a class that Python cannot look into: it will show when it is made
        return ""
    return ""


def remembers(name: str) -> bool:
    """Whether the agent of this name keeps a memory folder, by a scaffold."""
    return issubclass(kind(name), MemoryAgent)


def versions(name: str) -> dict[str, str]:
    """The package, with its version, that an agent which is not ours comes from; it decides the outcome of a run."""
    if name in OURS:
        return {}
    entries = metadata.entry_points(group=ENTRY_POINTS)
    packages = (entry.dist for entry in entries if entry.name == name)
    return {dist.name: dist.version for dist in packages if dist is not None}


def seated(
    name: str,
    rules: Rules,
    seed: int,
    model: Model,
    scaffold: Scaffold | None = None,
    sandbox: Sandbox | None = None,
    listener: Listener | None = None,
    specialist: Specialist | None = None,
) -> Player:
    """An agent of this name, ready for an episode.

    Args:
        name: one of `names`.
        rules: of the game.
        seed: of the episode.
        model: answers what it asks.
        scaffold, sandbox, specialist: for agents that keep a memory folder.
        listener: watches its turns.
    """
    chosen = kind(name)
    if not issubclass(chosen, MemoryAgent):
        return Simple(chosen, rules, seed, model, listener, name)
    if scaffold is None:
        raise UserError(f"agent {name!r} plays by a scaffold, and there is none")
    return chosen(rules, model, scaffold, sandbox, listener, specialist)
