"""How many seeds are enough, from what has been played: which results are taken, and how it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

import games
from automem import runs
from automem.bench import power, storage
from automem.episode import EpisodeError
from automem.errors import UserError
from automem.evaluate import Request, planned_tasks
from automem.runs import PlayedModel, Run
from automem.tables import plain
from automem.visible import visible

FEW = 10
"""Seeds below which a spread is said to rest on few."""

_NOTHING = "no finished episode of this suite to take a spread from"


@dataclass(frozen=True)
class Seen:
    """Results to take the spread from.

    Attributes:
        told: whose they are.
        a, b: task -> seed -> progression of both agents; `b` is None where there is only one.
    """

    told: str
    a: Mapping[str, Mapping[int, float]]
    b: Mapping[str, Mapping[int, float]] | None


def show(suite: str, points: float, name: str | None, console: Console, strength: float = 0.8) -> None:
    """Print how many seeds of each task a difference needs.

    Args:
        suite: a suite or a task.
        points: of progression, above 0 and at most 100.
        name: a bench or a run to take the spread from; the latest of the suite when None.
        console: where to.
        strength: how surely the difference is to be found.

    Raises `UserError`.
    """
    if not 0 < points <= 100:
        raise UserError(f"--power {points:g}: name a difference in points of progression, above 0 and at most 100")
    planned = {task.task: len(task.seeds) for task in planned_tasks(Request(suite, PlayedModel(name="none")))}
    for seen in _seen(suite, name, planned):
        found = power.rows(seen.a, seen.b, points / 100, planned, strength)
        console.print(_table(seen.told, points, strength, found))
    console.print(
        "seeds: of each task, for each agent, so that a two-sided test at 5 % finds the difference with the chance "
        "named. The second figure holds if the spread is as large as the seeds seen leave open (80 %).",
        highlight=False,
    )


def _seen(suite: str, name: str | None, planned: Mapping[str, int]) -> list[Seen]:
    if name is None:
        name = _latest(suite, planned)
    if not storage.is_bench(name):
        run = runs.load(name)
        found = _progressions(run, planned)
        if not found:
            raise UserError(f"{run.config.name}: {_NOTHING}")
        return [Seen(run.config.name, found, None)]
    played = [(run.config.name, found) for run in storage.load(name).runs() if (found := _progressions(run, planned))]
    if not played:
        raise UserError(f"bench {name}: {_NOTHING}")
    (first, a), *others = played
    return [Seen(f"{first} and {other}", a, b) for other, b in others] or [Seen(first, a, None)]


def _latest(suite: str, planned: Mapping[str, int]) -> str:
    """The latest bench of the suite, else the latest run, in which an episode of its tasks is finished."""
    for bench in storage.all_benches():
        if bench.config.suite == suite.lower() and any(_progressions(run, planned) for run in bench.runs()):
            return str(bench.folder)
    for run in runs.all_runs():
        if any(task.task in planned for task in run.config.tasks) and _progressions(run, planned):
            return str(run.folder)
    raise UserError(
        f"nothing of {suite} has been played here, so its spread is not known: play some seeds first, "
        f"automem bench {suite} --episodes 5"
    )


def _progressions(run: Run, planned: Mapping[str, int]) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for job in run.jobs():
        if games.canonical(job.task) not in planned:
            continue
        try:
            result = run.result(job)
        except EpisodeError:
            continue  # `automem report` names it; a spread can do without
        if result is not None:
            found.setdefault(job.task, {})[job.seed] = result.progression
    return found


def _table(told: str, points: float, strength: float, rows: Sequence[power.Row]) -> Table:
    table = plain(visible(f"{told}: a difference of {points:g} points, found {100 * strength:.0f} % of the time"))
    table.add_column("task or game", overflow="fold")
    for column in ("seen", "spread", "seeds needed", "planned", "these show"):
        table.add_column(column, justify="right")
    for row in rows:
        spread = row.spread
        few = " (few)" if spread.from_seeds < FEW else ""
        table.add_row(
            Text(visible(row.name)),
            f"{spread.from_seeds} {'pairs' if spread.paired else 'seeds'}{few}",
            _spread(spread),
            f"{_seeds(row.need.seeds)}, up to {_seeds(row.need.seeds_at_upper_spread)}",
            str(row.planned),
            _points(row.shows)
            if row.shows is None
            else f"{_points(row.shows)}, or {_points(row.shows_at_upper_spread)}",
        )
    return table


def _spread(spread: power.Spread) -> str:
    if spread.value is None:
        return "not known"
    upper = "?" if spread.upper is None else f"{100 * spread.upper:.1f}"
    what = "points" if spread.kind == "graded" else "% differ" if spread.paired else "% won"
    return f"{100 * spread.value:.1f} (at worst {upper}) {what}"


def _seeds(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _points(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.1f} points"
