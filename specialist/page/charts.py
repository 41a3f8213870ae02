"""Loss curves: of one training run, and of all of them by what they were trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from automem.report.charts import RUN, RUNS, data, drawn
from specialist.train.curve import Row

MOST = 240
"""Points of a line; of more, as many are drawn, evenly spread, and the last."""

WINDOWS = 25
"""Parts of a training run over which its loss is smoothed."""

TRAINED, HELD_OUT = 0, 1
"""Numbers of the colours and marks of both losses."""


def window(steps: int) -> int:
    """Steps whose mean the smoothed loss of a run of so many steps is."""
    return max(1, round(steps / WINDOWS))


def losses(rows: Sequence[Row], label: str, logarithmic: bool) -> str:
    """Losses of a training run by step: of each step, smoothed, and of held-out examples.

    Args:
        rows: of its curve, with one loss at least.
        label: what the chart shows.
        logarithmic: how the losses are laid out; what is not above 0 is then left out.
    """
    trained = [(row.step, row.loss) for row in rows if row.loss is not None]
    held_out = [(row.step, row.held_out) for row in rows if row.held_out is not None]
    steps = [row.step for row in rows]
    whole = alt.Axis(format="d", tickMinStep=1)
    across = alt.X("step:Q", title="step", scale=alt.Scale(domain=[0, max(1, *steps)], nice=False), axis=whole)
    up = _up(logarithmic)
    raw = (
        alt.Chart(data(_points(trained, logarithmic)))
        .mark_line(aria=False, strokeWidth=1, opacity=0.35, color=RUN[TRAINED])
        .encode(across, up)
    )
    smooth = (
        alt.Chart(data(_points(smoothed(trained, window(len(trained))), logarithmic, "training loss")))
        .mark_line(aria=False, strokeWidth=2, color=RUN[TRAINED])
        .encode(across, up)
    )
    points = data(_points(held_out, logarithmic, "held-out loss"))
    line = (
        alt.Chart(points)
        .mark_line(aria=False, strokeWidth=1.4, color=RUN[HELD_OUT], strokeDash=[5, 3])
        .encode(across, up)
    )
    marks = (
        alt.Chart(points)
        .mark_point(filled=True, size=60, opacity=1, color=RUN[HELD_OUT], shape="square")
        .encode(across, up, alt.Description("label:N"))
    )
    return drawn(raw + smooth + line + marks, label, 190)


def compared(curves: Sequence[tuple[str, Sequence[Row]]], label: str, logarithmic: bool) -> str:
    """Held-out losses of several training runs by tokens trained on: recipes differ in what a step is.

    Args:
        curves: name and rows of each, in the order of their colours.
        label: what the chart shows.
        logarithmic: as for `losses`.
    """
    rows = [
        {
            "tokens": row.tokens, "loss": row.held_out, "run": number % RUNS, "line": str(number),
            "label": f"{name}: {row.held_out:.3g} nats after {row.tokens:,} tokens",
        }
        for number, (name, of_run) in enumerate(curves)
        for row in of_run
        if row.held_out is not None and (row.held_out > 0 or not logarithmic)
    ]  # fmt: skip
    colour = alt.Color("run:O", scale=alt.Scale(domain=list(range(RUNS)), range=list(RUN)), legend=None)
    across = alt.X("tokens:Q", title="tokens trained on", axis=alt.Axis(format="~s", tickCount=6))
    lines = (
        alt.Chart(data(rows))
        .mark_line(aria=False, strokeWidth=1.6)
        .encode(across, _up(logarithmic), colour, alt.Detail("line:N"))
    )
    marks = (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=45, opacity=1)
        .encode(across, _up(logarithmic), colour, alt.Description("label:N"))
    )
    return drawn(lines + marks, label, 190)


def smoothed(points: Sequence[tuple[int, float]], width: int) -> list[tuple[int, float]]:
    """Step and the mean of the last `width` values; of fewer at the beginning."""
    found, total = [], 0.0
    for i, (step, value) in enumerate(points):
        total += value - (points[i - width][1] if i >= width else 0.0)
        found.append((step, total / min(i + 1, width)))
    return found


def _up(logarithmic: bool) -> alt.Y:
    scale = alt.Scale(type="log", nice=False) if logarithmic else alt.Scale(zero=True)
    axis = alt.Axis(format=".3~g", tickCount=5, labelOverlap=True)
    return alt.Y("loss:Q", title="nats a target token", scale=scale, axis=axis)


def _points(points: Sequence[tuple[int, float]], logarithmic: bool, told: str = "") -> list[dict[str, Any]]:
    kept = [(step, loss) for step, loss in points if loss > 0 or not logarithmic]
    if len(kept) > MOST:
        kept = [kept[round(i * (len(kept) - 1) / (MOST - 1))] for i in range(MOST)]
    return [
        {"step": step, "loss": loss, **({"label": f"{told} after step {step}: {loss:.3g} nats"} if told else {})}
        for step, loss in kept
    ]
