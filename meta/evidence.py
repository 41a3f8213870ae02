"""What a reviewer is given: the scaffold to improve, how it was played, and what was tried before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from automem import scaffold
from automem.scaffold import Scaffold
from automem.trace import RunTrace
from meta.gate import Look

Outcome = Literal["accepted", "rejected", "inconclusive", "invalid", "failed", "exhausted"]
"""How an attempt ended: the gate's three decisions; the checker or the audit refused it; reviewing or playing it
failed; the reviewer had nothing more to propose."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One candidate of a loop and what came of it.

    Attributes:
        number: ``revision.attempt.continuation``, from 1, 1 and 0.
        reviewer: who wrote it.
        parent: identity of the version that it was made from and held against.
        identity: its own; empty when no revision was made.
        folder: ``attempts/<number>`` of the loop's run, with the candidate's files in ``candidate/``.
        description: one line that says what it changes.
        analysis: what the reviewer found wrong, and why this should help.
        outcome: how it ended.
        why: the reason, in a sentence or two.
        findings: what the checker said, a line each.
        looks: the gate's judgements, one after each batch of seeds; empty when it was not played.
        alpha: the share of the loop's error budget that it was tested with.
        played: run folder of its episodes on gate seeds; None when it was not played.
        shown: the gate seeds whose episodes a reviewer may read.
        parent_failed: it ended because its parent, accepted on fewer seeds, fails on further ones.
    """

    number: str
    reviewer: str
    parent: str
    identity: str
    folder: Path
    description: str
    analysis: str
    outcome: Outcome
    why: str
    findings: tuple[str, ...] = ()
    looks: tuple[Look, ...] = ()
    alpha: float = 0.0
    played: Path | None = None
    shown: tuple[int, ...] = ()
    parent_failed: bool = False

    @property
    def candidate(self) -> Path:
        """The folder that holds its files."""
        return self.folder / "candidate"

    def scaffold(self) -> Scaffold:
        """Its files, loaded. Raises `automem.scaffold.ScaffoldError`."""
        return scaffold.load(str(self.candidate))

    def trace(self) -> RunTrace | None:
        """How it was played, on the seeds that reviewers may read; None when it was not."""
        return None if self.played is None else only(RunTrace(self.played), self.shown)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that a reviewer may know.

    Attributes:
        number: of the attempt to be made.
        parent: the version to improve.
        run: its episodes on those gate seeds that reviewers may read. Others, and held-out ones, are never shown.
        attempts: all earlier attempts of the loop, in order.
        before: the attempt that failed just before, when this one goes on from it; else None.
    """

    number: str
    parent: Scaffold
    run: RunTrace
    attempts: Sequence[Attempt] = ()
    before: Attempt | None = None

    @property
    def game(self) -> str:
        """The game that is played."""
        return self.parent.game


def only(run: RunTrace, seeds: Sequence[int]) -> RunTrace:
    """The run without the episodes of other seeds."""
    run.episodes = tuple(episode for episode in run.episodes if episode.seed in seeds)
    return run
