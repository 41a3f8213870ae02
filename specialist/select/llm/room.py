"""What the tools of a judge work on: one episode, some candidates of it, the verdicts so far, and the criteria."""

from __future__ import annotations

from dataclasses import dataclass, field

from automem.errors import UserError
from automem.trace import EpisodeTrace, RunTrace
from automem.trace.episode import run_of
from automem.vocabulary import one_line
from specialist.select.llm.criteria import Criteria, Version

EPISODE = "this"
"""How the model calls the run that it sees: of this episode alone."""


@dataclass(frozen=True)
class Given:
    """The model's verdict on a candidate.

    Attributes:
        accept: it is good enough.
        score: 0 to 10, how good.
        criterion: which criterion decided; empty for none of those written.
        reason: in a line.
    """

    accept: bool
    score: float
    criterion: str
    reason: str


@dataclass
class Room:
    """A batch of candidates that is being judged.

    Attributes:
        episode: where they stand.
        ids: of the candidates, as the model knows them: ``step/phase``.
        criteria: of the search.
        version: the one by which is judged.
        base: the one that the model saw last, and may revise.
        author: who it is that judges, in the record of versions.
        verdicts: by id.
        asked_again: those that were left out have been named.
        given_up: candidates were left out twice.
    """

    episode: EpisodeTrace
    ids: tuple[str, ...]
    criteria: Criteria
    version: Version
    author: str
    base: Version | None = None
    verdicts: dict[str, Given] = field(default_factory=dict)
    asked_again: bool = False
    given_up: bool = False
    _trace: RunTrace | None = None

    @property
    def finished(self) -> bool | None:
        """True once there is nothing left to judge; None until then."""
        return True if self.given_up or not self.left() else None

    def left(self) -> list[str]:
        """Candidates without a verdict."""
        return [one for one in self.ids if one not in self.verdicts]

    def trace(self, name: str) -> RunTrace:
        """The run, as if it had this episode alone. Raises `UserError`."""
        if name != EPISODE:
            raise UserError(f"there is no run {one_line(name, 60)!r} here: leave `run` out")
        if self._trace is None:
            run = run_of(self.episode.folder)
            if run is None:
                raise UserError("the run of this episode is gone; read_steps and memory_at cannot be asked")
            self._trace = RunTrace(run)
            self._trace.episodes = (self.episode,)
        return self._trace
