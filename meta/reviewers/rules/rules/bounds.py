"""Files that outgrow what a read shows: a log keeps its newest lines, a map is kept short or cut into blocks."""

from __future__ import annotations

from collections.abc import Sequence

from automem.scaffold import Scaffold
from meta.reviewers.rules.draft import Draft
from meta.reviewers.rules.findings import FileFigures, Measured
from meta.reviewers.rules.proposal import Parameters, Proposal, Tried
from meta.reviewers.rules.thresholds import thresholds

NAME = "bound"


class Bounds:
    """Where a file grows without end and its reads are cut."""

    def propose(self, measured: Measured, scaffold: Scaffold, tried: Tried) -> Proposal | None:
        limits = thresholds()["bounds"]
        limit = scaffold.schema.limits.result_chars
        files = [
            f for f in measured.files.values() if f.planned is not None and f.end_bytes >= limits["outgrown"] * limit
        ]
        for file in sorted(files, key=lambda f: -f.end_bytes):
            parameters = tried.first_new(NAME, _choices(file, limit))
            if parameters is not None:
                return _proposal(file, parameters, measured, limit)
        return None


def _choices(file: FileFigures, limit: int) -> Sequence[Parameters]:
    planned, name = file.planned, file.name
    if planned is None or planned.block:
        return []
    limits = thresholds()["bounds"]
    if planned.kind == "log" and planned.max_lines is None:
        fit = max(4, int(limit / max(1.0, file.line_chars + 1)))
        return [{"file": name, "lines": fit * times} for times in limits["times"]]
    if planned.kind == "map":
        keep = [{"file": name, "chars": int(limit * limits["map_chars"])}]
        blocks = [{"file": name, "block": limits["block"]}] if {"{x}", "{y}"} <= {*_fields(planned.key)} else []
        return [*keep, *blocks]
    return []


def _fields(key: str) -> list[str]:
    return [f"{{{part.partition('}')[0]}}}" for part in key.split("{")[1:]]


def _proposal(file: FileFigures, parameters: Parameters, measured: Measured, limit: int) -> Proposal:
    name = file.name
    if "lines" in parameters:
        change = f"{name} keeps its newest {parameters['lines']} lines"
    elif "chars" in parameters:
        change = f"{name} is kept below {parameters['chars']} characters"
    else:
        change = f"{name} is cut into blocks of {parameters['block']} by {parameters['block']} places"

    def edit(draft: Draft) -> None:
        if "lines" in parameters:
            draft.set_file(name, max_lines=parameters["lines"])
        elif "chars" in parameters:
            draft.enable("DELETE")
            draft.add_part("prune", files={name: parameters["chars"]})
        else:
            stem, dot, end = name.rpartition(".")
            draft.rename_file(name, f"{stem}_{{block}}{dot}{end}" if dot else f"{name}_{{block}}")
            draft.set_file(
                f"{stem}_{{block}}{dot}{end}" if dot else f"{name}_{{block}}", block=parameters["block"], pin=None
            )

    return Proposal(
        NAME,
        parameters,
        change,
        f"{name} ended at {file.end_bytes:.0f} bytes in {file.end_lines:.0f} lines and grew by "
        f"{measured.per_step(file.added_bytes):.0f} bytes a step; a read shows {limit} characters, and "
        f"{measured.per_step(file.truncated):.2f} results a step were cut.",
        thresholds()["bounds"]["expected"],
        edit,
    )
