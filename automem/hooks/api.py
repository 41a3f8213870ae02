"""Hooks: code of a scaffold that assists the model's memory, without replacing its decisions.

A ``hooks.py`` beside ``scaffold.toml`` defines one class, ``Hooks``, with any of these methods; one
that is not defined is not called::

    from automem.hooks import Again, Memory, Operation, Step, write

    class Hooks:
        def reset(self, game: str, task: str) -> None:
            '''The episode begins. Set up state; it lives in this object until the episode ends.'''

        def observe(self, step: Step) -> dict[str, str]:
            '''Once a step, before LOG and PLAN. Returns the texts that ``[hooks] shows`` names;
            templates show them as ``{{ hooks.NAME }}``, empty where nothing was returned.'''

        def maintain(self, step: Step, memory: Memory) -> list[Operation]:
            '''After LOG (at step 0, which has no LOG, in its place). Returns write operations
            to run: a status file kept current, an old log pruned.'''

        def check_action(self, step: Step, action: str) -> str | Again | None:
            '''The model has committed to an action: one of the game's, or whatever it wrote
            that is none. Returns an action to play instead, `Again` with a reason to think
            again, or None to let it be. A reason is told once: if the model then commits to
            the same action, or has no replies left, the action is played.'''

        def op_NEAR(self, args: tuple[str, ...], memory: Memory) -> str | tuple[str, list[Operation]]:
            '''The model used the operation NEAR, which ``[[ops.own]]`` declares. Returns what it
            is told, and write operations to run (in LOG; in PLAN memory cannot be changed).'''

A hook sees the text that the model sees and the memory folder. There is no game, no seed, no score,
no network and no file to be seen, and the limits on time, memory and the size of an answer are those
of the run. An exception, an answer of the wrong shape or a call that takes too long is noted in the
trace and counts as no answer; after a call that takes too long or ends the process, the object is made
anew and `reset` is called again. When a run is resumed, the same calls are made again with what was
recorded, so what a method returns must depend on its arguments and the object's state only: no clock,
no randomness, no identity of objects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

Operation = tuple[str, ...]
"""A memory operation: its name and arguments, as `append`, `write`, `create`, `upsert`, `upsert_map` and
`delete` make them."""


@dataclass(frozen=True, slots=True)
class Step:
    """What hooks and templates see of a step: the text that the model sees, and nothing else.

    Attributes:
        number: the step, from 0.
        observation: the game's text; it shows what `action` led to.
        action: the last action that was played, None at step 0.
        raw_action: the last action as the model wrote it; None when it committed none.
        history: the last 16 actions that were played, oldest first; `action` is the newest.
    """

    number: int
    observation: str
    action: str | None
    raw_action: str | None
    history: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Again:
    """Answer of `check_action`: do not play this action yet.

    Attributes:
        reason: told to the model, in one line.
    """

    reason: str


class File(NamedTuple):
    """A file in the memory folder: its name, how many lines and how many bytes it has."""

    name: str
    lines: int
    bytes: int


class Memory:
    """The memory folder as it stands during a call. Reading here is not counted as the model's."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        """`ask(question, *args)` answers from the folder; the sandbox provides it."""
        self._ask = ask

    def files(self) -> list[File]:
        """Every file, sorted by name."""
        return [File(*entry) for entry in self._ask("files")]

    def read(self, name: str) -> str:
        """The whole text of a file; empty when it is not there. A call may read 8 million characters in all."""
        return self._ask("read", name)

    def tail(self, name: str, n: int) -> list[str]:
        """The last `n` lines of a file, oldest first; none when it is not there."""
        return self._ask("tail", name, n)

    def search(self, name: str, query: str) -> list[str]:
        """The lines of a file that contain the query, upper or lower case alike, oldest first."""
        return self._ask("search", name, query)


def append(file: str, text: str) -> Operation:
    """Add a line at the end of a note or a log."""
    return ("APPEND", file, text)


def write(file: str, text: str) -> Operation:
    """Replace everything in a file."""
    return ("WRITE", file, text)


def create(file: str) -> Operation:
    """Make a new, empty file."""
    return ("CREATE", file)


def upsert(file: str, key: str, value: str) -> Operation:
    """Set the value of a key in a map file."""
    return ("UPSERT", file, key, value)


def upsert_map(x: int, y: int, text: str) -> Operation:
    """Set what is at a coordinate of the scaffold's coordinate map."""
    return ("UPSERT_MAP", f"{x},{y}", text)


def delete(file: str, entry: str | None = None) -> Operation:
    """Remove a key or an exact line; without `entry`, the whole file."""
    return ("DELETE", file) if entry is None else ("DELETE", file, entry)
