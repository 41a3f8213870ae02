"""The reviewer `command`: any coding agent with a command line, shut in with its task."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from automem import runs
from automem.scaffold import write_files
from automem.vocabulary import one_line
from meta.evidence import Evidence
from meta.reviewer import Desk, ReviewerUnavailable, ReviewFailed, Revision, Spent
from meta.reviewers.command import contained, given, judged, view
from meta.reviewers.command.contained import CannotStart, Containment, Ended, Left, Place
from meta.reviewers.command.given import Again
from meta.reviewers.command.options import CommandOptions
from meta.reviewers.command.output import Output
from meta.reviewers.command.rounds import Round, Rounds

if TYPE_CHECKING:
    from automem.check import Report

LOG = "command.log"
OPTION = "--reviewer-option"

_TRIAL = 'automem --help > /dev/null || exit 2; command -v "$0" > /dev/null || { echo "no program $0"; exit 3; }'
"""What has to work inside: asking, and finding the command's program."""

TRIAL_SECONDS = 60.0


class CommandReviewer:
    """Runs a command in a workspace, and takes what it leaves there as the revision.

    Of the budget only minutes can be kept: what a command spends on models is known to it alone.

    Attributes:
        name: ``command`` and the program's name.
    """

    def __init__(self, options: CommandOptions) -> None:
        self.name = f"command {one_line(Path(options.words[0]).name, 40)}"
        self._options = options
        self._containment: Containment | None = None

    async def ready(self) -> None:
        """See `meta.reviewer.Reviewer`: what is opened is there, and the command can be contained and started."""
        for name in self._options.env:
            if name not in os.environ:
                raise ReviewerUnavailable(f"{OPTION} env={name}: there is no such variable in your environment")
        for option, paths in (("read", self._options.read), ("write", self._options.write)):
            for path in paths:
                if not path.exists():
                    raise ReviewerUnavailable(f"{OPTION} {option}={path}: there is no such file or folder")
        self._check_hidden(runs.runs_folder().resolve())
        try:
            await self._try("bubblewrap")
            self._containment = "bubblewrap"
        except CannotStart as cannot:
            self._containment = self._without(str(cannot))

    async def revise(self, evidence: Evidence, desk: Desk) -> Revision:
        """See `meta.reviewer.Reviewer`: run the command, and once more when what it left cannot be used."""
        self._check_hidden(desk.folder.resolve())
        if self._containment is None:
            await self.ready()
        rounds = Rounds(desk.folder / "rounds")
        start = rounds.start(desk.candidate)
        begin, seconds = Again(start), 0.0
        for number in range(1, self._options.rounds + 1):
            done = rounds.read(number)
            if done is None:
                left_over = _left_over(desk, seconds)
                minutes = None if left_over is None else left_over / 60
                place = await asyncio.to_thread(given.write, evidence, desk.folder, begin, self._options, minutes)
                done, files = await self._round(number, place, desk, left_over, start, evidence.parent.sources)
                rounds.keep(number, done, files)
            seconds += done.seconds
            spent = Spent(seconds=seconds)
            last = number == self._options.rounds or _left_over(desk, seconds) == 0
            if done.failed:
                raise ReviewFailed(f"{self._command} {done.failed}", spent)
            files = rounds.files(number)
            if done.problems:
                if last:
                    raise ReviewFailed(f"{self._command} left no revision: {'; '.join(done.problems)}", spent)
                begin = Again(files or begin.files, _text(done), given.complaint_about(done.problems))
                continue
            await asyncio.to_thread(_put, desk.candidate, files)
            desk.said("checking what it left")
            report = await desk.check()
            if report.ok or last:
                return Revision(done.description, done.analysis, spent)
            desk.said(f"{_errors(report)}; it is told, and runs again")
            begin = Again(files, _text(done), given.complaint_of(report))
        raise AssertionError("the last round returns or raises")

    async def close(self) -> None:
        """See `meta.reviewer.Reviewer`: nothing runs between reviews."""

    async def _round(
        self,
        number: int,
        place: Place,
        desk: Desk,
        seconds: float | None,
        start: Mapping[str, bytes],
        parent: Mapping[str, bytes],
    ) -> tuple[Round, dict[str, bytes]]:
        """Run the command once, and judge what it left."""
        assert self._containment is not None
        desk.said(f"{self._command}, round {number}")
        secrets = self._secrets()
        heading = f"round {number}: {self._options.command}\n{self._seen()}"
        output = Output(desk.folder / LOG, heading, [*secrets.values()], desk.said)
        began = time.monotonic()
        try:
            left = await contained.run(self._options, self._containment, place, seconds, output)
        except CannotStart as cannot:
            raise ReviewerUnavailable(self._cannot(str(cannot))) from cannot
        except Ended as ended:
            return Round(time.monotonic() - began, failed=str(ended)), {}
        finally:
            output.close()
            await asyncio.to_thread(shutil.rmtree, place.workspace, ignore_errors=True)
        done = _judge(left, secrets, start, parent)
        if left.ending and done.problems and not done.failed:
            # It says itself that it could not; running it again would not help.
            last = f"; the last that it printed: {output.last}" if output.last else ""
            done = replace(done, failed=f"{left.ending}, and left no revision: {done.problems[0]}{last} (see {LOG})")
        taken = time.monotonic() - began
        return replace(done, seconds=taken), {} if done.failed else judged.of_scaffold(left)

    @property
    def _command(self) -> str:
        return f"the command {Path(self._options.words[0]).name!r}"

    def _seen(self) -> str:
        """What is in view, for whoever reads the log."""
        if self._containment == "unsafe":
            return "not contained: it sees and may do what you may"

        def listed(paths: Iterable[object]) -> str:
            return ", ".join(map(str, paths)) or "none"

        return (
            f"contained by bubblewrap; network: {'yes' if self._options.network else 'no'}; "
            f"variables: {listed(self._options.env)}\n"
            f"read-only: {listed([*view.SYSTEM, *view.shown(self._options)])}\n"
            f"may be changed, and stays: {listed(self._options.write)}"
        )

    def _secrets(self) -> dict[str, str]:
        return {name: os.environ[name] for name in self._options.env if os.environ.get(name)}

    def _check_hidden(self, hidden: Path) -> None:
        """Refuse to open a folder that holds the runs: held-out episodes, seeds and scores would be in view."""
        for option, paths in (("read", self._options.read), ("write", self._options.write)):
            for path in paths:
                if hidden.is_relative_to(path.resolve()) or path.resolve().is_relative_to(hidden):
                    raise ReviewerUnavailable(
                        f"{OPTION} {option}={path}: with {hidden}, held-out episodes and scores would be in view that "
                        "a reviewer must not see; open narrower folders"
                    )

    async def _try(self, containment: Containment) -> None:
        """Start a program of ours in the containment; raises `CannotStart`, or `ReviewerUnavailable`."""
        words = view.words(self._options)
        with tempfile.TemporaryDirectory(prefix="automem-command-") as scratch:
            place = _trial_place(Path(scratch))
            trial = self._options.model_copy(update={"command": shlex.join(["/bin/sh", "-c", _TRIAL, words[0]])})
            # What the command names is in view in the trial, too.
            trial = trial.model_copy(update={"read": (*self._options.read, *view.named_files(self._options))})
            output = Output(place.given / LOG, "trial", [], lambda text: None)
            try:
                left = await contained.run(trial, containment, place, TRIAL_SECONDS, output)
            except Ended as ended:
                raise CannotStart(f"a trial {ended}") from ended
            finally:
                output.close()
        if left.ending:
            raise ReviewerUnavailable(self._cannot(output.last))

    def _cannot(self, why: str) -> str:
        return (
            f"The command {self._options.command!r} cannot be started: {why}. It sees the programs in /usr, this "
            f"Python, and nothing of your home folder; open what it needs with {OPTION} read=FOLDER, and its keys with "
            f"{OPTION} env=NAME"
        )

    def _without(self, why: str) -> Containment:
        if self._options.unsafe:
            return "unsafe"
        raise ReviewerUnavailable(
            f"Nothing can contain the command {self._options.command!r} on this machine, so it is not started.\n"
            f"  bubblewrap: {why}\n"
            "Install bubblewrap and libseccomp (Debian, Ubuntu: apt-get install bubblewrap libseccomp2) and allow "
            "unprivileged user namespaces. Landlock, which contains scaffold code elsewhere, cannot keep a whole agent "
            f"from other processes, from their number, or from filling the disk. {OPTION} unsafe=true runs the command "
            "all the same, with all your rights, on text that a model wrote; do that on a machine of its own."
        )


