"""Progression by version: means, paired differences, and the two versions on held-out seeds."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from automem.report import charts as reports
from automem.report import figures
from automem.statistics import Estimate
from meta.page import charts
from meta.page.history import History, Version
from meta.page.played import Played


def curve(history: History) -> dict[str, Any]:
    """Rows of the table and the two charts.

    The means are taken over the gate seeds that all versions have played, so that they compare; the differences over
    all that a version and its parent have played.
    """
    played = [version for version in history.versions if version.gate is not None]
    shared = frozenset.intersection(*(v.gate.seeds for v in played if v.gate)) if played else frozenset[int]()
    means = [_mean(version, shared) for version in played] if shared else []
    pair = _held_out(history)
    differences = [row for version in played if (row := _difference(history, version)) is not None]
    differences += _whole(history)
    drawn = [_drawn_mean(row, "gate") for row in means] + [_drawn_mean(row, "held-out") for row in pair]
    return {
        "shared": len(shared),
        "means": means,
        "held_out": pair,
        "differences": differences,
        "chart": Markup(charts.versions(drawn)) if len(drawn) > 1 else "",
        "paired": Markup(reports.differences([_drawn_difference(row) for row in differences], _TITLE))
        if differences
        else "",
    }


_TITLE = "Paired differences in progression with 95 % intervals"


def _mean(version: Version, seeds: frozenset[int]) -> dict[str, Any]:
    assert version.gate is not None
    return {
        "version": version.name,
        "ref": version.ref,
        "seeds": len(version.gate.seeds),
        "found": version.gate.progression(seeds),
        "accepted": version.attempt is not None,
    }


def _held_out(history: History) -> list[dict[str, Any]]:
    """The first version and the best on held-out seeds; nothing before both have played them."""
    root, best = history.versions[0], history.best
    if best is None or best is root:
        return []
    both = [(version, history.held_out.get(version.identity)) for version in (root, best)]
    seeds = frozenset.intersection(*(frozenset[int]() if played is None else played.seeds for _, played in both))
    if not seeds:
        return []
    return [
        {
            "version": version.name, "ref": version.ref, "seeds": len(seeds), "found": played.progression(seeds),
            "accepted": version.attempt is not None,
        }
        for version, played in both
        if played is not None
    ]  # fmt: skip


def _difference(history: History, version: Version) -> dict[str, Any] | None:
    """An accepted version against its parent, over the gate seeds that both have played."""
    if version.attempt is None or version.gate is None:
        return None
    parent = history.version(version.attempt.parent)
    before = history.gate.get(version.attempt.parent)
    if parent is None or before is None:
        return None
    row = _row(f"{version.name} − {parent.name}", version.gate, before, "gate")
    look = version.attempt.looks[-1] if version.attempt.looks else None
    if row is not None and look is not None and look.lower is not None and look.upper is not None:
        row["bounds"] = (look.lower, look.upper)
    return row


def _whole(history: History) -> list[dict[str, Any]]:
    """The best version against the first one, on gate seeds and on held-out ones."""
    root, best = history.versions[0], history.best
    if best is None or best is root:
        return []
    name = f"{best.name} − {root.name}"
    found = []
    for series, of in (("gate", history.gate), ("held-out", history.held_out)):
        mine, before = of.get(best.identity), of.get(root.identity)
        if mine is not None and before is not None:
            found.append(_row(name, mine, before, series))
    return [row | {"whole": True} for row in found if row is not None]


def _row(name: str, mine: Played, before: Played, series: str) -> dict[str, Any] | None:
    try:
        found, seeds = mine.minus(before)
    except ValueError:
        return None
    return {"name": name, "series": series, "seeds": seeds, "found": found, "bounds": None, "whole": False}


def _drawn_mean(row: dict[str, Any], series: str) -> dict[str, Any]:
    found: Estimate = row["found"]
    span = found.interval
    told = f"{row['version']}, {series} seeds: {figures.percent(found.mean)} %"
    told += f" ({figures.interval(span)})" if span else ""
    low, high = (100 * span[0], 100 * span[1]) if span else (None, None)
    mean = 100 * found.mean
    return {"version": row["version"], "series": series, "mean": mean, "low": low, "high": high, "label": told}


def _drawn_difference(row: dict[str, Any]) -> dict[str, Any]:
    found: Estimate = row["found"]
    span = found.interval
    low, high = (100 * span[0], 100 * span[1]) if span else (None, None)
    name = f"{row['name']}, {row['series']}" if row["whole"] else row["name"]
    told = f"{name}: {figures.signed(found.mean)} points over {row['seeds']} seeds"
    run = charts.SERIES.index(row["series"])
    return {"task": name, "mean": 100 * found.mean, "low": low, "high": high, "label": told, "run": run}
