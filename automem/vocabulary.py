"""The operations that a model can use: their names, arguments, phases and meaning.

The prompt's operation reference, the parser and the memory folder all go by this table.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

EVERY_FILE: Final = "*"
"""In SEARCH and COUNT, stands for all files."""

_FILE_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NUMBER = re.compile(r"[0-9]{1,9}")
_XY = re.compile(r"-?[0-9]{1,9},-?[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Operation:
    """A built-in operation.

    Attributes:
        name: as written between the bars.
        args: names of the arguments, in order.
        phase: "log", "plan" or "both".
        effect: "read" or "write" (memory), or "end" (of the phase).
        meaning: what it does, in a few words, as the prompt tells it.
        required: how many of `args` must be there.
    """

    name: str
    args: tuple[str, ...]
    phase: str
    effect: str
    meaning: str
    required: int = -1

    def __post_init__(self) -> None:
        if self.required < 0:
            object.__setattr__(self, "required", len(self.args))

    @property
    def usage(self) -> str:
        """The block as it is to be written: ``<|TAIL|>file|n<|END|>``."""
        return render(self.name, self.args)


def render(name: str, args: Iterable[str] = ()) -> str:
    """The block that `parse` reads as operation `name` with these arguments."""
    return f"<|{name}|>{'|'.join(args)}<|END|>"


OPERATIONS: Final[Mapping[str, Operation]] = {
    operation.name: operation
    for operation in (
        Operation("READ", ("file",), "both", "read", "a whole file"),
        Operation(
            "SEARCH",
            ("file", "query"),
            "both",
            "read",
            "the lines that contain the query, upper or lower case alike, newest last; * as file searches every file",
        ),
        Operation("TAIL", ("file", "n"), "both", "read", "the last n lines of a file"),
        Operation("COUNT", ("file", "query"), "both", "read", "how many lines contain the query"),
        Operation("APPEND", ("file", "text"), "log", "write", "add a line at the end of a file"),
        Operation("WRITE", ("file", "text"), "log", "write", "replace everything in a file"),
        Operation("CREATE", ("file",), "log", "write", "make a new, empty file"),
        Operation("UPSERT", ("file", "key", "value"), "log", "write", "set the value of a key in a map file"),
        Operation("UPSERT_MAP", ("x,y", "text"), "log", "write", "set what is at a coordinate of the map"),
        Operation(
            "DELETE",
            ("file", "key or exact line"),
            "log",
            "write",
            "remove a key or a line; with the file alone, the whole file",
            required=1,
        ),
        Operation("DONE", (), "log", "end", "finish logging"),
        Operation("ACTION", ("name of the action",), "plan", "end", "commit to this action"),
    )
}
"""Every built-in operation by name, in the order in which the prompt lists them."""


@dataclass(frozen=True, slots=True)
class Op:
    """One operation to run.

    Attributes:
        name: upper case.
        args: without surrounding white space. UPSERT_MAP has ``("x,y", text)`` however it was written.
        span: where the block stands in the text, ``text[span[0]:span[1]]``; ``(0, 0)`` if it was not parsed.
    """

    name: str
    args: tuple[str, ...]
    span: tuple[int, int] = (0, 0)

    @property
    def label(self) -> str:
        """One line for headings, long arguments shortened: ``TAIL map_notes.txt | 3``."""
        return f"{self.name} {' | '.join(one_line(arg, 80) for arg in self.args)}".rstrip()

    @property
    def writes(self) -> bool:
        """True for a built-in operation that changes memory."""
        return self.name in OPERATIONS and OPERATIONS[self.name].effect == "write"


def one_line(text: str, limit: int) -> str:
    """At most `limit` characters of `text`, safe to print, with every run of white space as one space."""
    words = " ".join(text[: 4 * limit].split())
    if not words.isprintable():
        words = "".join(char if char.isprintable() else "\ufffd" for char in words)
    return words if len(words) <= limit and len(text) <= 4 * limit else words[: limit - 1] + "…"


def file_name_problem(name: str) -> str | None:
    """Why `name` cannot be a file of the memory folder; None when it can."""
    if _FILE_NAME.fullmatch(name) and name.strip("."):
        return None
    return (
        f'"{one_line(name, 40)}" is not a file name: use at most 64 letters, digits, ".", "_" and "-", '
        "without folders or spaces"
    )


def problem(name: str, args: tuple[str, ...]) -> str | None:
    """What is wrong with the arguments of a built-in operation, in one line; None if nothing is."""
    operation = OPERATIONS.get(name)
    if operation is None:
        return f"{one_line(name, 40)} is no operation of the memory"
    wrong = argument_problem(operation, args)
    return None if wrong is None else f"{name}: {wrong}. Write {operation.usage}"


def argument_problem(operation: Operation, args: tuple[str, ...]) -> str | None:
    """What is wrong with the arguments, in a few words; None if nothing is."""
    if len(args) > len(operation.args):
        return "too many arguments"
    if len(args) < operation.required:
        return f"{operation.args[len(args)]} is missing"
    name = operation.name
    for i, arg in enumerate(args):
        # An empty WRITE empties a file; anything else that is empty was forgotten.
        if not arg and not (name == "WRITE" and i == 1):
            return f"{operation.args[i]} is missing"
    if operation.args and operation.args[0] == "file":
        every = args[0] == EVERY_FILE and name in ("SEARCH", "COUNT")
        wrong = None if every else file_name_problem(args[0])
        if wrong:
            return wrong
    if name == "TAIL" and (not _NUMBER.fullmatch(args[1]) or int(args[1]) == 0):
        return f'"{one_line(args[1], 20)}" is not a number of lines, 1 or more'
    if name == "UPSERT_MAP" and not _XY.fullmatch(args[0]):
        return f'"{one_line(args[0], 20)}" is not a coordinate like 3,-2'
    return None


def reference(enabled: Collection[str], extra: Mapping[str, str] | None = None) -> str:
    """The operations for the prompt, one line each, in a fixed order; DONE and ACTION always.

    Args:
        enabled: built-in names, and those of the scaffold's own operations.
        extra: what the scaffold's own operations do, by name: ``"arg|arg  meaning"`` (two
            spaces after the arguments), or the meaning alone for one without arguments.
    """
    names = {name.upper() for name in enabled} | {"DONE", "ACTION"}
    described = {name.upper(): text for name, text in (extra or {}).items()}
    lines = []
    own = sorted((names | described.keys()) - OPERATIONS.keys())
    for name in (*(name for name in OPERATIONS if OPERATIONS[name].effect != "end"), *own, "DONE", "ACTION"):
        if name in own:
            args, _, meaning = described.get(name, "").rpartition("  ")
            lines.append(f"{render(name, [args.strip()])}  {meaning.strip()}".rstrip())
        elif name in names:
            operation = OPERATIONS[name]
            only = "" if operation.phase == "both" else f" ({operation.phase.upper()} only)"
            lines.append(f"{operation.usage}  {operation.meaning}{only}")
    return "\n".join(lines)
