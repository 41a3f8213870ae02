"""What a result shows of many lines: the newest that fit, and one line that says what was left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def newest_within(
    newest_first: Iterable[str],
    limit: int,
    most: int | None,
    note: Callable[[int], str],
    part_note: str,
    focus: str = "",
) -> tuple[str, int, bool]:
    """The newest lines that fit, oldest first, below a note if some did not.

    Args:
        newest_first: the lines; no more of them are drawn than needed.
        limit: characters of the whole answer.
        most: lines of the answer; None for any number.
        note: what to say when only so many lines are shown.
        part_note: what to say when not even one line fits; then its end is shown, or
            what is around `focus` (lower case).

    Returns:
        The answer, the lines in it, and whether something was left out.
    """
    kept: list[str] = []
    used = -1
    left_out = None
    for line in newest_first:
        if len(kept) == most or used + 1 + len(line) > limit:
            left_out = line
            break
        kept.append(line)
        used += 1 + len(line)
    if left_out is None:
        return "\n".join(reversed(kept)), len(kept), False
    newest = kept[0] if kept else left_out
    while kept and used + 1 + len(note(len(kept))) > limit:
        used -= 1 + len(kept.pop())
    if kept:
        return "\n".join([note(len(kept)), *reversed(kept)]), len(kept), True
    head = f"{part_note}\n" if len(part_note) < limit // 2 else ""
    return head + _part(newest, limit - len(head), focus), 1, True


def _part(line: str, limit: int, focus: str) -> str:
    """At most `limit` characters of `line`: its end, or what is around `focus`."""
    if limit < 3 or len(line) <= limit:
        return line[-limit:]
    start = len(line) - limit
    if focus:
        start = min(start, max(0, line.lower().find(focus) - limit // 3))
    return ("…" if start else "") + line[start + (start > 0) :][: limit - (start > 0)]
