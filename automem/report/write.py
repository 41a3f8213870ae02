"""Putting a report on the disk."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from automem.errors import UserError
from automem.report.page import MARK

_HEAD = 1000
"""Bytes at the beginning of a file that tell whether it is a report."""


def writable(out: Path, force: bool = False) -> None:
    """Raise `UserError` unless a report can be written there: a new file, or in place of another report."""
    if out.is_dir():
        raise UserError(f"{out}: is a folder; name a file, such as {out / 'report.html'}")
    if not out.parent.is_dir():
        raise UserError(f"{out.parent}: is no folder; make it first, or write elsewhere with --out")
    if out.exists() and not force and not _is_report(out):
        raise UserError(f"{out}: is there already and is not a report; choose another --out, or add --force")
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise UserError(f"{out}: cannot be written here; choose another --out")


def _is_report(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(_HEAD)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error


def write(text: str, out: Path) -> int:
    """Write a report, whole or not at all. Returns its size in bytes. Raises `UserError`."""
    data = text.encode("utf-8", "replace")
    scratch = None
    try:
        handle, scratch = tempfile.mkstemp(dir=out.parent, prefix=".report-", suffix=".html")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        Path(scratch).chmod(0o666 & ~umask)
        Path(scratch).replace(out)
    except OSError as error:
        if scratch is not None:
            with suppress(OSError):
                Path(scratch).unlink()
        raise UserError(f"{out}: cannot be written: {error.strerror}") from error
    return len(data)
