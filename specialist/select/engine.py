"""Who judges candidates: anything that says of each one how good it is, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from automem.trace.episode import EpisodeTrace
from specialist.candidate import Candidate


@dataclass(frozen=True, slots=True)
class Reason:
    """Something that counts for a candidate, or against it.

    Attributes:
        code: a short name, the same for the same thing everywhere: statistics are kept by it.
        amount: how much of it there was: a number, or a share in [0, 1].
        points: what it added to the score; negative when it counts against.
    """

    code: str
    amount: float
    points: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an engine says of one candidate.

    Attributes:
        score: candidates with a higher one are taken first. Any finite number.
        accept: it is good enough to learn from, whatever the quotas leave room for.
        reasons: what the score is made of, as far as that can be said in codes.
        text: the reason, for people, in a line.
    """

    score: float
    accept: bool
    reasons: tuple[Reason, ...]
    text: str


@runtime_checkable
class Written(Protocol):
    """What an engine offers beside `Engine` that judges by written criteria, of which there are versions."""

    def in_force(self) -> str:
        """The version by which it judges."""
        ...

    def by(self, criteria: str) -> Engine:
        """The same engine, judging by this version. Raises `automem.errors.UserError` when there is none."""
        ...

    def adopt(self, criteria: str) -> None:
        """Put this version in force, for later rounds and other processes, too."""
        ...

    async def close(self) -> None:
        """Let go of connections. Safe to call twice."""
        ...


class Engine(Protocol):
    """Judges the candidates of an episode.

    Attributes:
        name: for people and statistics: "rules", "llm".
        version: of its criteria; another one for criteria that judge otherwise.
        local: judging is mere computation. Such an engine can be pickled, its copies judge alike, and it is
            run in several processes at once; another one is awaited here, for a few episodes at a time.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def local(self) -> bool: ...

    async def judge(self, episode: EpisodeTrace, candidates: Sequence[Candidate]) -> Sequence[Verdict]:
        """One verdict for each of these candidates, in their order.

        Args:
            episode: what happened before and after them.
            candidates: of this episode, in the order in which they were written; not always all of them.
        """
        ...
