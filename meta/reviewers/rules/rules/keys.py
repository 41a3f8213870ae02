"""A log whose lines begin with the same keys again and again becomes a map, one line a key."""

from __future__ import annotations

from automem.scaffold import Scaffold
from meta.reviewers.rules.draft import Draft
from meta.reviewers.rules.findings import FileFigures, Measured
from meta.reviewers.rules.proposal import Proposal, Tried
from meta.reviewers.rules.thresholds import thresholds

NAME = "keys"


class RepeatedKeys:
    """Where the model writes what it likes, and most lines are news of something that an earlier line named."""

    def propose(self, measured: Measured, scaffold: Scaffold, tried: Tried) -> Proposal | None:
        files = [file for file in measured.files.values() if _repeats_keys(file)]
        for file in sorted(files, key=lambda file: -file.lines):
            if (NAME, {"file": file.name}) not in tried:
                return _proposal(file)
        return None


def _repeats_keys(file: FileFigures) -> bool:
    limits = thresholds()["keys"]
    return (
        file.planned is not None
        and file.planned.kind == "log"
        and file.follows < limits["follows"]
        and file.lines >= limits["lines"]
        and file.with_key >= limits["with_key"]
        and file.same_key >= limits["same_key"]
    )


def _proposal(file: FileFigures) -> Proposal:
    key, what = ("{x},{y}", "place") if file.by_place >= 0.5 else ("name", "name")

    def edit(draft: Draft) -> None:
        none = dict.fromkeys(("entry", "max_lines", "changes"))
        draft.set_file(file.name, kind="map", key=key, **none)
        draft.enable("UPSERT", "DELETE")
        draft.tell("One line a key", _TOLD.format(file=file.name, what=what))

    return Proposal(
        NAME,
        {"file": file.name},
        f"{file.name} becomes a map, one line a {what}",
        f"{file.with_key:.0%} of the {file.lines} lines of {file.name} tell of a {what}, {file.same_key:.0%} of all of "
        "one that an earlier line told of: the newest is what counts.",
        thresholds()["keys"]["expected"],
        edit,
    )


_TOLD = """
{file} is a map: UPSERT sets the line of a key, replacing what stood there; the key is the {what}. DELETE what is over.
"""
