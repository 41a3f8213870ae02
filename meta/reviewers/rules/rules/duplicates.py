"""A file that is told the same again and again takes only what has changed."""

from __future__ import annotations

from automem.scaffold import Scaffold
from automem.schema import MemoryFile
from meta.reviewers.rules.draft import Draft, described
from meta.reviewers.rules.findings import Measured
from meta.reviewers.rules.proposal import Proposal, Tried
from meta.reviewers.rules.thresholds import thresholds

NAME = "only-changes"


class Duplicates:
    """Where many writes say nothing new."""

    def propose(self, measured: Measured, scaffold: Scaffold, tried: Tried) -> Proposal | None:
        limits = thresholds()["duplicates"]
        files = [
            file
            for file in measured.files.values()
            if file.planned is not None
            and file.duplicate_share >= limits["share"]
            and file.writes >= limits["writes"]
            and can_take_changes(file.planned)
        ]
        names = [file.name for file in files]
        if not names or (NAME, parameters := {"files": names}) in tried:
            return None
        said = described([f"{f.duplicate_share:.0%} of {f.writes} writes to {f.name}" for f in files])

        def edit(draft: Draft) -> None:
            for name in names:
                draft.set_file(name, changes=True)
            draft.tell("When to write", _TOLD)

        return Proposal(
            NAME,
            parameters,
            f"{described(names)} takes only what has changed",
            f"{said} told it what it had been told before.",
            limits["expected"] * max(file.duplicate_share for file in files),
            edit,
        )


def can_take_changes(file: MemoryFile) -> bool:
    """Whether a file may be told to take only what has changed, and is not yet."""
    return file.kind != "map" and not file.changes


_TOLD = """
Write only what is new. A line that says what the newest line of a file says already is not added, whatever its step.
"""
