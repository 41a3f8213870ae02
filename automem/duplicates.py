"""When a write only says again what a file was told before.

The measure follows the paper: an agent whose memory ails writes the same line forever, and a step
number in front of it does not make it another line.
"""

from __future__ import annotations

import re

from automem.records import Executed

_STEP = re.compile(
    r"\b(?:step|turn|t)\s*[:#=]?\s*\d+\b|^\s*(?:[\[(]\d+[\])]|\d+\s*[:.)](?!\d))", re.IGNORECASE | re.MULTILINE
)
_SPACE = re.compile(r"\s+")


def bare(text: str) -> str:
    """The text without step numbers and white space, in lower case.

    A step number is a number after "step", "turn" or "T" (``Step 12``, ``T:12``), or one with which a line
    begins (``12:``, ``[12]``, ``12. ``).
    """
    return _SPACE.sub("", _STEP.sub("", text)).casefold()


class Duplicates:
    """Looks at the writes of an episode, in order, and tells which are duplicates.

    - APPEND: the file was told the same, bare, at any time before since it was last replaced or removed;
    - WRITE: the same, bare, as the WRITE of this file before it;
    - UPSERT, UPSERT_MAP: the same value, bare, as this key was last given;
    - all: the memory folder itself says that it held exactly this already (`Executed.duplicate`).

    Memory: one hash a write.
    """

    def __init__(self) -> None:
        self._told: dict[str, set[int]] = {}
        self._values: dict[tuple[str, ...], int] = {}

    def seen(self, op: Executed) -> bool:
        """Whether this write, which was carried out, is a duplicate. Call it for deletions, too: they forget."""
        if op.name == "DELETE":
            self._forget(op)
            return False
        content = hash(bare(op.args[-1]))
        if op.name == "APPEND":
            told = self._told.setdefault(op.args[0], set())
            again = content in told
            told.add(content)
            return again or op.duplicate
        if op.name == "WRITE":
            self._told.pop(op.args[0], None)
        key = (op.name, *op.args[:-1])
        again = self._values.get(key) == content
        self._values[key] = content
        return again or op.duplicate

    def _forget(self, op: Executed) -> None:
        """After a deletion, what is written next is news."""
        if len(op.args) == 2:
            self._values.pop(("UPSERT", *op.args), None)
            self._values.pop(("UPSERT_MAP", op.args[1]), None)
            return
        self._told.pop(op.args[0], None)
        for key in [key for key in self._values if op.args[0] in key]:
            del self._values[key]
