"""Actions that the game does not have, written again and again, are understood."""

from __future__ import annotations

from automem.scaffold import Scaffold
from meta.reviewers.rules.draft import Draft
from meta.reviewers.rules.findings import Measured
from meta.reviewers.rules.proposal import Proposal, Tried
from meta.reviewers.rules.thresholds import thresholds

NAME = "repair"


class Invalid:
    """Where the same words are written for an action that is called otherwise."""

    def propose(self, measured: Measured, scaffold: Scaffold, tried: Tried) -> Proposal | None:
        limits = thresholds()["invalid"]
        often = {raw: n for raw, n in measured.invalid.items() if n >= limits["times"] and raw in measured.meant}
        number = measured.counts.invalid
        if measured.per_step(number) < limits["per_step"] or not often:
            return None
        meant = {raw: measured.meant[raw] for raw in sorted(often, key=lambda raw: -often[raw])[: limits["most"]]}
        if (NAME, parameters := {"meant": meant}) in tried:
            return None
        first = next(iter(meant))

        def edit(draft: Draft) -> None:
            draft.add_part("repair", meant=meant)

        return Proposal(
            NAME,
            parameters,
            f"{len(meant)} ways to write an action that the game calls otherwise are understood",
            f"{number} actions in {measured.steps} steps were none of the game's; {first!r} was written {often[first]} "
            f"times, and {meant[first]!r} played once that was told.",
            limits["expected"] * min(1.0, measured.per_step(number) / limits["severe"]),
            edit,
        )
