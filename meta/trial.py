"""One attempt from evidence to decision: review, check, play against the parent, judge.

Each stage leaves its result in the attempt's folder, so that a loop that was killed goes on after the last
one that was over. Whatever goes wrong in a stage costs this attempt, never the loop.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from automem import check
from automem.check import Report
from automem.check.folder import contents
from automem.episode import write_json
from automem.errors import UserError
from automem.scaffold import Scaffold, ScaffoldError
from automem.storable import storable
from automem.trace import RunTrace
from meta import audit, candidate, lean, storage
from meta.arena import Arena, CandidateFailed, Played
from meta.evidence import Attempt, Evidence, Outcome, only
from meta.gate import Gate, Look
from meta.reviewer import Budget, Desk, NothingLeft, Reviewer, ReviewFailed, Revision, Spent
from meta.storage import LoopFolder
from meta.twins import Twins
from meta.watching import LoopWatcher

NOTES = """\
# {ref}

{description}

Made from `{parent}` by {reviewer}, attempt {number} of {loop}.

{analysis}
"""
"""What a candidate's ``notes.md`` says; what was measured is added when it is adopted."""


class ParentFailed(Exception):
    """An accepted version cannot be played on further seeds, by its own fault; the text says why."""


@dataclass(frozen=True)
class Gates:
    """Who judges.

    Attributes:
        better: asks for better play.
        leaner: asks a candidate with a leaner memory for play that is hardly worse; None where better play is asked
            of all.
    """

    better: Gate
    leaner: Gate | None = None


