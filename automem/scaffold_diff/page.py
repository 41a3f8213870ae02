"""A difference between scaffolds as one page of HTML: nothing to fetch, nothing that runs.

All texts are escaped by the template engine and made visible first, and a policy in the page forbids
scripts and everything from outside, whatever a scaffold may have smuggled in.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from automem.errors import UserError
from automem.scaffold_diff import ScaffoldDiff
from automem.scaffold_diff.lines import Hunk, Line, Part
from automem.visible import visible

LONGEST = 20_000
"""Characters of a line that are shown."""

MARKER = '<meta name="generator" content="automem scaffold diff">'
"""Tells our pages from other files, which are not overwritten."""

_MARKED_WITHIN = 1_000
"""Bytes at the beginning of a page in which its marker stands."""

WORDS = {"+": "gained", "-": "lost", "~": "changed", " ": ""}
"""Mark -> what it means, and the class of the page's style."""


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["visible"] = visible
    return environment.get_template("page.html.j2")


def render(diff: ScaffoldDiff) -> str:
    """The page that shows a difference."""
    return _template().render(
        old=diff.old,
        new=diff.new,
        sections=diff.words,
        files=diff.files,
        words=WORDS,
        marker=MARKER,
        unified=_unified,
        parts=_parts,
    )


def _unified(hunk: Hunk) -> Iterator[dict[str, Any]]:
    """Lines one below the other, each with its class and the numbers it has on both sides."""
    pairs = {id(row.new): row.old for row in hunk.rows if row.same}
    for mark, line in hunk.unified():
        if mark == " ":
            old = pairs[id(line)]
            yield {"mark": mark, "line": line, "old": old.number if old else "", "new": line.number}
        else:
            yield {
                "mark": mark,
                "line": line,
                "old": line.number if mark == "-" else "",
                "new": line.number if mark == "+" else "",
            }


def _parts(line: Line) -> Iterator[Part]:
    """The line's pieces, made visible, cut to `LONGEST` characters."""
    left, column = LONGEST, 0
    for part, strong in line.parts:
        text = visible(part[:left], column)
        yield text, strong
        left, column = left - len(part), column + len(text)
        if left < 0:
            yield f"… {len(line.text) - LONGEST} more characters", False
            return


def write(path: Path, page: str, force: bool = False) -> None:
    """Write the page to a file, whole or not at all.

    Raises `UserError` when something else than an earlier page of ours is there, unless `force`.
    """
    if path.is_dir():
        raise UserError(f"{path} is a folder; name a file, for instance {path / 'diff.html'}")
    if path.exists() and not force and not _ours(path):
        raise UserError(f"{path} is there already, and no page of automem scaffold diff; add --force to replace it")
    try:
        handle, scratch = tempfile.mkstemp(prefix=".diff-", suffix=".html", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(page)
            mask = os.umask(0)
            os.umask(mask)
            Path(scratch).chmod(0o666 & ~mask)
            Path(scratch).replace(path)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error


def _ours(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return MARKER.encode() in file.read(_MARKED_WITHIN)
    except OSError:
        return False
