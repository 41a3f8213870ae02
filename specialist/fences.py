"""Code fences that models put around operations: where they stand, told from fences that hold something else."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

Span = tuple[int, int]
"""[start, end) of a text."""

MARK = "```"

# A fence that has its line to itself goes with the line; of another one only the mark goes, and the language that
# stands between it and an operation. Bounded or possessive repeats only: whatever the text, the time is linear.
_FENCE = re.compile(
    r"^[ \t]{0,8}(?P<line>`{3,}+)[^\S\n]{0,8}(?P<language>[^\s`<]{0,40})[^\S\n]{0,8}(?:\n|\Z)"
    r"|(?P<inline>`{3,}+)(?:[A-Za-z0-9_+-]{1,20}[ \t]{0,4}(?=<))?",
    re.MULTILINE,
)


def around(text: str, starts: Sequence[int]) -> list[Span]:
    """Spans of the fences that stand around operations, in order.

    A fence closes the one before it when it names no language and is at least as long; one that is never closed goes
    to the end of the text. A pair without an operation between is not listed: what it holds is something else.

    Args:
        text: a reply.
        starts: where its operations begin, ascending.
    """
    found: list[Span] = []
    opened: list[tuple[Span, int, int]] = []
    for fence in _FENCE.finditer(text):
        length = len(fence["line"] or fence["inline"])
        before = bisect_left(starts, fence.start())
        if not opened or fence["language"] or length < opened[-1][1]:
            opened.append((fence.span(), length, before))
            continue
        opening, _, before_opening = opened.pop()
        if before > before_opening:
            found += [opening, fence.span()]
    found += [opening for opening, _, before in opened if before < len(starts)]
    return sorted(found)
