"""Steps, hits, diffs and figures of traces as text that a person, or a model, can read.

Everything that a model or a game wrote is made safe to print, and nothing of it is taken for markup.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TextIO

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from automem.memory.files import clean
from automem.metrics import Counts
from automem.records import Executed, HookEvent, StepRecord, Turn
from automem.tables import percent
from automem.trace.diff import FileDiff
from automem.trace.query import Answer
from automem.trace.search import Hit
from automem.trace.stats import EpisodeStats, RunStats
from automem.vocabulary import one_line

SHORT = 200
"""Characters of a text that is shown in short."""

SHORT_LINES = 12
"""Lines of an observation that is shown in short."""


def steps(records: Iterable[StepRecord], full: bool = False) -> Iterator[Text]:
    """Steps as lines: what was seen, what LOG and PLAN said and did, what was played and what it brought.

    Args:
        records: consecutive steps.
        full: whole observations, prompts, replies and results instead of the beginning of each.
    """
    reached: Mapping[str, int] | None = None
    for record in records:
        yield from step(record, full, reached)
        reached = record.achievements


def step(record: StepRecord, full: bool = False, before: Mapping[str, int] | None = None) -> Iterator[Text]:
    """One step; `before`: the achievements up to it, to mark new ones."""
    yield Text(f"=== step {record.step} ", style="bold green").append("=" * 40, style="green")
    if full and record.system is not None:
        yield from _block("system", record.system)
    shown = record.observation if full else _cut_lines(record.observation)
    yield from _block("observation", shown)
    for number, turn in enumerate(record.log):
        yield from _turn("LOG", number, turn, full)
    for op in record.maintained:
        yield from _operation(op, full)
    for number, turn in enumerate(record.plan):
        yield from _turn("PLAN", number, turn, full)
    yield from map(_hook, record.hooks)
    for warning in record.warnings:
        yield Text("warning ", style="yellow").append(one_line(warning, 1000), style="default")
    yield _outcome(record, before)
    yield Text()


def _turn(phase: str, number: int, turn: Turn, full: bool) -> Iterator[Text]:
    yield Text(f"{phase} {number}", style="bold").append(
        f"  {one_line(turn.model, 80)}, {turn.prompt_tokens} tokens in ({turn.cached_tokens} cached), "
        f"{turn.completion_tokens} out, {turn.seconds:.2f} s",
        style="dim",
    )
    if full:
        yield from _block("prompt", turn.prompt.text(f"[{turn.prompt.block}]"), "  ")
        yield from _block("reply", turn.text, "  ")
    else:
        yield Text("  ").append(one_line(turn.text, SHORT) or "(no reply)", style="italic")
    for op in turn.ops:
        yield from _operation(op, full)
    for error in turn.errors:
        yield Text(f"  ! {one_line(error, 1000)}", style="red")


def _operation(op: Executed, full: bool) -> Iterator[Text]:
    line = Text("  ")
    if op.by:
        line.append(f"{one_line(op.by, 60)} asked for ", style="dim")
    label = f"{op.name} {' | '.join(op.args)}" if full else op.label
    line.append(clean(label) if full else label, style="cyan" if op.ok else "bold red")
    marks = [name for name, is_so in (("duplicate", op.duplicate), ("truncated", op.truncated)) if is_so]
    if marks:
        line.append(f" [{', '.join(marks)}]", style="yellow")
    if full:
        yield line
        yield from _lines(op.result, "    ")
    else:
        yield line.append(f" -> {one_line(op.result, SHORT)}", style="default")


def _hook(event: HookEvent) -> Text:
    told = {"repaired": "action changed to", "again": "asked to think again:"}.get(event.kind, f"{event.kind}:")
    line = Text(f"hook {one_line(event.method, 60)} ", style="magenta")
    return line.append(f"{told} {one_line(event.text, 1000)}", style="default")


def _outcome(record: StepRecord, before: Mapping[str, int] | None) -> Text:
    line = Text("ACTION ", style="bold").append(one_line(record.action, 200), style="bold cyan")
    if record.fallback:
        line.append(" (the default: none was committed)", style="red")
    elif record.raw_action is not None and record.raw_action != record.action:
        line.append(f" (written: {one_line(record.raw_action, 200)})", style="yellow")
    line.append(f"  reward {record.reward:g}, progression {percent(record.progression)} %", style="default")
    if before is not None:
        new = [name for name, count in record.achievements.items() if count and not before.get(name)]
        if new:
            line.append(f", reached {', '.join(one_line(name, 60) for name in new)}", style="bold green")
    ended = "terminated" if record.terminated else "truncated" if record.truncated else ""
    return line.append(f", {ended}" if ended else "", style="red")


def _block(name: str, text: str, indent: str = "") -> Iterator[Text]:
    yield Text(f"{indent}{name}", style="dim")
    yield from _lines(text, f"{indent}  ")


def _lines(text: str, indent: str) -> Iterator[Text]:
    for line in clean(text).split("\n"):
        yield Text(f"{indent}{line}")


def _cut_lines(text: str) -> str:
    lines = text.split("\n")
    shown = [line[:SHORT] for line in lines[:SHORT_LINES]]
    more = len(lines) - len(shown)
    return "\n".join([*shown, f"… {more} more lines"] if more else shown)


def hit(found: Hit, episode: bool) -> Text:
    """A hit on one line; with `episode`, task and seed before it."""
    line = Text()
    if episode:
        line.append(f"{found.task} {found.seed} ", style="dim")
    line.append(f"step {found.step}", style="green")
    phase = f" {found.phase}" if found.phase else ""
    turn = "" if found.turn is None else f" {found.turn}"
    line.append(f"{phase}{turn} {found.where}: ", style="dim")
    line.append(one_line(found.excerpt[: found.start], 200))
    if found.excerpt[: found.start][-1:].isspace():
        line.append(" ")
    line.append(one_line(found.excerpt[found.start : found.end], 400), style="bold red")
    rest = found.excerpt[found.end :]
    return line.append((" " if rest[:1].isspace() else "") + one_line(rest, 200))


def file_diff(name: str, diff: FileDiff) -> Iterator[Text]:
    """How a memory file changed."""
    yield Text(f"{name}: {diff.change}, {diff.added} lines came, {diff.removed} went", style="bold")
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in diff.diff.split("\n") if diff.diff else ():
        yield Text(clean(line), style=styles.get(line[:1], ""))


FIGURES = (
    ("stuck_share", "stuck %", 100, 1),
    ("oscillating_share", "oscillating %", 100, 1),
    ("fallback_share", "fallback %", 100, 1),
    ("duplicate_write_share", "duplicate writes %", 100, 1),
    ("empty_search_share", "empty searches %", 100, 1),
    ("added_bytes_per_step", "bytes added / step", 1, 1),
    ("turns_per_step", "turns / step", 1, 2),
    ("prompt_tokens_per_step", "prompt tokens / step", 1, 0),
    ("completion_tokens_per_step", "completion tokens / step", 1, 0),
    ("cached_share", "cached %", 100, 1),
)
"""Behaviour that is shown: the rate, what to call it, by how much to multiply it, decimals."""


def run_stats(found: RunStats) -> Iterator[Table | Text]:
    """A run: its episodes, and behaviour of each task."""
    note = f", {found.unfinished} of {found.planned} episodes are not finished" if found.unfinished else ""
    table = _table(f"{found.run}: episodes{note}")
    for name in ("task", "seed", "steps", "progression %", "return", "achievements", "stuck %", "tokens / step", ""):
        table.add_column(name, justify="left" if name in ("task", "") else "right")
    for episode in found.episodes:
        table.add_row(*map(Text, _row(episode)))
    yield table
    per_task = found.summary["per_task"]
    if per_task:
        columns = {task: row["behaviour"] for task, row in per_task.items()}
        if len(columns) > 1:
            columns["overall"] = found.summary["overall"]["behaviour"]
        yield _behaviour(columns)
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


def episode_stats(found: EpisodeStats) -> Iterator[Table | Text]:
    """One episode: figures, achievements and when each was reached, operations."""
    result = found.result
    state = "" if found.finished else ", not finished"
    yield Text(f"{result.task}, seed {result.seed}{state}", style="bold")
    yield Text(
        f"steps {result.steps}, progression {percent(result.progression)} %, return {result.episode_return:.2f}"
        f"{', terminated' if result.terminated else ''}"
    )
    for name, step_ in sorted(result.reached_at.items(), key=lambda item: item[1]):
        yield Text(f"  step {step_:>6}  {one_line(name, 80)}")
    yield _behaviour({"episode": found.rates})
    yield _operations({"episode": result.counts.as_dict()})
    if found.damage:
        yield Text(f"! {one_line(found.damage, 1000)}", style="yellow")


def _behaviour(columns: Mapping[str, Mapping[str, Any]]) -> Table:
    table = _table("behaviour")
    table.add_column("")
    for name in columns:
        table.add_column(Text(name), justify="right", overflow="fold")
    for key, called, times, digits in FIGURES:
        values = [rates.get(key) for rates in columns.values()]
        table.add_row(called, *("-" if v is None else f"{times * v:.{digits}f}" for v in values))
    return table


def _operations(columns: Mapping[str, Mapping[str, Any]]) -> Table:
    table = _table("operations")
    table.add_column("")
    for name in columns:
        table.add_column(Text(name), justify="right", overflow="fold")
    names = sorted({op for totals in columns.values() for op in totals["operations"]})
    for op in names:
        table.add_row(Text(one_line(op, 60)), *(str(t["operations"].get(op, 0)) for t in columns.values()))
    return table


def rows(answer: Answer) -> Table:
    """The rows of a query, every value on one line."""
    table = _table("")
    numbers = ("INT", "DOUBLE", "FLOAT", "DECIMAL")
    for name, kind in zip(answer.columns, answer.types, strict=True):
        right = not kind.endswith("]") and any(word in kind.split("(")[0] for word in numbers)
        table.add_column(Text(one_line(name, 100)), justify="right" if right else "left", overflow="fold")
    for row in answer.rows:
        table.add_row(*(Text(one_line(_cell(value), 500)) for value in row))
    return table


def write_csv(answer: Answer, file: TextIO) -> None:
    """The rows as CSV, texts made safe to print."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([clean(name) for name in answer.columns])
    for row in answer.rows:
        writer.writerow(["" if value is None else clean(_cell(value)) for value in row])


def write_json(answer: Answer, file: TextIO) -> None:
    """The rows as JSON, an object a line."""
    for row in answer.rows:
        file.write(json.dumps(dict(zip(answer.columns, row, strict=True))) + "\n")


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _table(title: str) -> Table:
    return Table(
        title=Text(title, style="bold"), title_justify="left", box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False
    )


def plain(stats: RunStats | EpisodeStats) -> dict[str, Any]:
    """Figures as plain values, for JSON."""
    if isinstance(stats, EpisodeStats):
        result = stats.result
        counts: Counts = result.counts
        return {
            "task": result.task, "seed": result.seed, "finished": stats.finished, "steps": result.steps,
            "steps_limit": result.steps_limit, "progression": result.progression,
            "achievements": dict(result.achievements), "reached_at": dict(result.reached_at),
            "return": result.episode_return, "terminated": result.terminated, "truncated": result.truncated,
            "behaviour": {**stats.rates, "totals": counts.as_dict()}, "damage": stats.damage,
        }  # fmt: skip
    return {
        "run": stats.run, "planned": stats.planned, "unfinished": stats.unfinished, "summary": stats.summary,
        "episodes": [plain(episode) for episode in stats.episodes],
    }  # fmt: skip
