"""What changed in the memory folder between two steps."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

CONTEXT = 3
"""Lines around a change."""

LARGEST = 500
"""Lines on either side that are compared in order; of more, only which came and which went is told."""


@dataclass(frozen=True, slots=True)
class FileDiff:
    """How a memory file changed.

    Attributes:
        change: "created", "removed" or "changed".
        added, removed: lines that came and went.
        diff: in unified format, without file headers. Where more than `LARGEST` lines changed, those that
            went and those that came, in order and without what is around them.
    """

    change: str
    added: int
    removed: int
    diff: str


def between(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, FileDiff]:
    """The files that differ, by name, sorted."""
    found = {}
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old != new:
            change = "created" if old is None else "removed" if new is None else "changed"
            found[name] = _changed(change, (old or "").split("\n")[:-1], (new or "").split("\n")[:-1])
    return found


def _changed(change: str, old: list[str], new: list[str]) -> FileDiff:
    same = _common(old, new)
    end = _common(old[same:][::-1], new[same:][::-1])
    gone, come = old[same : len(old) - end], new[same : len(new) - end]
    if max(len(gone), len(come)) > LARGEST and gone and come:
        left, kept = Counter(come), Counter(gone)
        lines = [f"-{line}" for line in gone if _take(left, line)] + [f"+{line}" for line in come if _take(kept, line)]
    else:
        start = max(0, same - CONTEXT)
        around = old[same + len(gone) :][:CONTEXT]
        lines = _unified([*old[start:same], *gone, *around], [*old[start:same], *come, *around], start)
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    return FileDiff(change, added, removed, "\n".join(lines))


def _take(counted: Counter[str], line: str) -> bool:
    """Whether the other side has no more of this line."""
    if counted[line] > 0:
        counted[line] -= 1
        return False
    return True


def _common(a: list[str], b: list[str]) -> int:
    """How many lines at the beginning are the same."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _unified(old: list[str], new: list[str], start: int) -> list[str]:
    """Unified hunks, line numbers counted from `start`."""
    lines = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        lines.append(f"@@ -{_range(first[1], last[2], start)} +{_range(first[3], last[4], start)} @@")
        for tag, i, j, k, m in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[i:j]]
            else:
                lines += [f"-{line}" for line in old[i:j]] + [f"+{line}" for line in new[k:m]]
    return lines


def _range(first: int, last: int, start: int) -> str:
    begin = start + first + (last > first)
    return f"{begin}" if last - first == 1 else f"{begin},{last - first}"
