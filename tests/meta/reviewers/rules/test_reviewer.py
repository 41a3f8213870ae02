"""The reviewer on a real run: what it leaves can be played, failures are remembered, a kill costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from automem import scaffold
from automem.check import Report, check
from automem.check.report import error
from automem.scaffold import Scaffold
from automem.trace import RunTrace
from meta.candidate import problem, sources
from meta.evidence import Attempt, Evidence, Outcome
from meta.gate import Look
from meta.reviewer import Desk, NothingLeft, Revision
from meta.reviewers.rules import Rules
from meta.reviewers.rules.proposal import RECORD, read_record, tried_before
from tests import traces


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunTrace:
    """Two short real episodes of the root version."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOMEM_RUNS", str(tmp_path_factory.mktemp("runs")))
        return RunTrace(traces.a_run("real", steps=30))


@pytest.fixture
def parent() -> Scaffold:
    return scaffold.load("crafter/v0")


class Table:
    """Where attempts are made, one after another."""

    def __init__(self, folder: Path, parent: Scaffold, run: RunTrace) -> None:
        self.folder, self.parent, self.run = folder, parent, run
        self.attempts: list[Attempt] = []
        self.refused: set[str] = set()
        self.checks = 0
        self.reviewer = Rules()

    def revise(self, number: str, before: Attempt | None = None, smoke: bool = False) -> Revision:
        """Let the rules make an attempt."""
        folder = self.folder / number
        candidate = folder / "candidate"
        if not candidate.exists():
            files = before.scaffold() if before else self.parent
            scaffold.write_files(candidate, sources(self.parent, files, f"loop-{number}"))
        evidence = Evidence(number, self.parent, self.run, self.attempts, before)

        async def checked() -> Report:
            self.checks += 1
            report = check(str(candidate), smoke=smoke)
            refuse = any(words in (candidate / "scaffold.toml").read_text() for words in self.refused)
            finding = error("scaffold.toml", 1, "no", "this is not wanted", "leave it out")
            return Report(report.ref, candidate, None, (finding,)) if refuse else report

        return asyncio.run(self.reviewer.revise(evidence, Desk(folder, candidate, checked)))

    def end(self, number: str, revision: Revision, outcome: Outcome, gain: float = 0.0) -> Attempt:
        """Note how an attempt ended."""
        folder = self.folder / number
        looks = (Look(40, gain, None, None, "inconclusive", "seen"),) if outcome in ("inconclusive", "rejected") else ()
        attempt = Attempt(
            number, "rules", self.parent.identity, scaffold.load(str(folder / "candidate")).identity, folder,
            revision.description, revision.analysis, outcome, "so it was", looks=looks,
            played=self.run.run.folder, shown=(7, 8),
        )  # fmt: skip
        self.attempts.append(attempt)
        return attempt

    def candidate(self, number: str) -> Scaffold:
        return scaffold.load(str(self.folder / number / "candidate"))


@pytest.fixture
def table(tmp_path: Path, parent: Scaffold, run: RunTrace) -> Table:
    return Table(tmp_path, parent, run)


def test_a_revision_passes_the_checks_and_says_what_it_is(table: Table, parent: Scaffold) -> None:
    revision = table.revise("1.1.0", smoke=True)
    made = table.candidate("1.1.0")
    assert problem(made, parent, "loop-1.1.0", ()) == ""
    assert made.schema.files != parent.schema.files
    assert "map_notes.txt" in revision.description and "\n" not in revision.description
    assert "## Measured" in revision.analysis and "## Why" in revision.analysis
    assert "bytes a step" in revision.analysis and "| map_notes.txt | 0.97 |" in revision.analysis
    assert revision.spent.turns == 0
    assert "bytes a step" in made.sources["notes.md"].decode()


