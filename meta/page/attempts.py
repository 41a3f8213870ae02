"""What the page says of an attempt: how it ended and why, what it changed, and what that did to behaviour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from automem import compare as comparing
from automem import lineage
from automem.check.folder import contents
from automem.compare import Behaviour
from automem.errors import UserError
from automem.lineage import Lineage
from automem.metric_names import figure, metric, unit
from automem.report import figures
from automem.scaffold import Scaffold, ScaffoldError
from automem.scaffold_diff import FileDiff, compare_scaffolds
from automem.scaffold_diff import page as diffs
from automem.scaffold_diff.files import changed_files
from automem.scaffold_diff.lines import TextDiff
from meta.evidence import Attempt, Outcome
from meta.page import charts, markdown
from meta.page.history import History, Version

OUTCOMES: Mapping[Outcome, str] = {
    "accepted": "accepted",
    "rejected": "rejected",
    "inconclusive": "inconclusive",
    "invalid": "invalid",
    "failed": "failed",
    "exhausted": "nothing left",
}
"""How outcomes are called on the page."""

LONGEST_LINE = 1_000
"""Characters of a line of a difference that are shown."""

LARGEST_DIFFERENCE = 200_000
"""Characters of an attempt's difference that are shown; files beyond are named only."""

_ROW = 120
"""Characters of markup around a line, about."""


def anchor(number: str) -> str:
    """The id of an attempt's section."""
    return f"attempt-{number}"


def gain(attempt: Attempt) -> str:
    """What the gate saw last, in points; empty when the attempt was not played."""
    if not attempt.looks:
        return ""
    look = attempt.looks[-1]
    bounds = "" if look.lower is None or look.upper is None else f" [{_points(look.lower)}, {_points(look.upper)}]"
    return f"{_points(look.mean)}{bounds}"


def shown(history: History, attempt: Attempt) -> dict[str, Any]:
    """All that the page shows of an attempt that is over."""
    parent = history.version(attempt.parent)
    return {
        "number": attempt.number,
        "anchor": anchor(attempt.number),
        "continues": _continued(attempt.number),
        "outcome": attempt.outcome,
        "word": OUTCOMES[attempt.outcome],
        "description": attempt.description,
        "parent": parent.name if parent else attempt.parent[:12],
        "identity": attempt.identity,
        "why": attempt.why,
        "reviewer": attempt.reviewer,
        "alpha": attempt.alpha,
        "gain": gain(attempt),
        "seeds": attempt.looks[-1].seeds if attempt.looks else 0,
        "analysis": markdown.html(attempt.analysis) if attempt.analysis.strip() else "",
        "findings": attempt.findings,
        "looks": attempt.looks,
        "trajectory": _trajectory(history, attempt),
        "open": attempt.outcome == "accepted",
        **_difference(history, attempt, parent),
        **_behaviour(history, attempt),
    }  # fmt: skip


def _continued(number: str) -> str:
    """The attempt that this one goes on from; empty for a fresh one."""
    fresh, _, continuation = number.rpartition(".")
    return f"{fresh}.{int(continuation) - 1}" if continuation.isdecimal() and int(continuation) else ""


def _points(value: float) -> str:
    return figures.signed(value)


def _trajectory(history: History, attempt: Attempt) -> Markup | str:
    if not attempt.looks:
        return ""
    smallest = history.loop.config.gate.smallest_gain
    label = f"Attempt {attempt.number}: mean paired difference to its parent and its bounds, by seeds played"
    return Markup(charts.trajectory(attempt.looks, smallest, label))


def _difference(history: History, attempt: Attempt, parent: Version | None) -> dict[str, Any]:
    """The difference to the parent, or why there is none."""
    nothing: dict[str, Any] = {"difference": "", "left_out": (), "no_difference": ""}
    if parent is None:
        return nothing | {"no_difference": "its parent's files cannot be read any more"}
    if not attempt.candidate.is_dir() or (attempt.outcome in ("failed", "exhausted") and not attempt.identity):
        return nothing | {"no_difference": "no revision came of it"}
    old = _without_notes(parent.scaffold)
    try:
        new = _without_notes(attempt.scaffold())
        found = compare_scaffolds(old, new, _lineage(history, new))
        sections, files = found.words, found.files
    except (ScaffoldError, OSError):
        # It does not load; its files, as far as they are plain and small, can be compared all the same.
        sources = {path: data for path, data in contents(attempt.candidate).sources.items() if path != "notes.md"}
        sections, files = (), tuple(changed_files(old, replace(old, sources=sources)))
    if not files:
        return nothing | {"no_difference": "its files are those of its parent"}
    within, left_out = _cut(files)
    return nothing | {"difference": diffs.fragment(sections, within, LONGEST_LINE), "left_out": left_out}


def _without_notes(scaffold: Scaffold) -> Scaffold:
    """Notes repeat the analysis, which the page shows anyway."""
    return replace(scaffold, sources={path: data for path, data in scaffold.sources.items() if path != "notes.md"})


def _lineage(history: History, new: Scaffold) -> Lineage:
    loaded = [*(version.scaffold for version in history.versions), new]
    return Lineage(
        {
            one.identity: lineage.Version(
                one.ref, one.identity, one.schema.scaffold.parent, one.folder, False, loaded=one
            )
            for one in loaded
        }
    )


def _cut(files: Sequence[FileDiff]) -> tuple[list[FileDiff], list[str]]:
    """The files of which there is room for all lines, and the names of the others."""
    left = LARGEST_DIFFERENCE
    within, out = [], []
    for file in files:
        size = sum(_size(file.diff, side) for side in ("old", "new"))
        if size <= left:
            left -= size
            within.append(file)
        else:
            out.append(f"{file.title} (+{file.diff.added} −{file.diff.removed} lines)")
    return within, out


def _size(diff: TextDiff, side: str) -> int:
    lines = [getattr(row, side) for hunk in diff.hunks for row in hunk.rows if not (row.same and side == "old")]
    return sum(_ROW + min(len(line.text), LONGEST_LINE) for line in lines if line is not None)


def _behaviour(history: History, attempt: Attempt) -> dict[str, Any]:
    """Parent against candidate over the gate seeds that both played."""
    mine, before = history.gate.get(attempt.identity), history.gate.get(attempt.parent)
    if attempt.played is None or mine is None or before is None:
        return {"behaviour": (), "operations": (), "pairs": 0, "progression": None}
    try:
        found = comparing.compare(before.runs[0], mine.runs[0])
    except UserError:
        return {"behaviour": (), "operations": (), "pairs": 0, "progression": None}
    return {
        "behaviour": rows(found.behaviour),
        "operations": [
            (one.name, figures.percent(one.a), figures.percent(one.b), change(one.change)) for one in found.operations
        ],
        "pairs": found.overall.pairs,
        "progression": found.overall,
    }


def rows(behaviour: Sequence[Behaviour]) -> list[dict[str, str]]:
    """Behaviour metrics for a table: what each is called and counts, both values and the relative change."""
    return [
        {
            "name": metric(one.name).label,
            "unit": unit(one.name),
            "meaning": metric(one.name).meaning,
            "a": value(one.name, one.a),
            "b": value(one.name, one.b),
            "change": change(one.change),
        }
        for one in behaviour
    ]


def value(name: str, measured: float | None) -> str:
    """A metric's value; a dash where there is none."""
    return "–" if measured is None else figure(name, measured)


def change(share: float | None) -> str:
    """A relative change, in percent with its sign; a dash where there is none."""
    if share is None:
        return "–"
    percent = round(100 * share)
    return f"{percent:+d} %".replace("-", "−") if percent else "0 %"
