"""When a write only says again what a file was told before.

The measure follows the paper: an agent whose memory ails writes the same line forever, and a step
number in front of it does not make it another line.
"""

from __future__ import annotations

import re

from automem.records import Executed

_STEP = re.compile(r"\b(?:step|turn)s? ?[:#=]? ?\d+\b|\bT: ?\d+\b", re.IGNORECASE)
_AT_THE_START = re.compile(r"(?:^|(?<=\n))(?:[\[(](\d{1,9})[\])]|(\d{1,9}) ?[:.)])(?!\d)")
NEAR = 1
"""How far from the number of the step a number at the start of a line may be to count as a step number."""


def bare(text: str, step: int) -> str:
    """The text without step numbers, and with white space made alike.

    A step number is a number after "step", "turn" or "T:" (``Step 12``, ``T:12``), or one with which a line begins
    (``12:``, ``[12]``, ``12. ``) when it is that of the step in which it is written, or next to it. A text that is
    nothing else stays as it is: it says which step.
    """
    lines = "\n".join(" ".join(line.split()) for line in text.split("\n"))

    def start(found: re.Match[str]) -> str:
        return "" if abs(int(found[1] or found[2]) - step) <= NEAR else found[0]

    left = " ".join(_STEP.sub("", _AT_THE_START.sub(start, lines)).split())
    return left if any(sign.isalnum() for sign in left) else " ".join(lines.split())


class Duplicates:
    """Looks at the writes of an episode, in order, and tells which are duplicates.

    - APPEND: the file was told the same, bare, at any time before since that was removed or replaced;
    - WRITE: the same, bare, as the WRITE of this file before it;
    - UPSERT, UPSERT_MAP: the same value, bare, as this key was last given;
    - all: the memory folder itself says that it held exactly this already (`Executed.duplicate`).

    Memory: one hash a write.
    """

    def __init__(self) -> None:
        self._told: dict[str, dict[int, int]] = {}
        self._values: dict[str, dict[str, int]] = {}

    def seen(self, op: Executed, step: int) -> bool:
        """Whether this write, which was carried out in this step, is a duplicate."""
        content = hash(bare(op.args[-1], step))
        if op.name == "APPEND":
            told = self._told.setdefault(op.file, {})
            told[content] = told.get(content, 0) + 1
            return told[content] > 1 or op.duplicate
        key = "" if op.name == "WRITE" else op.args[-2]
        before = self._values.get(op.file, {}).get(key)
        if op.name == "WRITE":
            self.forget(op, step)
        self._values.setdefault(op.file, {})[key] = content
        return before == content or op.duplicate

    def forget(self, op: Executed, step: int) -> None:
        """After a DELETE, or a WRITE over a file, by whomever: what was there may be written again."""
        if op.name == "DELETE" and len(op.args) == 2:
            self._values.get(op.file, {}).pop(op.args[1], None)
            self._told.get(op.file, {}).pop(hash(bare(op.args[1], step)), None)
            return
        self._told.pop(op.file, None)
        self._values.pop(op.file, None)
