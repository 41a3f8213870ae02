"""Results as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from automem.errors import UserError
from automem.runs import Run


def percent(value: float | None, digits: int = 2) -> str:
    """A share in [0, 1] in percent; a dash for None."""
    return "-" if value is None else f"{100 * value:.{digits}f}"


def chance(p: float | None) -> str:
    """A p-value in three decimals; a dash for None."""
    if p is None:
        return "-"
    return f"{p:.3f}" if p >= 0.001 else "<0.001"


def plain(title: str = "", caption: str = "") -> Table:
    """A table without a frame."""
    return Table(
        title=Text(title, style="bold") if title else None,
        title_justify="left",
        caption=caption or None,
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
        pad_edge=False,
    )


def summary(data: dict[str, Any]) -> Table:
    """A run's summary: progression (score) with its interval, and behaviour, per task and overall."""
    note = "" if data["complete"] else f" (incomplete: {len(data['failed'])} episodes failed)"
    table = plain(
        f"{data['run']}, model {data['model']}{note}",
        "dupl.: share of writes that told a file the same again; empty: share of searches that found nothing",
    )
    table.add_column("task", overflow="fold")
    for name in ("n", "score\n%", "95 %\ninterval", "steps", "tokens\n/step", "dupl.\n%", "empty\n%"):
        table.add_column(name, justify="right", no_wrap=True)
    for task, row in data["per_task"].items():
        facts = "".join(f"\n  {fact}" for fact in row["facts"])
        table.add_row(Text(f"{task}{facts}"), *_figures(row, f"{row['mean_steps']:.0f}"))
    table.add_section()
    table.add_row("overall", *_figures(data["overall"], ""), style="bold")
    return table


def _figures(row: dict[str, Any], steps: str) -> tuple[str, ...]:
    behaviour = row["behaviour"]
    interval = row["interval"]
    tokens = (behaviour["prompt_tokens_per_step"] or 0) + (behaviour["completion_tokens_per_step"] or 0)
    return (
        str(row["episodes"]),
        percent(row["progression"]),
        "-" if interval is None else f"{percent(interval[0], 1)}–{percent(interval[1], 1)}",
        steps,
        f"{tokens:.0f}",
        percent(behaviour["duplicate_write_share"], 1),
        percent(behaviour["empty_search_share"], 1),
    )


def runs(found: Iterable[Run]) -> Table:
    """All runs, a line each."""
    table = Table()
    for name in ("run", "created", "what", "model", "scaffold", "episodes", "progression %"):
        table.add_column(name, overflow="fold")
    for run in found:
        config = run.config
        try:
            data = run.summary()
            progression = percent(data["overall"]["progression"]) if data else "-"
        except (UserError, KeyError, TypeError):
            progression = "damaged"
        planned = sum(len(task.seeds) for task in config.tasks)
        finished = sum(1 for _ in run.folder.glob("episodes/*/seed-*/episode.json"))
        cells = (
            config.name,
            config.created.replace("+00:00", "Z"),
            config.target,
            config.players,
            ", ".join(played.ref for played in config.scaffolds.values()) or "-",
            f"{finished}/{planned}",
            progression,
        )
        table.add_row(*(Text(cell) for cell in cells))
    return table


def loops(lines: Iterable[tuple[str, ...]], title: str, *names: str) -> Table:
    """All loops of a kind, a line each, under the names of their columns."""
    table = Table(title=title, title_justify="left")
    for name in names:
        table.add_column(name, overflow="fold")
    for cells in lines:
        table.add_row(*(Text(cell) for cell in cells))
    return table
