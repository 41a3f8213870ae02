"""Play that changes nothing, or goes to and fro, gets a notice."""

from __future__ import annotations

from automem.scaffold import Scaffold
from meta.reviewers.rules.draft import Draft
from meta.reviewers.rules.findings import Measured
from meta.reviewers.rules.proposal import Proposal, Tried
from meta.reviewers.rules.thresholds import thresholds

NAME = "notice"


class Stuck:
    """Where many steps are spent without effect."""

    def propose(self, measured: Measured, scaffold: Scaffold, tried: Tried) -> Proposal | None:
        limits, rates = thresholds()["stuck"], measured.rates
        stuck, oscillating = rates["stuck_share"], rates["oscillating_share"]
        if (stuck < limits["stuck"] and oscillating < limits["oscillating"]) or "notice" in scaffold.schema.hooks.shows:
            return None
        parameters = tried.first_new(NAME, limits["choices"])
        if parameters is None:
            return None

        def edit(draft: Draft) -> None:
            draft.add_part("notice", **parameters)
            draft.show_hook("notice")

        return Proposal(
            NAME,
            parameters,
            "a notice when nothing changes or the same views come back",
            f"{stuck:.0%} of the steps changed nothing and {oscillating:.0%} went to and fro, and nothing says so.",
            limits["expected"],
            edit,
        )
