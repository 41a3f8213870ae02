"""Charts of a loop that reports of runs do not have: progression by version, and how the gate came to its decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from automem.report.charts import LINE, RUN, data, drawn
from meta.gate import Look

Row = Mapping[str, Any]

_GATE, _HELD_OUT = RUN[:2]

SERIES = ("gate", "held-out")
"""What `versions` shows, in the order of their colours and marks."""

_WIDEST = 30
"""Points beyond which the first, wide bounds of a gate are cut off, unless the means themselves go so far."""


def versions(rows: Sequence[Row]) -> str:
    """Mean progression with its interval by version, in order.

    Args:
        rows: ``version``, ``series`` (one of `SERIES`), ``mean``, ``low``, ``high`` (both None without an interval),
            all in percent, and ``label``.
    """
    order = list(dict.fromkeys(row["version"] for row in rows))
    at = alt.X("version:N", title="version", sort=order, axis=alt.Axis(labelAngle=0, labelLimit=90))
    offset = alt.XOffset("series:N", scale=alt.Scale(domain=list(SERIES), paddingOuter=1, paddingInner=0.6))
    colour = alt.Color("series:N", scale=alt.Scale(domain=list(SERIES), range=[_GATE, _HELD_OUT]), legend=None)
    shape = alt.Shape("series:N", scale=alt.Scale(domain=list(SERIES), range=["circle", "square"]), legend=None)
    up = alt.Scale(zero=False, nice=True)
    lines = (
        alt.Chart(data(rows))
        .mark_line(strokeWidth=1.4, opacity=0.6)
        .encode(
            at, alt.Y("mean:Q", title="progression in %", scale=up), offset, colour,
            alt.StrokeDash("series:N", scale=alt.Scale(domain=list(SERIES), range=[[1, 0], [5, 3]]), legend=None),
        )
    )  # fmt: skip
    spans = (
        alt.Chart(data([row for row in rows if row["low"] is not None]))
        .mark_rule(strokeWidth=2.5)
        .encode(at, alt.Y("low:Q", scale=up), alt.Y2("high:Q"), offset, colour, alt.Description("label:N"))
    )
    marks = (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=75, opacity=1)
        .encode(at, alt.Y("mean:Q", scale=up), offset, colour, shape, alt.Description("label:N"))
    )
    return drawn(lines + spans + marks, "Mean progression by version with 95 % intervals", 210)


def trajectory(looks: Sequence[Look], smallest: float, label: str) -> str:
    """How the mean difference and its bounds went as seeds were played.

    Args:
        looks: at least one.
        smallest: the smallest gain worth having, a share.
        label: what the chart shows.
    """
    rows = [_row(look) for look in looks]
    reach = max(_WIDEST, 1.5 * max(abs(row["mean"]) for row in rows), 150 * smallest)
    ends = [0.0, 100 * smallest, *(v for row in rows for v in (row["low"], row["high"], row["mean"]) if v is not None)]
    domain = [max(min(ends), -reach), min(max(ends), reach)]
    up = alt.Scale(domain=domain, nice=True, zero=False)
    rows = [{**row, **{end: _within(row[end], domain) for end in ("low", "high")}} for row in rows]
    across = alt.X("seeds:Q", title="seeds played", scale=alt.Scale(domainMin=0), axis=alt.Axis(tickMinStep=1))
    bounded = data([row for row in rows if row["low"] is not None])
    band = (
        alt.Chart(bounded)
        .mark_area(opacity=0.18, color=_GATE)
        .encode(across, alt.Y("low:Q", scale=up, title="difference, points"), alt.Y2("high:Q"))
    )
    spans = (
        alt.Chart(bounded)
        .mark_rule(strokeWidth=1.6, color=_GATE)
        .encode(across, alt.Y("low:Q", scale=up), alt.Y2("high:Q"), alt.Description("label:N"))
    )
    line = (
        alt.Chart(data(rows))
        .mark_line(strokeWidth=1.8, color=_GATE)
        .encode(across, alt.Y("mean:Q", scale=up, title="difference, points"))
    )
    marks = (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=45, opacity=1, color=_GATE)
        .encode(across, alt.Y("mean:Q", scale=up), alt.Description("label:N"))
    )
    zero = alt.Chart(data([{"at": 0}])).mark_rule(color=LINE).encode(alt.Y("at:Q", scale=up))
    worth = (
        alt.Chart(data([{"at": 100 * smallest}]))
        .mark_rule(color=_HELD_OUT, strokeDash=[5, 3])
        .encode(alt.Y("at:Q", scale=up))
    )
    return drawn(band + zero + worth + spans + line + marks, label, 150, 400)


def _row(look: Look) -> dict[str, Any]:
    low, high = (None if bound is None else 100 * bound for bound in (look.lower, look.upper))
    told = f"{look.seeds} seeds: {100 * look.mean:+.1f} points"
    if low is not None and high is not None:
        told += f", bounds {low:+.1f} to {high:+.1f}"
    return {"seeds": look.seeds, "mean": 100 * look.mean, "low": low, "high": high, "label": f"{told}; {look.decision}"}


def _within(value: float | None, domain: Sequence[float]) -> float | None:
    return None if value is None else min(max(value, domain[0]), domain[1])