class Trial:
    """Makes attempts."""

    def __init__(self, loop: LoopFolder, arena: Arena, reviewer: Reviewer, gates: Gates, watcher: LoopWatcher) -> None:
        self._loop = loop
        self._arena = arena
        self._reviewer = reviewer
        self._gates = gates
        self._watcher = watcher

    async def attempt(
        self,
        number: str,
        parent: Scaffold,
        alpha: float,
        earlier: Sequence[Attempt],
        before: Attempt | None,
        twins: Twins,
    ) -> Attempt:
        """Make an attempt, or go on with it, or find that it is over.

        Args:
            number: ``revision.attempt.continuation``.
            parent: what it is made from and held against.
            alpha: its share of the error budget.
            earlier: attempts that are over, for the reviewer and against repetition.
            before: the attempt that it goes on from; None for a fresh one.
            twins: those that are made beside it.

        Raises `UserError` for what is no candidate's doing; the loop can be resumed then.
        """
        over = self._loop.attempt(number)
        if over is not None:
            twins.tell(number, candidate.content_of(contents(over.candidate).sources) if over.played else "")
            return over
        folder = self._loop.attempt_folder(number)
        blank = Attempt(
            number=number,
            reviewer=self._reviewer.name,
            parent=parent.identity,
            identity="",
            folder=folder,
            description="",
            analysis="",
            outcome="failed",
            why="",
            alpha=alpha,
            shown=self._shown(),
        )
        self._loop.begin(number)
        try:
            ended = await self._made(blank, parent, earlier, before, twins)
        except UserError:
            raise
        except ParentFailed as failed:
            ended = replace(blank, why=str(failed), parent_failed=True)
        except Exception as defect:  # a candidate must not end a search, whatever it holds
            (folder / "traceback.txt").write_text(traceback.format_exc(), encoding="utf-8", errors="replace")
            ended = replace(blank, why=f"{type(defect).__name__}: {defect} (traceback.txt in its folder says where)")
        finally:
            twins.tell(number, "")
        ended = _written(ended)
        self._loop.keep(ended)
        self._watcher.ended(ended)
        return ended

    async def _made(
        self, blank: Attempt, parent: Scaffold, earlier: Sequence[Attempt], before: Attempt | None, twins: Twins
    ) -> Attempt:
        shown = self._shown()
        self._watcher.playing(blank.number, parent, len(shown))
        await self._play_parent(parent, shown)
        try:
            revision, identity = await self._reviewed(blank, parent, earlier, before)
        except ReviewFailed as failed:
            outcome: Outcome = "exhausted" if isinstance(failed, NothingLeft) else "failed"
            return replace(blank, outcome=outcome, why=str(failed))
        told = replace(blank, identity=identity, description=revision.description, analysis=revision.analysis)
        self._watcher.doing(blank.number, "checking")
        try:
            report = await self._check(blank.folder / "candidate")
        except ScaffoldError as error:  # there is no scaffold.toml any more
            return replace(told, outcome="invalid", why=str(error))
        told = replace(told, findings=lines(report))
        if not report.ok:
            why = f"the checker found {len(report.errors)} error(s): {report.errors[0].message}"
            return replace(told, outcome="invalid", why=why)
        try:
            made = told.scaffold()
        except ScaffoldError as error:
            return replace(told, outcome="invalid", why=str(error))
        version = candidate.version_name(self._loop.config.name, blank.number)
        problem = candidate.problem(made, parent, version, earlier)
        if not problem and made.identity != identity:
            problem = "its files were changed after the review was over"
        if not problem:
            content = candidate.content_of(made.sources)
            twins.tell(blank.number, content)
            twin = await twins.played_by(blank.number, content)
            problem = f"the same files are played as attempt {twin}, made beside it" if twin else ""
        if problem:
            return replace(told, outcome="invalid", why=problem)
        return await self._judged(told, made, parent)

    async def _reviewed(
        self, blank: Attempt, parent: Scaffold, earlier: Sequence[Attempt], before: Attempt | None
    ) -> tuple[Revision, str]:
        """The revision and the identity of the files that it left. Raises `ReviewFailed`."""
        marker = blank.folder / storage.REVISION
        kept = storage.read_json(marker)
        if kept is None:
            kept = await self._review(blank, parent, earlier, before)
            write_json(marker, kept)
            self._watcher.reviewed(blank.number, kept["description"] or kept["failed"], Spent(**kept["spent"]))
        if kept["failed"]:
            raise (NothingLeft if kept["nothing_left"] else ReviewFailed)(kept["failed"])
        return Revision(kept["description"], kept["analysis"], Spent(**kept["spent"])), kept["identity"]

    async def _review(
        self, blank: Attempt, parent: Scaffold, earlier: Sequence[Attempt], before: Attempt | None
    ) -> dict:
        place = blank.folder / "candidate"
        version = candidate.version_name(self._loop.config.name, blank.number)
        start = _start(parent, before)
        storage.write_scaffold(place, candidate.sources(parent, start, version))
        run = only(RunTrace(self._arena.run(parent)), self._shown())
        evidence = Evidence(blank.number, parent, run, tuple(earlier), before)
        desk = Desk(
            blank.folder,
            place,
            lambda: self._check(place),
            _budget(self._loop),
            lambda text: self._watcher.doing(blank.number, text),
        )
        self._watcher.doing(blank.number, "reviewing")
        try:
            revision = await self._reviewer.revise(evidence, desk)
        except ReviewFailed as failed:
            nothing = isinstance(failed, NothingLeft)
            return _kept(Revision("", "", failed.spent), "", str(failed), nothing)
        try:
            self._write_notes(blank, parent, revision, place)
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            # What was spent is spent, whatever was left.
            why = f"what the reviewer left cannot be used: {error}"
            return _kept(Revision("", "", revision.spent), "", why, False)
        return _kept(revision, contents(place).identity or "", "", False)

    def _write_notes(self, blank: Attempt, parent: Scaffold, revision: Revision, place: Path) -> None:
        notes = NOTES.format(
            ref=f"{parent.game}/{candidate.version_name(self._loop.config.name, blank.number)}",
            description=revision.description,
            parent=parent.identity,
            reviewer=self._reviewer.name,
            number=blank.number,
            loop=self._loop.config.name,
            analysis=revision.analysis,
        )
        path = place / "notes.md"
        if path.is_dir() and not path.is_symlink():
            return  # the checker says what is wrong with it
        # Never through what lies there: a link leads elsewhere, a pipe would be waited for.
        path.unlink(missing_ok=True)
        path.write_text(notes, encoding="utf-8", errors="replace")

    async def _judged(self, told: Attempt, made: Scaffold, parent: Scaffold) -> Attempt:
        """Play what reviewers are shown, then batch after batch until the gate decides."""
        told = replace(told, played=self._arena.run(made).folder)
        seeds = self._loop.config.judged_seeds
        looks: list[Look] = []
        most, step = self._gates.better.most, self._gates.better.batch
        try:
            self._watcher.playing(told.number, made, len(self._shown()))
            before, after = await self._pairs(parent, made, self._shown())
            broken = audit.violation(after.results, before.results)
            if not broken:
                broken = await asyncio.to_thread(audit.removed_writes, self._arena.run(made).folder, made)
            if broken:
                return replace(told, outcome="invalid", why=broken)
            for end in range(step, most + step, step):
                batch = seeds[: min(end, most)]
                self._watcher.playing(told.number, made, len(batch))
                before, after = await self._pairs(parent, made, batch)
                broken = audit.violation(after.results, before.results)
                if broken:
                    return replace(told, outcome="invalid", why=broken, looks=tuple(looks))
                differences = [after.progression[seed] - before.progression[seed] for seed in batch]
                look = self._gate(before, after).judge(differences, told.alpha)
                looks.append(look)
                self._watcher.looked(told.number, look)
                if look.decision != "continue":
                    return replace(told, outcome=look.decision, why=look.why, looks=tuple(looks))
            raise AssertionError("a gate decides when all seeds are played")
        except (CandidateFailed, ParentFailed) as failed:
            blamed = isinstance(failed, ParentFailed)
            return replace(told, why=str(failed), looks=tuple(looks), parent_failed=blamed)
        finally:
            self._arena.summarise(made)
            self._arena.summarise(parent)

    def _gate(self, before: Played, after: Played) -> Gate:
        if self._gates.leaner is not None and lean.leaner(after.results, before.results):
            return self._gates.leaner
        return self._gates.better

    async def _pairs(self, parent: Scaffold, made: Scaffold, seeds: Sequence[int]) -> tuple[Played, Played]:
        """Both versions on the same seeds, played side by side.

        Both are waited for also when one fails, so that what was played, and whose fault is told, never depends on
        time.
        """
        before, after = await asyncio.gather(
            self._play_parent(parent, seeds), self._arena.play(made, seeds), return_exceptions=True
        )
        for failed in (before, after):
            if isinstance(failed, UserError):
                raise failed
        if isinstance(before, BaseException):
            raise before
        if isinstance(after, BaseException):
            raise after
        return before, after

    async def _play_parent(self, parent: Scaffold, seeds: Sequence[int]) -> Played:
        """Play what the candidate is held against. Whatever fails there is not the candidate's fault.

        Raises `ParentFailed` for a version that the loop accepted, on fewer seeds; `UserError` for the root, without
        which there is no loop.
        """
        try:
            return await self._arena.play(parent, seeds)
        except CandidateFailed as failed:
            told = f"{parent.ref}, the parent, cannot be played: {failed}"
            if parent.identity == self._loop.config.root.identity:
                raise UserError(told) from failed
            raise ParentFailed(told) from failed

    async def _check(self, place: Path) -> Report:
        return await asyncio.to_thread(check.check, str(place), unsafe=self._loop.config.sandbox.unsafe)

    def _shown(self) -> tuple[int, ...]:
        return self._loop.config.shown_seeds


