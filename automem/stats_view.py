"""Figures of a run or an episode for the terminal, and as plain values."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from automem.episode import EpisodeResult
from automem.growth import Growth, Means
from automem.metric_names import METRICS, figure, metric, shares, unit
from automem.tables import percent, plain
from automem.trace.stats import EpisodeStats, RunStats
from automem.vocabulary import one_line

ENTRIES = {"added_entries": "entries added", "updated_entries": "entries updated", "deleted_entries": "entries deleted"}
"""Sums that are shown beside the rates."""


def of_run(found: RunStats) -> Iterator[Table | Text]:
    """A run: its episodes, when achievements fell, and the behaviour and operations of each task."""
    note = f", {found.unfinished} of {found.planned} episodes are not finished" if found.unfinished else ""
    yield _title(f"{found.run}: episodes{note}")
    table = plain()
    for name in ("task", "seed", "steps", "progression %", "return", "achievements", "stuck %", "tokens / step", ""):
        table.add_column(name, justify="left" if name in ("task", "") else "right")
    for episode in found.episodes:
        table.add_row(*map(Text, _row(episode)))
    yield table
    per_task = found.summary["per_task"]
    for task in per_task:
        results = [episode.result for episode in found.episodes if episode.result.task == task]
        if any(result.reached_at for result in results):
            yield _title(f"{task}: steps at which achievements fell, in {len(results)} episodes")
            yield _achievements(results)
    if per_task:
        columns = {task: row["behaviour"] for task, row in per_task.items()}
        if len(columns) > 1:
            columns["overall"] = found.summary["overall"]["behaviour"]
        yield _title("behaviour")
        yield _behaviour(columns)
        yield _title("operations")
        yield _operations({name: rates["totals"] for name, rates in columns.items()})
    for episode in found.episodes:
        if episode.damage:
            yield Text(f"! {one_line(episode.damage, 1000)}", style="yellow")


def _row(episode: EpisodeStats) -> tuple[str, ...]:
    result, rates = episode.result, episode.rates
    tokens = (rates["prompt_tokens_per_step"] or 0) + (rates["completion_tokens_per_step"] or 0)
    return (
        result.task,
        str(result.seed),
        str(result.steps),
        percent(result.progression),
        f"{result.episode_return:.2f}",
        str(sum(bool(count) for count in result.achievements.values())),
        percent(rates["stuck_share"], 1),
        f"{tokens:.0f}",
        "" if episode.finished else "damaged" if episode.damage else "not finished",
    )


def of_episode(found: EpisodeStats) -> Iterator[Table | Text]:
    """One episode: figures, achievements and when each was reached, behaviour, operations."""
    result = found.result
    state = "" if found.finished else ", not finished"
    yield Text(f"{result.task}, seed {result.seed}{state}", style="bold")
    yield Text(
        f"steps {result.steps}, progression {percent(result.progression)} %, return {result.episode_return:.2f}"
        f"{', terminated' if result.terminated else ''}"
    )
    for name, step in sorted(result.reached_at.items(), key=lambda item: item[1]):
        yield Text(f"  step {step:>6}  {one_line(name, 80)}")
    totals = result.counts.as_dict()
    yield _title("behaviour")
    yield _behaviour({"episode": {**found.rates, "totals": totals}})
    yield _title("operations")
    yield _operations({"episode": totals})
    if found.damage:
        yield Text(f"! {one_line(found.damage, 1000)}", style="yellow")


def _achievements(results: Sequence[EpisodeResult]) -> Table:
    table = plain()
    for name in ("achievement", "episodes", "first", "median", "last"):
        table.add_column(name, justify="left" if name == "achievement" else "right")
    steps: dict[str, list[int]] = {}
    for result in results:
        for name, step in result.reached_at.items():
            steps.setdefault(name, []).append(step)
    for name, fell in sorted(steps.items(), key=lambda item: (statistics.median(item[1]), item[0])):
        figures = (len(fell), min(fell), f"{statistics.median(fell):g}", max(fell))
        table.add_row(Text(one_line(name, 80)), *map(str, figures))
    return table


def _behaviour(columns: Mapping[str, Mapping[str, Any]]) -> Table:
    """Rates, and sums of entries; each column has rates by name and ``totals``."""
    table = _columns(columns)
    names = list(dict.fromkeys([*METRICS, *(name for rates in columns.values() for name in rates)]))
    for name in names:
        if name != "totals":
            values = [figure(name, rates.get(name)) for rates in columns.values()]
            table.add_row(f"{metric(name).label} {unit(name)}".strip(), *values)
    for name, called in ENTRIES.items():
        table.add_row(called, *(str(rates["totals"][name]) for rates in columns.values()))
    return table


def _operations(columns: Mapping[str, Mapping[str, Any]]) -> Table:
    """How often each operation was run, and which part of all that is."""
    table = _columns(columns)
    names = sorted({op for totals in columns.values() for op in totals["operations"]})
    parts = [shares(totals["operations"]) for totals in columns.values()]
    for op in names:
        counted = [totals["operations"].get(op, 0) for totals in columns.values()]
        cells = [f"{n} ({percent(part.get(op, 0.0), 1)} %)" for n, part in zip(counted, parts, strict=True)]
        table.add_row(Text(one_line(op, 60)), *cells)
    return table


def of_files(name: str, found: Means) -> Iterator[Table | Text]:
    """Sizes of memory files over steps: lines, then bytes."""
    many = max(found.episodes) > 1
    of = f", means of {max(found.episodes)} episodes" if many else ""
    for what, which in (("lines", 1), ("bytes", 0)):
        yield _title(f"{name}: {what} of memory files by step{of}")
        table = _columns([str(step) for step in found.steps])
        for file, sizes in found.files.items():
            table.add_row(Text(file), *(f"{size[which]:.0f}" for size in sizes))
        if len(found.files) > 1:
            sums = [sum(sizes[i][which] for sizes in found.files.values()) for i in range(len(found.steps))]
            table.add_section()
            table.add_row("all", *(f"{total:.0f}" for total in sums))
        if many and min(found.episodes) < max(found.episodes):
            table.add_section()
            table.add_row("episodes", *map(str, found.episodes))
        yield table


def _columns(names: Mapping[str, Any] | Sequence[str]) -> Table:
    table = plain()
    table.add_column("")
    for name in names:
        table.add_column(Text(name), justify="right", overflow="fold")
    return table


def _title(words: str) -> Text:
    """On a line of its own: a table would break it at its own width."""
    return Text(words, style="bold")


def plain_episode(stats: EpisodeStats) -> dict[str, Any]:
    """An episode's figures as plain values, for JSON."""
    result = stats.result
    return {
        "task": result.task, "seed": result.seed, "finished": stats.finished, "steps": result.steps,
        "steps_limit": result.steps_limit, "progression": result.progression,
        "achievements": dict(result.achievements), "reached_at": dict(result.reached_at),
        "return": result.episode_return, "terminated": result.terminated, "truncated": result.truncated,
        "behaviour": {**stats.rates, "totals": result.counts.as_dict()},
        "operation_shares": shares(result.counts.operations), "damage": stats.damage,
    }  # fmt: skip


def plain_run(stats: RunStats) -> dict[str, Any]:
    """A run's figures as plain values, for JSON."""
    return {
        "run": stats.run, "planned": stats.planned, "unfinished": stats.unfinished, "summary": stats.summary,
        "episodes": [plain_episode(episode) for episode in stats.episodes],
    }  # fmt: skip


def plain_files(sizes: Growth) -> dict[str, list[dict[str, int]]]:
    """File -> its sizes wherever they changed, for JSON."""
    return {name: [asdict(size) for size in found] for name, found in sizes.files.items()}
