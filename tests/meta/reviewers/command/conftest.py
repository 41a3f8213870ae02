"""A run of real episodes to review, a candidate to edit, and a place that runs scripts as the agent."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from automem import check as checker
from automem import scaffold
from automem.check import Report
from automem.runs import Run
from automem.scaffold import Scaffold
from automem.trace import RunTrace
from meta.evidence import Attempt, Evidence, only
from meta.reviewer import Budget, Desk, Revision
from meta.reviewers.command import CommandOptions, CommandReviewer
from meta.reviewers.command.contained import CannotStart, Containment
from tests.traces import a_run

ROOT = Path(__file__).resolve().parents[4]

VERSION = "r1"
SHOWN, HIDDEN = 7, 8
"""Seeds of the run: of the second one nothing may be seen."""

EDIT = """
import os, pathlib, sys
toml = pathlib.Path("candidate/scaffold.toml")
def edit(old='search_results = 100', new='search_results = 50'):
    text = toml.read_text()
    assert old in text, text
    toml.write_text(text.replace(old, new))
def say(text="Show fewer lines of a search\\n\\nThey were not read."):
    pathlib.Path("REVISION.md").write_text(text)
"""
"""What scripts may use: an edit that the checker accepts, and the description of it."""


@pytest.fixture(scope="session")
def _bubblewrap() -> None:
    try:
        asyncio.run(CommandReviewer(CommandOptions(command="true"))._try("bubblewrap"))
    except CannotStart as cannot:
        pytest.skip(f"bubblewrap cannot run a command here: {cannot}")


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two short episodes of `scripted`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOMEM_RUNS", str(tmp_path_factory.mktemp("runs")))
        return a_run("gate", f"{SHOWN}..{HIDDEN}")


def child_of(parent: Scaffold, folder: Path) -> Path:
    """A copy with another name and its parent's identity."""
    parent.save(folder)
    toml = folder / "scaffold.toml"
    text = toml.read_text().replace(
        'version = "v0"\nparent = ""', f'version = "{VERSION}"\nparent = "{parent.identity}"'
    )
    assert VERSION in text
    toml.write_text(text)
    return folder


def running(text: str) -> list[int]:
    """The processes of this machine whose command line holds a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if text.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
    return found


@dataclass
class Bench:
    """A review to be made by a script.

    Attributes:
        home: where the script lies.
        folder: the attempt's.
        said: what whoever watches was told.
        reports: what the checker said, in order.
        smoke: whether the checker plays an episode.
        containment: None to have it found out.
    """

    home: Path
    folder: Path
    candidate: Path
    evidence: Evidence
    said: list[str] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    smoke: bool = False
    containment: Containment | None = "bubblewrap"

    @property
    def script(self) -> Path:
        """The agent's program. Its path is in the command lines of all its processes, and in no others."""
        return self.home / "agent.py"

    def desk(self, minutes: float | None = 5.0) -> Desk:
        """Where the review is made."""

        async def check() -> Report:
            report = await asyncio.to_thread(checker.check, str(self.candidate), smoke=self.smoke)
            self.reports.append(report)
            return report

        return Desk(self.folder, self.candidate, check, Budget(minutes=minutes), self.said.append)

    def reviewer(self, source: str, **options: Any) -> CommandReviewer:
        """The reviewer with a script as its agent."""
        self.script.write_text(EDIT + textwrap.dedent(source))
        command = shlex.join(["python", str(self.script)])
        reviewer = CommandReviewer(CommandOptions(command=command, **options))
        reviewer._containment = self.containment
        return reviewer

    def review(self, source: str, minutes: float | None = 5.0, **options: Any) -> Revision:
        """Let a script review."""
        return asyncio.run(self.reviewer(source, **options).revise(self.evidence, self.desk(minutes)))

    @property
    def log(self) -> str:
        """What the agent printed."""
        return (self.folder / "command.log").read_text()


@pytest.fixture
def bench(played: Run, tmp_path: Path, _bubblewrap: None) -> Bench:
    return make_bench(played.folder, tmp_path)


def make_bench(run: Path, folder: Path) -> Bench:
    """A bench in a folder, made where it is not there yet."""
    parent = scaffold.load(str(ROOT / "scaffolds" / "crafter" / "v0"))
    attempts, home = folder / "loop" / "attempts", folder / "agent"
    if not home.exists():
        home.mkdir()
        child_of(parent, attempts / "1.1.0" / "candidate")
        child_of(parent, attempts / "2.1.0" / "candidate")
    attempt = Attempt(
        "1.1.0", "rules", parent.identity, "ab" * 32, attempts / "1.1.0", "Pin the goals", "They were never read.",
        "rejected", "it played worse on 12 seeds", played=run, shown=(SHOWN,),
    )  # fmt: skip
    evidence = Evidence("2.1.0", parent, only(RunTrace(run), (SHOWN,)), [attempt])
    return Bench(home, attempts / "2.1.0", attempts / "2.1.0" / "candidate", evidence)
