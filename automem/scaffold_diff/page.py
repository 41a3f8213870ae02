"""A difference between scaffolds as one page of HTML: nothing to fetch, nothing that runs.

All texts are escaped by the template engine and made visible first, and a policy in the page forbids
scripts and everything from outside, whatever a scaffold may have smuggled in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from automem import pages
from automem.scaffold_diff import FileDiff, ScaffoldDiff, Section
from automem.scaffold_diff.lines import Hunk
from automem.visible import visible, visible_parts

LONGEST = 20_000
"""Characters of a line that are shown."""

MARKER = '<meta name="generator" content="automem scaffold diff">'
"""Tells our pages from other files, which are not overwritten."""

_KIND = pages.Kind("page of automem scaffold diff", MARKER, "--html")

WORDS = {"+": "gained", "-": "lost", "~": "changed", " ": ""}
"""Mark -> what it means, and the class of the page's style."""


@cache
def _template(name: str, most: int) -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["visible"] = visible
    environment.globals |= {"words": WORDS, "unified": _unified, "parts": partial(visible_parts, most=most)}
    return environment.get_template(name)


def render(diff: ScaffoldDiff) -> str:
    """The page that shows a difference."""
    return _template("page.html.j2", LONGEST).render(
        old=diff.old, new=diff.new, sections=diff.words, files=diff.files, marker=MARKER
    )


def fragment(words: Sequence[Section], files: Sequence[FileDiff], most: int = LONGEST) -> Markup:
    """A difference as part of another page: in words, and every file to be opened, its lines one below the other.

    The other page has the style sheet, and a policy that forbids scripts which are not its own.

    Args:
        words, files: of a `ScaffoldDiff`, or a part of them.
        most: characters of a line that are shown.
    """
    return Markup(_template("fragment.html.j2", most).render(sections=words, files=files))


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


def write(path: Path, page: str, force: bool = False) -> None:
    """Write the page to a file, whole or not at all.

    Raises `UserError` when something else than an earlier page of ours is there, unless `force`.
    """
    pages.check(path, _KIND, force)
    pages.write(page, path)
