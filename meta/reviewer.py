"""What every reviewer offers: evidence in, a revision out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Protocol

from automem.check import Report
from automem.errors import UserError
from meta.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Budget:
    """What one review may spend; None is no limit.

    Attributes:
        turns: calls of the meta-LLM.
        tokens: prompt and completion tokens, cached ones included.
        usd: dollars, of the calls whose price is known.
        minutes: of wall-clock time.
    """

    turns: int | None = 60
    tokens: int | None = 2_000_000
    usd: float | None = None
    minutes: float | None = 30.0


@dataclass(frozen=True, slots=True)
class Spent:
    """What a review took: in the units of `Budget`, and seconds."""

    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Spent)))


@dataclass(frozen=True, slots=True)
class Revision:
    """What a reviewer says about the files that it left in the candidate's folder.

    Attributes:
        description: what changes, in one line.
        analysis: what was wrong, how the evidence shows it, and why the change should help; Markdown.
        spent: what it took.
    """

    description: str
    analysis: str
    spent: Spent = field(default_factory=Spent)


class ReviewFailed(Exception):
    """No revision came of a review: the budget ran out, the command died. The text says why; the loop goes on."""

    def __init__(self, why: str, spent: Spent | None = None) -> None:
        super().__init__(why)
        self.spent = spent or Spent()


class NothingLeft(ReviewFailed):
    """The reviewer has nothing more to propose for this parent; asking it again would not help."""


class ReviewerUnavailable(UserError):
    """The reviewer cannot be reached. The loop stops, and goes on with ``--resume`` when the cause is mended."""


@dataclass(frozen=True)
class Desk:
    """Where a reviewer works.

    Attributes:
        folder: the attempt's own, for transcripts and notes; what a reviewer needs to go on after a kill lies here.
        candidate: a scaffold that loads and already has its new name and its parent's identity: the files to edit.
            It begins as a copy of the parent or, in a continuation, of the attempt before.
        check: runs the checker on the candidate; takes some seconds.
        budget: what the review may spend.
        said: tells whoever watches what is being done, in a few words.
    """

    folder: Path
    candidate: Path
    check: Callable[[], Awaitable[Report]]
    budget: Budget = field(default_factory=Budget)
    said: Callable[[str], None] = lambda text: None


class Reviewer(Protocol):
    """Reads evidence and edits a candidate.

    Attributes:
        name: as lineage and pages call it: ``rules``, ``llm openai/gpt-5``.
    """

    name: str

    async def ready(self) -> None:
        """Return once reviews can begin; called once. Raises `ReviewerUnavailable` when they never can."""
        ...

    async def revise(self, evidence: Evidence, desk: Desk) -> Revision:
        """Leave a revision in `desk.candidate` and say what it is.

        Called again with the same evidence and the same folder after a kill; then nothing that was paid for is
        paid again. Raises `ReviewFailed`, which costs this attempt, or `ReviewerUnavailable`, which pauses the loop.
        """
        ...

    async def close(self) -> None:
        """Let go of what is held. Safe to call twice."""
        ...
