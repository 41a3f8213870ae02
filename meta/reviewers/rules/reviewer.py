"""The reviewer itself: measures, lets the rules propose, makes the most promising change that passes the checks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tomlkit

from automem.errors import UserError
from automem.scaffold import Scaffold
from automem.trace import RunTrace
from meta.evidence import Attempt, Evidence
from meta.reviewer import Desk, NothingLeft, ReviewFailed, Revision
from meta.reviewers.rules.analysis import analysis
from meta.reviewers.rules.draft import CannotEdit, Draft
from meta.reviewers.rules.findings import Measured
from meta.reviewers.rules.measuring import measure
from meta.reviewers.rules.proposal import Proposal, Rule, Tried, tried_before, write_record
from meta.reviewers.rules.rules import ALL


@dataclass(frozen=True)
class _Base:
    """What a revision starts from.

    Attributes:
        scaffold, run: files, and how they were played.
        kept: the attempt whose changes these are; None where they are the parent's.
        why: for people; empty for the parent.
    """

    scaffold: Scaffold
    run: RunTrace
    kept: Attempt | None = None
    why: str = ""


class Rules:
    """Proposes structural edits without a language model, each for a measured reason."""

    name = "rules"

    def __init__(self, rules: Sequence[Rule] = ALL) -> None:
        self._rules = rules
        self._measured: tuple[tuple[tuple[Path, int], ...], Measured] | None = None

    async def ready(self) -> None:
        """Nothing to wait for."""

    async def close(self) -> None:
        """Nothing to let go of."""

    async def revise(self, evidence: Evidence, desk: Desk) -> Revision:
        """Make the most promising proposal that was not made before; the same evidence gives the same revision."""
        base = _base(evidence)
        desk.said("measuring")
        try:
            measured = await asyncio.to_thread(self._measure, base)
        except UserError as error:
            raise ReviewFailed(f"there is nothing to measure: {error}") from error
        tried = tried_before(evidence.attempts, evidence.parent.identity, base.kept)
        version = _version(desk)
        dropped: list[tuple[Proposal, str]] = []
        while (proposal := self._best(measured, base.scaffold, tried)) is not None:
            desk.said(proposal.change)
            problem = await self._make(proposal, base, evidence, desk, version)
            said = analysis(measured, proposal, base.why, dropped)
            if not problem:
                write_record(desk.folder, proposal, base.kept)
                return Revision(f"{proposal.name}: {proposal.change}", said)
            dropped.append((proposal, problem))
            tried = tried.adding(proposal)
        why = "; ".join(f"{proposal.name}: {problem}" for proposal, problem in dropped)
        raise NothingLeft(f"no rule has anything more to propose for {evidence.parent.ref}{f' ({why})' if why else ''}")

    def _measure(self, base: _Base) -> Measured:
        """The figures; those of the attempt before when it saw the same steps."""
        seen = tuple((episode.path, len(episode)) for episode in base.run.episodes)
        if self._measured is None or self._measured[0] != seen:
            self._measured = (seen, measure(base.run, base.scaffold))
        return self._measured[1]

    def _best(self, measured: Measured, scaffold: Scaffold, tried: Tried) -> Proposal | None:
        proposals = [proposal for rule in self._rules if (proposal := rule.propose(measured, scaffold, tried))]
        return max(proposals, key=lambda proposal: proposal.expected, default=None)

    async def _make(self, proposal: Proposal, base: _Base, evidence: Evidence, desk: Desk, version: str) -> str:
        """Edit the candidate; why it cannot be used, or nothing when it can."""
        try:
            draft = Draft(base.scaffold.sources, version, evidence.parent.identity)
            proposal.edit(draft)
        except CannotEdit as error:
            return str(error)
        draft.save(desk.candidate, f"# {proposal.change}\n\n{proposal.reason}\n")
        report = await desk.check()
        return "; ".join(f"{finding.file}: {finding.message}" for finding in report.errors)


def _base(evidence: Evidence) -> _Base:
    """The parent; or the attempt before, when it played no worse and it is the rules' own."""
    before = evidence.before
    if before is not None and _promising(before) and (run := before.trace()) is not None and run.episodes:
        gain = before.looks[-1].mean
        why = (
            f"It goes on from attempt {before.number} ({before.description}), which gained {100 * gain:+.1f} points on "
            f"{before.looks[-1].seeds} seeds: too few to be sure of."
        )
        return _Base(before.scaffold(), run, before, why)
    return _Base(evidence.parent, evidence.run)


def _promising(attempt: Attempt) -> bool:
    return attempt.outcome == "inconclusive" and bool(attempt.looks) and attempt.looks[-1].mean > 0


def _version(desk: Desk) -> str:
    """The candidate's own name, as its ``scaffold.toml`` has it."""
    try:
        return str(tomlkit.parse((desk.candidate / "scaffold.toml").read_text("utf-8"))["scaffold"]["version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReviewFailed(f"{desk.candidate}: the candidate's scaffold.toml cannot be read: {error}") from error
