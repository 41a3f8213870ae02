"""Small files that are read at nearly every step are shown in every prompt instead."""

from __future__ import annotations

from automem.scaffold import Scaffold
from meta.reviewers.rules.draft import Draft, described
from meta.reviewers.rules.findings import FileFigures, Measured
from meta.reviewers.rules.proposal import Proposal, Tried
from meta.reviewers.rules.thresholds import thresholds

NAME = "pin"


class Pins:
    """Where a reply is spent on reading what would fit into the prompt."""

    def propose(self, measured: Measured, scaffold: Scaffold, tried: Tried) -> Proposal | None:
        files = worth_pinning(measured, scaffold)
        names = [file.name for file in files]
        parameters = tried.first_new(NAME, [{"files": names}, *({"files": [name]} for name in names)] if names else [])
        if parameters is None:
            return None
        chosen = [file for file in files if file.name in parameters["files"]]
        told = [f"{f.name} is {f.end_bytes:.0f} bytes and was asked at {f.read_steps:.0%} of the steps" for f in chosen]

        def edit(draft: Draft) -> None:
            pin(draft, parameters["files"])

        return Proposal(
            NAME,
            parameters,
            f"{described(parameters['files'])} shown in every prompt",
            f"{described(told)}: what fits into the prompt need not cost a reply.",
            thresholds()["pins"]["expected"] * max(f.read_steps for f in chosen),
            edit,
        )


def worth_pinning(measured: Measured, scaffold: Scaffold) -> list[FileFigures]:
    """Planned files that are small, stay small, and are read in most steps of the episodes that need them."""
    limits = thresholds()["pins"]
    most = limits["size"] * scaffold.schema.limits.result_chars
    return [
        file
        for file in measured.files.values()
        if file.planned is not None
        and not (file.planned.pin or file.planned.block)
        and (file.planned.kind != "log" or file.planned.max_lines is not None)
        and file.read_steps >= limits["read_steps"]
        and 0 < file.end_bytes <= most
    ]


def pin(draft: Draft, names: list[str]) -> None:
    """Show these files in the prompts of LOG and PLAN."""
    for name in names:
        draft.set_file(name, pin=True)
    draft.show_pinned()
