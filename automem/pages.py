"""Putting a page of HTML on the disk: whole or not at all, and over nothing but an earlier page of its kind."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from automem.errors import UserError

_HEAD = 1_000
"""Bytes at the beginning of a page in which its marker stands."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What makes pages of one kind known.

    Attributes:
        name: what one is called, for messages: "report".
        marker: stands at the beginning of each, so that they can be told from other files.
        option: of the command line; names the file.
    """

    name: str
    marker: str
    option: str


def check(path: Path, kind: Kind, force: bool = False) -> None:
    """Raise `UserError` unless a page can be written there: a new file, or in place of a page of its kind.

    Args:
        path: the file.
        kind: of the page.
        force: any file may be replaced.
    """
    other = f"choose another {kind.option}"
    if path.is_dir():
        raise UserError(f"{path}: is a folder; name a file, such as {path / 'page.html'}")
    if not path.parent.is_dir():
        raise UserError(f"{path}: cannot be written: {path.parent} is no folder; make it first, or {other}")
    if path.exists() and not force and not _is_one(path, kind):
        raise UserError(f"{path}: is there already and is not a {kind.name}; {other}, or add --force")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UserError(f"{path}: cannot be written here; {other}")


def _is_one(path: Path, kind: Kind) -> bool:
    if not path.is_file():  # a pipe would be waited for
        return False
    try:
        with path.open("rb") as file:
            return kind.marker.encode() in file.read(_HEAD)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error


def write(text: str, path: Path) -> int:
    """Write a page, whole or not at all. Returns its size in bytes. Raises `UserError`."""
    data = text.encode("utf-8", "replace")
    try:
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=".page-", suffix=".html")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            umask = os.umask(0)
            os.umask(umask)
            Path(scratch).chmod(0o666 & ~umask)
            Path(scratch).replace(path)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
    return len(data)
