"""When a write only says again what a file was told before.

The measure follows the paper: an agent whose memory ails writes the same line forever, and a step
number in front of it does not make it another line.
"""

from __future__ import annotations

import hashlib
import re
from typing import Literal, NamedTuple

from automem.records import Executed

# Begins with a set of letters, which is found fast; that a word begins there is looked at after that.
_STEP = re.compile(
    r"[sStT\u017f](?<!\w.)(?:(?:(?<=[sS\u017f])[tT][eE][pP]|(?<=[tT])[uU][rR][nN])[sS\u017f]? ?[:#=]? ?\d+\b"
    r"|(?<=[tT]): ?\d+\b)"
)
_AT_THE_START = re.compile(r"(?:[\[(](\d{1,9})[\])]|(\d{1,9}) ?[:.)])(?!\d)")
NEAR = 1
"""How far from the number of the step a number at the start of a line may be to count as a step number."""


def bare(text: str, step: int) -> str:
    """The text without step numbers, and with white space made alike.

    A step number is a number after "step", "turn" or "T:" (``Step 12``, ``T:12``), or one with which a line begins
    (``12:``, ``[12]``, ``12. ``) when it is that of the step in which it is written, or next to it. A text that is
    nothing else stays as it is: it says which step.
    """
    lines = [" ".join(line.split()) for line in text.split("\n")]
    left = " ".join(_STEP.sub("", "\n".join([_without_number(line, step) for line in lines])).split())
    return left if any(sign.isalnum() for sign in left) else " ".join(" ".join(lines).split())


def _without_number(line: str, step: int) -> str:
    found = _AT_THE_START.match(line)
    near = found is not None and abs(int(found[1] or found[2]) - step) <= NEAR
    return line[found.end() :] if found is not None and near else line


class Change(NamedTuple):
    """What a write or a removal does to what the files were told. Texts are digests that stay the same for ever.

    Attributes:
        kind: "APPEND", "WRITE", "UPSERT" (which UPSERT_MAP is, too), "DELETE" of one entry, or "FORGET": the file is
            removed, or somebody else wrote over it.
        file: the memory file.
        key: the entry; 0 for none.
        content: what was written, or the entry that was removed, bare.
    """

    kind: Literal["APPEND", "WRITE", "UPSERT", "DELETE", "FORGET"]
    file: str
    key: int = 0
    content: int = 0


def written(op: Executed, step: int) -> Change:
    """What this write, which was carried out in this step, does."""
    content = _digest(bare(op.args[-1], step))
    if op.name in ("APPEND", "WRITE"):
        return Change("APPEND" if op.name == "APPEND" else "WRITE", op.file, 0, content)
    return Change("UPSERT", op.file, _digest(op.args[-2]), content)


def forgotten(op: Executed, step: int) -> Change:
    """What a DELETE does, or a WRITE over a file that the model did not make."""
    if op.name == "DELETE" and len(op.args) == 2:
        return Change("DELETE", op.file, _digest(op.args[1]), _digest(bare(op.args[1], step)))
    return Change("FORGET", op.file)


def _digest(text: str) -> int:
    """64 bits; 0 for an empty text."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()) if text else 0


class Duplicates:
    """Looks at the writes of an episode, in order, and tells which are duplicates.

    - APPEND: the file was told the same, bare, at any time before since that was removed or replaced;
    - WRITE: the same, bare, as the WRITE of this file before it;
    - UPSERT, UPSERT_MAP: the same value, bare, as this key was last given;
    - all: the memory folder itself says that it held exactly this already (`Executed.duplicate`).

    Memory: one digest a write.
    """

    def __init__(self) -> None:
        self._told: dict[str, set[int]] = {}
        self._values: dict[str, dict[int, int]] = {}

    def seen(self, op: Executed, step: int) -> bool:
        """Whether this write, which was carried out in this step, is a duplicate."""
        return self.take(written(op, step)) or op.duplicate

    def forget(self, op: Executed, step: int) -> None:
        """After a DELETE, or a WRITE over a file, by whomever: what was there may be written again."""
        self.take(forgotten(op, step))

    def take(self, change: Change) -> bool:
        """Remember a change. Whether it is one that was made before."""
        kind, file, key, content = change
        if kind == "APPEND":
            told = self._told.setdefault(file, set())
            if content in told:
                return True
            told.add(content)
            return False
        if kind == "DELETE":
            self._values.get(file, {}).pop(key, None)
            self._told.get(file, set()).discard(content)
            return False
        before = self._values.get(file, {}).get(key)
        if kind != "UPSERT":
            self._told.pop(file, None)
            self._values.pop(file, None)
        if kind != "FORGET":
            self._values.setdefault(file, {})[key] = content
        return kind != "FORGET" and before == content
