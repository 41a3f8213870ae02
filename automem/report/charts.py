"""The report's charts, drawn with Vega-Altair when the report is made: still pictures that open at once.

Hovering over a mark tells what it is. Every chart stands beside a table of the same figures, or beside a replay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import vl_convert

from automem.report.svg import restyled

RUNS = 8
"""Colours of runs; more runs begin again."""

FILES = 8
"""Colours of memory files; further files share the last."""

LONGEST = 300
"""Characters of a text in a chart."""

_UNKNOWN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

WIDTH = 520
"""Pixels across the marks of a chart."""

_TEXT, _GRID, LINE = "#fe0001", "#fe0002", "#fe0003"
RUN = tuple(f"#fd000{i}" for i in range(RUNS))
_FILE = tuple(f"#fc000{i}" for i in range(FILES))
_COLOURS = {
    _TEXT: "text",
    _GRID: "grid",
    LINE: "axis",
    **{colour: f"run-{i}" for i, colour in enumerate(RUN)},
    **{colour: f"file-{i}" for i, colour in enumerate(_FILE)},
}
"""Colours that no chart would have by itself, and what they stand for in the page's style sheet."""

_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
_DASHES: tuple[list[int], ...] = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 2], [1, 3], [10, 4], [3, 1])


def shape(run: int) -> str:
    """A path for the mark of a run, some 10 pixels wide, around the origin: colour is not all that tells runs apart."""
    return {
        "circle": "M4.5,0A4.5,4.5,0,1,1,-4.5,0A4.5,4.5,0,1,1,4.5,0",
        "square": "M-4,-4H4V4H-4Z",
        "triangle-up": "M0,-5L5,4H-5Z",
        "diamond": "M0,-5.5L5.5,0L0,5.5L-5.5,0Z",
        "cross": "M-5,-1.7H-1.7V-5H1.7V-1.7H5V1.7H1.7V5H-1.7V1.7H-5Z",
        "triangle-down": "M0,5L5,-4H-5Z",
        "triangle-right": "M5,0L-4,5V-5Z",
        "triangle-left": "M-5,0L4,5V-5Z",
    }[_SHAPES[run % RUNS]]


Row = Mapping[str, Any]


def progression(
    rows: Sequence[Row],
    episodes: Sequence[Row],
    runs: Sequence[str],
    across: str = "progression in %",
    title: str = "Mean progression by task with 95 % intervals",
) -> str:
    """Mean progression with its interval, a line for each task and run, and the episodes as small marks.

    Args:
        rows: ``task``, ``run`` (number), ``mean``, ``low``, ``high`` (both None without an interval), ``label``.
        episodes: ``task``, ``run``, ``value``, ``label``.
        runs: names.
        across: what goes across, in percent.
        title: what the chart shows.
    """
    place = alt.Y("task:N", title=None, sort=None, axis=alt.Axis(labelLimit=220, domain=False, ticks=False))
    offset = alt.YOffset("run:O", scale=alt.Scale(domain=list(range(len(runs))), paddingInner=0.3))
    means, points = data(rows), data(episodes)
    scale = alt.Scale(domain=[0, 100])
    ticks = (
        alt.Chart(points)
        .mark_tick(thickness=1.5, size=12, opacity=0.55)
        .encode(
            alt.X("value:Q", scale=scale, title=across),
            place,
            offset,
            run_colour(),
            alt.Description("label:N"),
        )
    )
    spans = (
        alt.Chart(data([row for row in rows if row["low"] is not None]))
        .mark_rule(strokeWidth=2.5)
        .encode(alt.X("low:Q", scale=scale), alt.X2("high:Q"), place, offset, run_colour(), alt.Description("label:N"))
    )
    marks = (
        alt.Chart(means)
        .mark_point(filled=True, size=75, opacity=1)
        .encode(alt.X("mean:Q", scale=scale), place, offset, run_colour(), run_shape(), alt.Description("label:N"))
    )
    height = max(1, len({row["task"] for row in rows})) * (14 + 18 * len(runs))
    return drawn(ticks + spans + marks, title, height)


def differences(rows: Sequence[Row], title: str) -> str:
    """Paired differences with their intervals: ``task``, ``mean``, ``low``, ``high``, ``label``, ``run``."""
    place = alt.Y("task:N", title=None, sort=None, axis=alt.Axis(labelLimit=220, domain=False, ticks=False))
    spans = (
        alt.Chart(data([row for row in rows if row["low"] is not None]))
        .mark_rule(strokeWidth=2.5)
        .encode(alt.X("low:Q"), alt.X2("high:Q"), place, run_colour(), alt.Description("label:N"))
    )
    marks = (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=75, opacity=1)
        .encode(
            alt.X("mean:Q", title="difference in progression, percentage points"),
            place, run_colour(), run_shape(), alt.Description("label:N"),
        )
    )  # fmt: skip
    zero = alt.Chart(data([{"at": 0}])).mark_rule(color=LINE, strokeDash=[4, 3]).encode(alt.X("at:Q"))
    return drawn(zero + spans + marks, title, 26 * len(rows) + 8)


