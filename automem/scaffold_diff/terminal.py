"""A difference between scaffolds on the terminal: words, then lines, one below the other or side by side.

Every text of a scaffold goes through `visible`, and none is taken for markup.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from automem.scaffold_diff import FileDiff, Said, ScaffoldDiff
from automem.scaffold_diff.lines import Hunk, Line
from automem.visible import visible, visible_parts

LONGEST = 2_000
"""Characters of a line that are shown."""

MARKS = {"+": "green", "-": "red", "~": "yellow", " ": ""}
"""Mark -> style: gained, lost, changed, neither."""

_STRONG = {"-": "bold red reverse", "+": "bold green reverse"}
_NO_NEWLINE = "\\ no newline at the end of the file"


def show(console: Console, diff: ScaffoldDiff, side_by_side: bool = False) -> None:
    """Print all of it. Lines keep their length where the output is no terminal."""
    title = Text(visible(diff.old.ref), style="bold").append(" -> ", style="dim").append(visible(diff.new.ref))
    console.print(title, soft_wrap=True)
    for section in diff.words:
        console.print(Text(f"\n{section.title}", style="bold"))
        for said in section.said:
            _print_said(console, said)
    for file in diff.files:
        console.print()
        console.print(_heading(file), soft_wrap=True)
        for hunk in file.diff.hunks:
            console.print(Text(hunk.heading, style="cyan"))
            if side_by_side:
                console.print(_side_by_side(hunk))
            else:
                for mark, line in hunk.unified():
                    _print_line(console, mark, line)


def _print_said(console: Console, said: Said) -> None:
    text = Text(_cut(visible(said.text)))
    if not console.is_terminal:
        console.print(Text(f"  {said.mark} ").append_text(text), soft_wrap=True)
        return
    row = Table.grid(padding=(0, 1, 0, 0))
    row.add_column(no_wrap=True)
    row.add_column(overflow="fold")
    row.add_row(Text(f"  {said.mark}", style=MARKS[said.mark]), text)
    console.print(row)


def _heading(file: FileDiff) -> Text:
    counts = f"  {file.status}, +{file.diff.added} -{file.diff.removed}"
    text = Text().append(visible(file.title), style="bold underline").append(counts, style="dim")
    if file.remark:
        text.append(f"  ({file.remark})", style="yellow")
    return text


def _print_line(console: Console, mark: str, line: Line) -> None:
    text = Text(mark, style=MARKS[mark]).append_text(_content(line, mark))
    console.print(text, soft_wrap=True)
    if not line.ends:
        console.print(Text(_NO_NEWLINE, style="dim"), soft_wrap=True)


def _content(line: Line, mark: str) -> Text:
    """The line, with what differs from the other side standing out, cut to `LONGEST` characters."""
    text = Text()
    for part, strong in visible_parts(line.parts, LONGEST):
        text.append(part, style=_STRONG.get(mark, "") if strong else MARKS[mark])
    return text


def _side_by_side(hunk: Hunk) -> Table:
    table = Table.grid(expand=True, padding=(0, 1, 0, 0))
    for _ in range(2):
        table.add_column(justify="right", style="dim", no_wrap=True)
        table.add_column(ratio=1, overflow="fold")
    for row in hunk.rows:
        old = _cell(row.old, " " if row.same else "-")
        new = _cell(row.new, " " if row.same else "+")
        table.add_row(*old, *new)
    return table


def _cell(line: Line | None, mark: str) -> Sequence[Text | str]:
    if line is None:
        return ("", "")
    text = _content(line, mark)
    if not line.ends:
        text.append("\n" + _NO_NEWLINE, style="dim")
    return str(line.number), Text(f"{mark} ", style=MARKS[mark]).append_text(text)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… {len(text) - LONGEST} more characters"
