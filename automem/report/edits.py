"""How a memory file changed from one step to the next, as edits of lines that a reader can apply again."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

COMPARED = 300
"""Lines on either side that are compared one by one; a larger change is told as one."""

Edit = tuple[int, int, list[str]]
"""Line of the old text, how many lines go there, and which come in their place."""


def between(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, Any]:
    """What changed in a folder, by file: edits; a text for a file that is new; None for one that is gone.

    Edits are in the order of the old text's lines and count in these, so that they are applied from the last on.
    A text is the lines that ``text.split("\\n")`` gives.
    """
    changes: dict[str, Any] = {}
    for name, text in after.items():
        old = before.get(name)
        if old is None:
            changes[name] = text
        elif old != text:
            changes[name] = edits(old.split("\n"), text.split("\n"))
    changes.update((name, None) for name in before if name not in after)
    return changes


def edits(old: list[str], new: list[str]) -> list[Edit]:
    """What makes the new lines of the old ones."""
    start, most = 0, min(len(old), len(new))
    while start < most and old[start] == new[start]:
        start += 1
    end = 0
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    gone, come = old[start : len(old) - end], new[start : len(new) - end]
    if max(len(gone), len(come)) > COMPARED:
        return [(start, len(gone), come)]
    matcher = difflib.SequenceMatcher(None, gone, come, autojunk=False)
    return [(start + i, j - i, come[k:m]) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"]