def curves(rows: Sequence[Row], title: str, value: str, steps: bool = False) -> str:
    """A line for each episode over its steps.

    Args:
        rows: ``step``, ``value``, ``run``, ``line`` (what belongs to one line), ``label``.
        title: what the chart shows.
        value: what goes up.
        steps: the value stays as it is until the next point.
    """
    lines = (
        alt.Chart(data(rows))
        .mark_line(strokeWidth=1.6, opacity=_opacity(rows), interpolate="step-after" if steps else "linear")
        .encode(
            alt.X("step:Q", title="step"), alt.Y("value:Q", title=value), run_colour(), alt.Detail("line:N"),
            alt.StrokeDash("run:O", scale=alt.Scale(domain=list(range(RUNS)), range=list(_DASHES)), legend=None),
            alt.Description("label:N"),
        )
    )  # fmt: skip
    return drawn(lines, title, 170)


def files(rows: Sequence[Row], title: str) -> str:
    """Size of memory files over steps: ``step``, ``value`` (bytes), ``file`` (number), ``line``, ``label``."""
    colour = alt.Color("file:O", scale=alt.Scale(domain=list(range(FILES)), range=list(_FILE)), legend=None)
    lines = (
        alt.Chart(data(rows))
        .mark_line(strokeWidth=1.6, opacity=_opacity(rows), interpolate="step-after")
        .encode(
            alt.X("step:Q", title="step"), alt.Y("value:Q", title="bytes", axis=alt.Axis(format="~s")), colour,
            alt.Detail("line:N"), alt.Description("label:N"),
        )
    )  # fmt: skip
    return drawn(lines, title, 170)


def achievements(rows: Sequence[Row], order: Sequence[str], title: str) -> str:
    """When each achievement fell: ``step``, ``name``, ``run``, ``label``; `order` from the top down."""
    runs = sorted({row["run"] for row in rows})
    marks = (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=42, opacity=0.75)
        .encode(
            alt.X("step:Q", title="step", scale=alt.Scale(domainMin=0)),
            alt.Y(
                "name:N", title=None, sort=list(order), scale=alt.Scale(domain=list(order)),
                axis=alt.Axis(labelLimit=180, grid=True, domain=False, ticks=False),
            ),
            alt.YOffset("run:O", scale=alt.Scale(domain=runs)),
            run_colour(), run_shape(), alt.Description("label:N"),
        )
    )  # fmt: skip
    return drawn(marks, title, (12 + 6 * len(runs)) * max(1, len(order)))


def data(rows: Sequence[Row]) -> alt.Data:
    """Rows as a chart holds them."""
    return alt.Data(values=[dict(row) for row in rows])


def _opacity(rows: Sequence[Row]) -> float:
    """Of lines: the more there are, the lighter, so that one sees where many run."""
    return 0.8 if len({row["line"] for row in rows}) <= 6 else 0.5


def run_colour() -> alt.Color:
    """Colours of runs by their number, ``run``, below `RUNS`."""
    return alt.Color("run:O", scale=alt.Scale(domain=list(range(RUNS)), range=list(RUN)), legend=None)


def run_shape() -> alt.Shape:
    """Marks of runs by their number, ``run``, below `RUNS`: those of `shape`."""
    return alt.Shape("run:O", scale=alt.Scale(domain=list(range(RUNS)), range=list(_SHAPES)), legend=None)


def drawn(chart: Any, label: str, height: int, width: int = WIDTH) -> str:
    """A chart as an element of a page, in the page's colours.

    Args:
        chart: of Altair; its colours are `LINE` and those of `RUN`.
        label: what it shows, for those who cannot see it.
        height, width: of what the axes enclose, in pixels.
    """
    axis = {
        "labelColor": _TEXT, "titleColor": _TEXT, "gridColor": _GRID, "domainColor": LINE, "tickColor": LINE,
        "labelFontSize": 12, "labelFlush": False, "labelSeparation": 6, "titleFontSize": 12,
        "titleFontWeight": "normal", "titlePadding": 8,
    }  # fmt: skip
    finished = chart.properties(
        width=width, height=height, background="transparent", padding={"left": 10, "right": 10, "top": 4, "bottom": 4}
    ).configure(axis=axis, view={"stroke": None})
    # The default would let a chart's data be fetched from anywhere; ours has all of it in itself.
    svg = vl_convert.vegalite_to_svg(_drawable(finished.to_dict()), allowed_base_urls=[])
    return restyled(svg, _COLOURS, _drawable(label))


def _drawable(value: Any) -> Any:
    """The same, with texts that can stand in a picture: short ones, of characters that XML knows."""
    if isinstance(value, str):
        return _UNKNOWN.sub("\ufffd", value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…")
    if isinstance(value, dict):
        return {key: _drawable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_drawable(inner) for inner in value]
    return value
