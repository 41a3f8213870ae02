"""Steps, hits, diffs and rows of traces as text that a person, or a model, can read.

Everything that a model or a game wrote is made safe to print, and nothing of it is taken for markup.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TextIO

from rich.table import Table
from rich.text import Text

from automem.memory.files import clean
from automem.records import Executed, HookEvent, StepRecord, Turn
from automem.tables import percent, plain
from automem.trace.diff import FileDiff
from automem.trace.query import Answer
from automem.trace.search import Hit
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


def rows(answer: Answer) -> Table:
    """The rows of a query, every value on one line."""
    table = plain("")
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
