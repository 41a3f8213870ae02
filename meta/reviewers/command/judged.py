"""Whether what a command left can be a revision: hostile data until it has been here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from automem.models.litellm_model import scrub
from automem.visible import visible_lines
from automem.vocabulary import one_line
from meta.reviewers.command.contained import Left

TOML, NOTES = "scaffold.toml", "notes.md"
DESCRIPTION_CHARS = 200
ANALYSIS_CHARS = 20_000
MOST_NAMED = 10
"""Things of one kind that are named."""

LEAST_SECRET = 6
"""Characters of a variable's value from which on it may be a secret; shorter ones are words of any text."""

_PATH = re.compile(r"scaffold\.toml|hooks\.py|notes\.md|(?:prompts|files)/(?!\.)[A-Za-z0-9._-]{1,64}")


def of_scaffold(left: Left) -> dict[str, bytes]:
    """The files that a scaffold may have, path -> bytes; what else there is, is left out."""
    return {path: data for path, data in left.files.items() if _PATH.fullmatch(path)}


def problems(left: Left, start: Mapping[str, bytes], parent: Mapping[str, bytes]) -> list[str]:
    """Why it cannot be used, a line each, for whoever left it; empty when it can.

    Args:
        left: what was left.
        start: the candidate's files before the first round, path -> bytes.
        parent: those of the version that it is made from.
    """
    return [*_files(left), *_identity(left, start), *_difference(left, start, parent), *_said(left)]


def leaks(left: Left, secrets: Mapping[str, str]) -> str:
    """Why it must not be kept: the name of a variable whose value it holds, and where; empty when it holds none."""
    texts = {**{f"candidate/{path}": data for path, data in left.files.items()}, "REVISION.md": left.said or b""}
    for name, value in secrets.items():
        for path, data in texts.items():
            if len(value) >= LEAST_SECRET and value.encode("utf-8", "surrogateescape") in data:
                return f"{one_line(path, 80)} holds the value of {name}, which must not get into a scaffold"
    return ""


def description(said: bytes, secrets: Mapping[str, str]) -> tuple[str, str]:
    """Description, one line, and analysis of a ``REVISION.md``; the first is empty where there is none."""
    text = scrub(said.decode("utf-8", "replace"), *secrets.values()).replace("\r\n", "\n").strip()
    first, _, rest = text.partition("\n")
    analysis = visible_lines(rest.strip().replace("\t", "    "))
    return one_line(first.strip().lstrip("# "), DESCRIPTION_CHARS), analysis[:ANALYSIS_CHARS]


def _files(left: Left) -> Iterator[str]:
    for path, what in list(left.odd.items())[:MOST_NAMED]:
        yield f"candidate/{one_line(path, 80)} is {what}; a scaffold holds plain files only, up to a size"
    other = sorted(path for path in left.files if not _PATH.fullmatch(path))
    for path in other[:MOST_NAMED]:
        yield (
            f"candidate/{one_line(path, 80)} is no part of a scaffold, which has scaffold.toml, hooks.py, notes.md and "
            "files in prompts/ and files/ (letters, digits, '.', '_' and '-', at most 64): remove it"
        )
    if TOML not in left.files:
        yield f"candidate/{TOML} is missing"


def _identity(left: Left, start: Mapping[str, bytes]) -> Iterator[str]:
    now, before = _table(left.files.get(TOML, b"")), _table(start[TOML])
    if now is None:  # which the checker tells better
        return
    kept, found = _section(before or {}), _section(now)
    for name in sorted({*kept, *found}):
        if found.get(name) != kept.get(name):
            yield f"candidate/{TOML}: [scaffold] {name} was changed; it has to stay {kept.get(name)!r}"


def _difference(left: Left, start: Mapping[str, bytes], parent: Mapping[str, bytes]) -> Iterator[str]:
    found = of_scaffold(left)
    if same(found, parent):
        yield "nothing differs from the parent but names, comments or notes.md: change the scaffold in candidate/"
    elif same(found, start):
        yield "nothing differs from what was in candidate/ at the beginning but names, comments or notes.md: change it"


def same(a: Mapping[str, bytes], b: Mapping[str, bytes]) -> bool:
    """Whether two scaffolds are the same but for names, for comments in scaffold.toml, and for notes.md."""
    if {path for path in a if path != NOTES} != {path for path in b if path != NOTES}:
        return False
    if any(a[path] != b[path] for path in a if path not in (TOML, NOTES)):
        return False
    tables = [_table(files.get(TOML, b"")) for files in (a, b)]
    if tables[0] is None or tables[1] is None:
        return a.get(TOML) == b.get(TOML)
    return {**tables[0], "scaffold": None} == {**tables[1], "scaffold": None}


def _said(left: Left) -> Iterator[str]:
    if left.said is None:
        yield "there is no file REVISION.md beside candidate/: write one, its first line says what changes"
    elif not description(left.said, {})[0]:
        yield "REVISION.md is empty: its first line has to say what changes"


def _table(data: bytes) -> dict[str, Any] | None:
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def _section(table: dict[str, Any]) -> dict[str, Any]:
    section = table.get("scaffold")
    return section if isinstance(section, dict) else {}