def _judge(left: Left, secrets: Mapping[str, str], start: Mapping[str, bytes], parent: Mapping[str, bytes]) -> Round:
    leak = judged.leaks(left, secrets)
    if leak:
        return Round(0.0, failed=f"left something that cannot be kept: {leak}")
    found = tuple(judged.problems(left, start, parent))
    description, analysis = judged.description(left.said or b"", secrets)
    return Round(0.0, "", found, description, analysis)


def _left_over(desk: Desk, seconds: float) -> float | None:
    """Seconds of the budget that are left; None when it has no limit."""
    return None if desk.budget.minutes is None else max(desk.budget.minutes * 60 - seconds, 0.0)


def _text(done: Round) -> bytes | None:
    return f"{done.description}\n\n{done.analysis}\n".encode() if done.description else None


def _put(candidate: Path, files: Mapping[str, bytes]) -> None:
    """Put a round's files in place of those that are there. A kill in between is mended by doing it again."""
    shutil.rmtree(candidate)
    candidate.mkdir()
    write_files(candidate, files)


def _errors(report: Report) -> str:
    return "1 error" if len(report.errors) == 1 else f"{len(report.errors)} errors"


def _trial_place(scratch: Path) -> Place:
    """A workspace with nothing in it."""
    given.write_program(scratch / "given")
    write_files(scratch / "given", {"workspace/TASK.md": b"", "candidate/none": b""})
    return Place(scratch / "given", {}, scratch / "workspace")
