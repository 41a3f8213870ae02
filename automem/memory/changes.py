"""Files that take only what changed (``changes = true``): whether a line says more than the one before it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from automem.duplicates import bare

_NO_STEP = -9
"""So far from every step that `bare` takes no number at the start of a line for a step."""


def said(line: str, entry: str) -> str:
    """What a line says but for its step number: two lines of which this is equal say the same.

    Args:
        line: one line of a memory file.
        entry: how an entry looks; one that begins with a text and ``{step}`` tells which number is the step.
    """
    numbered = _numbered(entry)
    found = numbered.match(line) if numbered is not None else None
    rest = line[found.end() :] if found is not None else line
    return bare(rest if any(sign.isalnum() for sign in rest) else line, _NO_STEP)


@lru_cache(maxsize=256)
def _numbered(entry: str) -> re.Pattern[str] | None:
    before, found, _ = entry.partition("{step}")
    return re.compile(rf"\s*{re.escape(before.strip())}\s*\d{{1,9}}(?!\d)") if found and "{" not in before else None


def news(lines: Iterable[str], newest: str | None, entry: str) -> list[str]:
    """The lines that say more than the one before them; `newest` stands before the first, None for nothing."""
    kept = []
    before = None if newest is None else said(newest, entry)
    for line in lines:
        now = said(line, entry)
        if now != before:
            kept.append(line)
        before = now
    return kept


def same(text: str, other: str, entry: str) -> bool:
    """Whether two texts say the same, line by line."""
    one, two = text.splitlines(), other.splitlines()
    return len(one) == len(two) and all(said(a, entry) == said(b, entry) for a, b in zip(one, two, strict=True))