def test_the_same_evidence_gives_the_same_files_after_a_kill(table: Table) -> None:
    first = table.revise("1.1.0")
    files = dict(table.candidate("1.1.0").sources)
    (table.folder / "1.1.0" / "candidate" / "files" / "half.txt").write_text("written by a process that was killed")
    (table.folder / "1.1.0" / "candidate" / "prompts" / "log.j2").unlink()
    table.reviewer = Rules()
    again = table.revise("1.1.0")
    assert table.candidate("1.1.0").sources == files and again.analysis == first.analysis


def test_what_failed_is_not_made_again_and_in_the_end_nothing_is_left(table: Table, parent: Scaffold) -> None:
    made: list[Any] = []
    for number in range(1, 40):
        try:
            revision = table.revise(f"1.{number}.0")
        except NothingLeft:
            break
        attempt = table.end(f"1.{number}.0", revision, "rejected", -0.05)
        assert problem(attempt.scaffold(), parent, f"loop-1.{number}.0", table.attempts[:-1]) == ""
        made.append((attempt.folder / RECORD).read_text())
    else:
        pytest.fail("proposals never end")
    assert len(made) > 5 and len(set(made)) == len(made)
    # Another parent is another matter.
    assert tried_before(table.attempts, "0" * 64).made == frozenset()


def test_a_continuation_builds_on_what_seemed_to_help(table: Table) -> None:
    first = table.end("1.1.0", table.revise("1.1.0"), "inconclusive", 0.04)
    revision = table.revise("1.1.1", before=first)
    kept = [file.name for file in first.scaffold().schema.files]
    assert [file.name for file in table.candidate("1.1.1").schema.files][: len(kept)] == kept
    assert "attempt 1.1.0" in revision.analysis and "+4.0 points" in revision.analysis
    assert table.candidate("1.1.1").schema.scaffold.parent == table.parent.identity


def test_what_was_added_to_another_attempt_may_still_be_made_alone(table: Table) -> None:
    first = table.end("1.1.0", table.revise("1.1.0"), "inconclusive", 0.04)
    added = table.end("1.1.1", table.revise("1.1.1", before=first), "rejected", -0.01)
    chain = read_record(added.folder)
    assert chain[:-1] == read_record(first.folder)
    parent = table.parent.identity
    assert chain[-1] in tried_before(table.attempts, parent, first).made
    assert tried_before(table.attempts, parent).made == {chain[0]}


def test_a_continuation_of_what_did_harm_begins_anew(table: Table, parent: Scaffold) -> None:
    first = table.end("1.1.0", table.revise("1.1.0"), "rejected", -0.04)
    table.revise("1.1.1", before=first)
    assert table.candidate("1.1.1").sources != first.scaffold().sources
    assert "attempt 1.1.0" not in (table.folder / "1.1.1" / "candidate" / "notes.md").read_text()


def test_a_proposal_that_the_checker_refuses_is_dropped_and_told(table: Table) -> None:
    table.refused = {"places.txt"}
    revision = table.revise("1.1.0")
    assert "places.txt" not in [file.name for file in table.candidate("1.1.0").schema.files]
    assert "## Proposed first, and dropped" in revision.analysis and "this is not wanted" in revision.analysis
    assert table.checks > 1


def test_an_attempt_that_broke_off_from_outside_may_be_made_once_more(table: Table) -> None:
    first = table.revise("1.1.0")
    table.end("1.1.0", first, "failed")
    assert table.revise("1.2.0").description == first.description
    table.end("1.2.0", first, "failed")
    assert table.revise("1.3.0").description != first.description


def test_attempts_of_other_reviewers_are_no_obstacle(table: Table, tmp_path: Path) -> None:
    first = table.revise("1.1.0")
    attempt = table.end("1.1.0", first, "rejected")
    (attempt.folder / RECORD).write_text("not JSON")
    assert table.revise("1.2.0").description == first.description


def _ready(reviewers: Sequence[Rules]) -> None:
    async def all_of_them() -> None:
        for reviewer in reviewers:
            await reviewer.ready()
            await reviewer.close()
            await reviewer.close()

    asyncio.run(all_of_them())


def test_it_needs_nothing_to_be_ready() -> None:
    _ready([Rules()])
