"""Who watches a loop is told what happens, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from automem.episode import EpisodeListener
from automem.scaffold import Scaffold
from meta.evidence import Attempt
from meta.gate import Look
from meta.reviewer import Spent
from meta.storage import LoopFolder


class LoopWatcher(EpisodeListener, Protocol):
    """Somebody who watches a loop; of episodes it is told every turn and step."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def reaching(self, model: str) -> None:
        """The model or the reviewer is being reached."""
        ...

    def opened(self, loop: LoopFolder, done: Sequence[Attempt]) -> None:
        """The loop is on disk; `done` are the attempts that were over before."""
        ...

    def began(self, revision: int, parent: Scaffold, alpha: float) -> None:
        """A revision begins: what it is made from, and the error share of each of its candidates."""
        ...

    def playing(self, number: str, version: Scaffold, seeds: int) -> None:
        """A version is being played on so many seeds; `number` is the attempt, or "root" or "held-out"."""
        ...

    def doing(self, number: str, text: str) -> None:
        """What an attempt is busy with: reviewing, checking, and what its reviewer says."""
        ...

    def reviewed(self, number: str, description: str, spent: Spent) -> None:
        """A review is over."""
        ...

    def looked(self, number: str, look: Look) -> None:
        """The gate has judged."""
        ...

    def ended(self, attempt: Attempt) -> None:
        """An attempt is over."""
        ...
