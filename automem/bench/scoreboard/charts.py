"""The scoreboard's charts: how far each agent came in a game, and below, apart, what others have published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from automem.report.charts import LINE, RUNS, data, drawn, run_colour, run_shape

ROW = 24
"""Pixels down for each agent or source."""

_ENDS = (1, 2, 5, 10, 15, 20, 30, 40, 50, 60, 80)


@dataclass(frozen=True, slots=True)
class Ours:
    """An agent of the bench.

    Attributes:
        name: what stands beside its mark.
        number: of its colour and shape.
        mean: progression in percent.
        low, high: ends of its 95 % interval; None without one.
        label: what the mark tells.
    """

    name: str
    number: int
    mean: float
    low: float | None
    high: float | None
    label: str


@dataclass(frozen=True, slots=True)
class Published:
    """A published figure: the name of its source, progression in percent, and what its mark tells."""

    source: str
    mean: float
    label: str


def progression(agents: Sequence[Ours], published: Sequence[Published], title: str) -> str:
    """A line for each agent with its mean and interval; a line for each source with a mark for each of its figures.

    Args:
        agents: from the top down, one at least.
        published: figures of others; may be none.
        title: what the chart shows.
    """
    # Space before a source's name keeps it apart from an agent that is called the same.
    sources = list(dict.fromkeys(f"\u2009{one.source}" for one in published))
    apart = [" "] if sources else []
    order = [*dict.fromkeys(agent.name for agent in agents), *apart, *sources]
    place = alt.Y(
        "name:N",
        title=None,
        sort=order,
        scale=alt.Scale(domain=order),
        axis=alt.Axis(labelLimit=190, labelPadding=9, domain=False, ticks=False),
    )
    ends = [v for a in agents for v in (a.mean, a.high) if v is not None] + [one.mean for one in published]
    scale = alt.Scale(domain=[0, _end(max(ends))], nice=False)
    across = alt.X("mean:Q", scale=scale, title="progression in %")
    layers = []
    if sources:
        layers.append(
            alt.Chart(
                data([{"name": f"\u2009{one.source}", "mean": one.mean, "label": one.label} for one in published])
            )
            .mark_tick(thickness=2, size=13, color=LINE, opacity=1)
            .encode(across, place, alt.Description("label:N"))
        )
    spans = [
        {"name": a.name, "low": a.low, "high": a.high, "run": a.number % RUNS, "label": a.label}
        for a in agents
        if a.low is not None
    ]
    means = [{"name": a.name, "mean": a.mean, "run": a.number % RUNS, "label": a.label} for a in agents]
    layers += [
        alt.Chart(data(spans))
        .mark_rule(strokeWidth=2.5)
        .encode(alt.X("low:Q", scale=scale), alt.X2("high:Q"), place, run_colour(), alt.Description("label:N")),
        alt.Chart(data(means))
        .mark_point(filled=True, size=75, opacity=1)
        .encode(across, place, run_colour(), run_shape(), alt.Description("label:N")),
    ]
    return drawn(alt.layer(*layers), title, ROW * len(order))


def _end(most: float) -> float:
    """Where an axis ends that holds a percentage: a round number a little above, at most 100."""
    return next((float(end) for end in _ENDS if most <= end), 100.0)
