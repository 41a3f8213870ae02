"""Putting a report on the disk."""

from __future__ import annotations

from pathlib import Path

from automem import pages
from automem.report.page import MARK

_REPORT = pages.Kind("report", MARK, "--out")


def writable(out: Path, force: bool = False) -> None:
    """Raise `UserError` unless a report can be written there: a new file, or in place of another report."""
    pages.check(out, _REPORT, force)


def write(text: str, out: Path) -> int:
    """Write a report, whole or not at all. Returns its size in bytes. Raises `UserError`."""
    return pages.write(text, out)
