"""A bench's scoreboard for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from automem.bench import standing
from automem.tables import percent, plain
from automem.visible import visible


def scoreboard(results: Mapping[str, Any]) -> Table:
    """The agents, the furthest first: progression, BALROG's standard error and the 95 % interval, in percent."""
    columns = standing.shown_games(results)
    columns = [*columns, "overall"] if len(columns) > 1 else list(columns)
    title = f"{results['bench']}: suite {results['suite']}{'' if results['complete'] else ' (incomplete)'}"
    table = plain(
        visible(title),
        "progression % ± standard error as BALROG computes it, and a 95 % interval that holds for few episodes",
    )
    table.add_column("agent", overflow="fold")
    table.add_column("what it is", overflow="fold")
    for column in columns:
        table.add_column(Text(visible(standing.game_name(column))), justify="right")
    for agent in standing.ranked(results):
        told = "; ".join([standing.who(agent), *standing.labels(agent)])
        cells = [_cell(standing.row(agent, column)) for column in columns]
        table.add_row(Text(visible(agent["label"]), style="bold"), Text(visible(told)), *cells)
    return table


def _cell(row: Mapping[str, Any]) -> str:
    if row["progression"] is None:
        return "-"
    low, high = row["interval"]
    some = "" if row["complete"] else f"\n{row['episodes']} of {row['planned']}"
    return (
        f"{percent(row['progression'])} ± {percent(row['standard_error'])}\n{percent(low, 1)}–{percent(high, 1)}{some}"
    )