def lines(report: Report) -> tuple[str, ...]:
    """What a check found, a line each."""
    return tuple(
        f"{finding.severity}: {finding.file or '.'}{f':{finding.line}' if finding.line else ''}: {finding.message}; "
        f"{finding.do}"
        for finding in report.findings
        if finding.code != "version-name"  # the folder of every candidate is called the same
    )


def _written(attempt: Attempt) -> Attempt:
    """The attempt in characters that UTF-8 has: models and file names bring others."""
    return replace(
        attempt,
        description=storable(attempt.description),
        analysis=storable(attempt.analysis),
        why=storable(attempt.why),
        findings=tuple(storable(line) for line in attempt.findings),
    )


def _start(parent: Scaffold, before: Attempt | None) -> Scaffold:
    """What the candidate's files begin as: those of the attempt that is gone on from, if they can be gone on with."""
    if before is not None and before.identity:
        try:
            found = before.scaffold()
            if found.game == parent.game and not candidate.unfit(found):
                return found
        except (ScaffoldError, OSError):
            pass
    return parent


def _budget(loop: LoopFolder) -> Budget:
    settings = loop.config.reviewer
    return Budget(settings.turns, settings.tokens, settings.usd, settings.minutes)


def _kept(revision: Revision, identity: str, failed: str, nothing_left: bool) -> dict:
    return {
        "description": storable(revision.description),
        "analysis": storable(revision.analysis),
        "spent": asdict(revision.spent),
        "identity": identity,
        "failed": storable(failed),
        "nothing_left": nothing_left,
    }
