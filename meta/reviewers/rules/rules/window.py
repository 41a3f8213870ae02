"""A short log that is shown in every prompt reaches further back."""

from __future__ import annotations

from automem.scaffold import Scaffold
from meta.reviewers.rules import room
from meta.reviewers.rules.draft import Draft
from meta.reviewers.rules.findings import FileFigures, Measured
from meta.reviewers.rules.proposal import Parameters, Proposal, Tried
from meta.reviewers.rules.thresholds import thresholds

NAME = "window"


class Window:
    """Where play is in vain more often than it should be, and there is room to show more of what was done."""

    def propose(self, measured: Measured, scaffold: Scaffold, tried: Tried) -> Proposal | None:
        limits, rates = thresholds()["window"], measured.rates
        vain = rates["stuck_share"] + rates["oscillating_share"]
        if vain < limits["vain"]:
            return None
        for file in measured.files.values():
            lines = file.planned.max_lines if file.planned is not None and file.planned.pin else None
            if lines is None or not file.lines:
                continue
            wanted = [int(lines * times) for times in limits["times"]]
            choices = [
                {"file": file.name, "lines": more}
                for more in wanted
                if more * (file.line_chars + 1) <= scaffold.schema.limits.result_chars
                and room.cost(measured, (more - lines) * (file.line_chars + 1)) <= limits["cost"]
            ]
            parameters = tried.first_new(NAME, choices)
            if parameters is not None:
                return self._proposal(file, lines, parameters, vain)
        return None

    def _proposal(self, file: FileFigures, lines: int, parameters: Parameters, vain: float) -> Proposal:
        def edit(draft: Draft) -> None:
            draft.set_file(file.name, max_lines=parameters["lines"], describe=describe(parameters["lines"]))

        return Proposal(
            NAME,
            parameters,
            f"{file.name} keeps {parameters['lines']} lines instead of {lines}",
            f"{vain:.0%} of the steps changed nothing or went to and fro, and what was done before the newest {lines} "
            f"lines of {file.name} cannot be seen; a line is {file.line_chars:.0f} characters.",
            thresholds()["window"]["expected"],
            edit,
        )


def describe(lines: int) -> str:
    """What such a log is, for the model."""
    return f"the newest {lines} steps, a line each; older lines drop out"
