"""A comparison of two runs for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from automem.compare import Behaviour, Comparison, Paired
from automem.metric_names import figure, metric, unit
from automem.tables import chance, percent, plain
from automem.visible import visible


def show(comparison: Comparison, console: Console) -> None:
    """Print warnings, progression, behaviour, operations and achievements.

    Names and warnings may hold what somebody else stored: none of it reaches the terminal as it stands.
    """
    for warning in comparison.warnings:
        console.print(Text(visible(f"! {warning}"), style="yellow"), soft_wrap=True)
    console.print(_progression(comparison))
    console.print(_behaviour(comparison))
    if comparison.operations:
        console.print(_operations(comparison))
    if comparison.achievements:
        console.print(_achievements(comparison))


def _progression(comparison: Comparison) -> Table:
    what = "progression in %, B - A with its 95 % interval and p by sign flips"
    table = plain(visible(f"A = {comparison.a}, B = {comparison.b}: {what}"))
    table.add_column("task", overflow="fold")
    for name in ("pairs", "A", "B", "B - A", "95 %", "p", "won", "tied", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for paired in comparison.tasks:
        table.add_row(*_cells(paired))
    if len(comparison.tasks) > 1:
        table.add_section()
        table.add_row(*_cells(comparison.overall), style="bold")
    return table


def _cells(paired: Paired) -> tuple[str | Text, ...]:
    interval = paired.interval
    return (
        Text(visible(paired.name)),
        str(paired.pairs),
        percent(paired.mean_a),
        percent(paired.mean_b),
        f"{100 * paired.difference:+.2f}".replace("-0.00", "+0.00"),
        "-" if interval is None else f"{100 * interval[0]:+.1f} to {100 * interval[1]:+.1f}",
        chance(paired.p),
        str(paired.won),
        str(paired.tied),
        str(paired.lost),
    )


def _behaviour(comparison: Comparison) -> Table:
    table = _beside("behaviour over the paired episodes", "metric")
    for one in comparison.behaviour:
        called = f"{metric(one.name).label} {unit(one.name)}".strip()
        table.add_row(called, figure(one.name, one.a), figure(one.name, one.b), _change(one))
    return table


def _operations(comparison: Comparison) -> Table:
    table = _beside("operations, in % of all", "operation")
    for one in comparison.operations:
        table.add_row(Text(visible(one.name)), percent(one.a, 1), percent(one.b, 1), _change(one))
    return table


def _beside(title: str, what: str) -> Table:
    table = plain(title)
    table.add_column(what)
    for name in ("A", "B", "change"):
        table.add_column(name, justify="right")
    return table


def _change(one: Behaviour) -> str:
    return "-" if one.change is None else f"{100 * one.change:+.0f} %"


def _achievements(comparison: Comparison) -> Table:
    table = plain("achievements: episodes that reached them")
    table.add_column("task", overflow="fold")
    table.add_column("achievement")
    for name in ("A", "B", "change"):
        table.add_column(name, justify="right")
    for task, changed in comparison.achievements.items():
        for name, (a, b) in sorted(changed.items(), key=lambda item: (item[1][0] - item[1][1], item[0])):
            style = "green" if b > a else "red"
            table.add_row(Text(visible(task)), Text(visible(name)), str(a), str(b), f"{b - a:+d}", style=style)
    return table
