"""Limits that are hit again and again move."""

from __future__ import annotations

from collections.abc import Sequence

from automem.scaffold import Scaffold
from meta.reviewers.rules.draft import Draft
from meta.reviewers.rules.findings import Measured
from meta.reviewers.rules.proposal import Parameters, Proposal, Tried
from meta.reviewers.rules.thresholds import thresholds

NAME = "limit"


class Limits:
    """Where results are cut, or a phase ends because its replies are used up."""

    def propose(self, measured: Measured, scaffold: Scaffold, tried: Tried) -> Proposal | None:
        for choices, reason in _called_for(measured, scaffold):
            parameters = tried.first_new(NAME, choices)
            if parameters is not None:
                return _proposal(parameters, reason)
        return None


def _called_for(measured: Measured, scaffold: Scaffold) -> Sequence[tuple[Sequence[Parameters], str]]:
    limits, now = thresholds()["limits"], scaffold.schema.limits
    found: list[tuple[Sequence[Parameters], str]] = []
    cut = measured.rates["truncated_reads_per_step"]
    if cut >= limits["cut"]:
        sizes = [int(now.result_chars * times) for times in limits["times"]]
        choices = [{"limit": "result_chars", "value": size} for size in sizes if size <= limits["result_chars"]]
        found.append((choices, f"{cut:.2f} results a step were cut at {now.result_chars} characters."))
    for phase, full, turns in (("log", measured.full_log, now.log_turns), ("plan", measured.full_plan, now.plan_turns)):
        if full >= limits["full"]:
            value = min(20, turns + limits["more_turns"])
            reason = f"{full:.0%} of the {phase.upper()} phases used up their {turns} replies."
            found.append(([{"limit": f"{phase}_turns", "value": value}], reason))
    return found


def _proposal(parameters: Parameters, reason: str) -> Proposal:
    def edit(draft: Draft) -> None:
        draft.limit(parameters["limit"], parameters["value"])

    change = f"{parameters['limit']} becomes {parameters['value']}"
    return Proposal(NAME, parameters, change, reason, thresholds()["limits"]["expected"], edit)
