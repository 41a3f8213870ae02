"""A report for people: ``file:line: error: what is wrong`` and below it what to do."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from automem.check.report import Finding, Report
from automem.visible import visible_lines

_STYLES = {"error": "bold red", "warning": "yellow"}


def show(report: Report, console: Console) -> None:
    """Print a report: one finding after the other, then what was checked, and a summary in one line."""
    for finding in report.findings:
        _print(console, _heading(report.folder, finding))
        _print(console, Text(f"    do: {finding.do}", style="dim"))
    if report.findings:
        _print(console, Text())
    _print(console, Text(f"checked: {', '.join(report.checked)}"))
    for note in report.skipped:
        _print(console, Text(f"not checked: {note}", style="yellow"))
    if report.figures:
        shown = ", ".join(f"{name.replace('_', ' ')} {value:.10g}" for name, value in report.figures.items())
        _print(console, Text(f"smoke episode: {shown}"))
    if report.traceback:
        _print(console, Text(visible_lines(report.traceback.rstrip()), style="dim"))
    _print(console, _summary(report))


def place(folder: Path, finding: Finding) -> str:
    """``scaffolds/crafter/v1/hooks.py:12``, as an editor opens it."""
    folder = folder.absolute()
    here = Path.cwd()
    shown = folder.relative_to(here) if folder.is_relative_to(here) else folder
    path = f"{shown}/{finding.file}" if finding.file else f"{shown}"
    return path if finding.line is None else f"{path}:{finding.line}"


def _heading(folder: Path, finding: Finding) -> Text:
    return Text.assemble(
        (f"{place(folder, finding)}: ", "bold"),
        (f"{finding.severity}: ", _STYLES[finding.severity]),
        f"{finding.message} ",
        (f"[{finding.code}]", "dim"),
    )


def _summary(report: Report) -> Text:
    errors, warnings = len(report.errors), len(report.warnings)
    version = f" ({report.identity[:12]})" if report.identity else ""
    if not errors and not warnings:
        return Text(f"{report.ref}{version}: nothing is wrong", style="bold green")
    counted = f"{_count(errors, 'error')}, {_count(warnings, 'warning')}"
    verdict = "it can be played" if report.ok else "it cannot be used as it is"
    return Text(f"{report.ref}{version}: {counted}; {verdict}", style="bold yellow" if report.ok else "bold red")


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _print(console: Console, text: Text) -> None:
    # Paths and messages are copied and grepped: nothing is wrapped, whatever the width.
    console.print(text, soft_wrap=True, highlight=False)
