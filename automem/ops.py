"""The operation language: what a model writes to use its memory and to act.

One block is ``<|OP|>arg|arg…<|END|>``. `parse` turns a model's reply into operations in
the order in which they were written, each with its character span in the reply, and one
line for everything that was not understood. Nothing here touches memory.

The rules that decide what a reply means:

- A block begins at an operation tag and ends at its END tag; where END is missing it
  ends before the next operation tag, or with the text.
- The last argument takes everything up to the end of the block, ``|`` and newlines
  included. Arguments lose surrounding white space, nothing else.
- Slips are understood for names that exist: ``<READ>``, ``<|read|>``, ``<|READ>``,
  ``<READ|>``, ``<| READ |>``, ``<|READ|}``, ``<|READ|`` and the same for END; ``</READ>``
  closes READ; a chat template's own end marker (``<|im_end|>``) closes any block.
- A code fence around a block is no part of it, also where END is missing.
- ``<|NAME|>``, written exactly so, is an operation tag whatever the name: an unknown one
  is an error. ``<b>``, ``<think>`` or ``a <| b`` are text.
- Nothing after the first ACTION or DONE counts, in either phase, not even when it was
  empty or belongs to the other phase (then it is an error and commits nothing).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

LOG: Final = "log"
PLAN: Final = "plan"
EVERY_FILE: Final = "*"
"""In SEARCH and COUNT, stands for all files."""

MAX_ERRORS: Final = 20
"""Error lines kept for one reply; the rest are counted in one more line."""

_FILE_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NUMBER = re.compile(r"[0-9]{1,9}")
_COORDINATE = re.compile(r"\(?\s{0,8}([+-]?[0-9]{1,9})\s{0,8}[,|]\s{0,8}([+-]?[0-9]{1,9})\s{0,8}\)?\s{0,8}[,|:]")
_OWN_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,39}")
_CHAT_ENDS = frozenset({"IM_END", "ENDOFTEXT", "END_OF_TEXT", "EOT_ID", "END_OF_TURN"})


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


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a reply asks for.

    Attributes:
        ops: the memory operations to run, in the order in which they were written.
        done: the reply ended LOG with DONE. Never true in PLAN.
        action: the game action that the reply committed. Never there in LOG.
        errors: one line each, for the model: what was not run, and what to write instead.
        done_span: where the DONE block stands; None unless `done`.
        action_span: where the ACTION block stands; None unless `action`.
    """

    ops: tuple[Op, ...]
    done: bool
    action: str | None
    errors: tuple[str, ...]
    done_span: tuple[int, int] | None = None
    action_span: tuple[int, int] | None = None


def one_line(text: str, limit: int) -> str:
    """At most `limit` characters of `text` with every run of white space as one space."""
    words = " ".join(text[: 4 * limit].split())
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
    wrong = _problem(operation, args)
    return None if wrong is None else f"{name}: {wrong}. Write {operation.usage}"


def _problem(operation: Operation, args: tuple[str, ...]) -> str | None:
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
    if name == "UPSERT_MAP" and _coordinate(args[0] + ",") is None:
        return f'"{one_line(args[0], 20)}" is not a coordinate like 3,-2'
    return None


def _coordinate(text: str) -> tuple[int, int, int] | None:
    """x, y and where the rest of `text` begins; None unless it starts with ``x,y`` and a separator."""
    found = _COORDINATE.match(text)
    return None if found is None else (int(found[1]), int(found[2]), found.end())


def _split(name: str, body: str) -> tuple[str, ...]:
    operation = OPERATIONS.get(name)
    if operation is None:
        return tuple(part.strip() for part in body.split("|")) if body else ()
    if name == "UPSERT_MAP":
        found = _coordinate(body)
        if found is None:
            return (body,)
        x, y, rest = found
        return (f"{x},{y}", body[rest:].strip())
    if not body or not operation.args:
        return ()
    if len(operation.args) == 1:
        return (body,)
    return tuple(part.strip() for part in body.split("|", len(operation.args) - 1))


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    names: frozenset[str]
    enabled: frozenset[str]
    token: re.Pattern[str]


@lru_cache(maxsize=256)
def _vocabulary(enabled: frozenset[str] | None) -> _Vocabulary:
    own = frozenset(name.upper() for name in enabled or ())
    for name in own - OPERATIONS.keys():
        if not _OWN_NAME.fullmatch(name):
            raise ValueError(f'"{one_line(name, 40)}" cannot name an operation: use A-Z, 0-9 and "_", a letter first')
    names = own | OPERATIONS.keys()
    known = "|".join(sorted(names | {"END"} | _CHAT_ENDS, key=len, reverse=True))
    # Bounded repeats only: whatever the text, each "<" costs a constant. A sloppy tag
    # needs a closing character, or a bar on both sides; spaces before a name need a bar
    # or, as in "a < count", would turn prose into an operation.
    token = re.compile(
        rf"(?P<fence>`{{3,}})"
        rf"|<\|(?P<exact>[A-Za-z][A-Za-z0-9_]{{0,39}})\|>"
        rf"|<(?P<slash>/?)(?P<bare>{known})(?![A-Za-z0-9_])[ \t]{{0,2}}[|｜]{{0,2}}[ \t]{{0,2}}[>}}]"
        rf"|<[ \t]{{0,2}}[|｜]{{1,2}}[ \t]{{0,2}}(?P<slash2>/?)(?P<barred>{known})(?![A-Za-z0-9_])"
        rf"(?:[ \t]{{0,2}}[|｜]{{1,2}}[ \t]{{0,2}}[>}}]|[ \t]{{0,2}}[|｜>}}]|(?=\s{{0,9}}\Z))",
        re.IGNORECASE | re.ASCII,
    )
    always = own if enabled is not None else names
    return _Vocabulary(names, frozenset(always | {"DONE", "ACTION"}), token)


def parse(text: str, phase: str, enabled: Collection[str] | None = None) -> Parsed:
    """Read a model's reply. Never raises for any `text`; linear in its length.

    Args:
        text: the reply.
        phase: "log" or "plan".
        enabled: names of the operations that the scaffold allows; None for every built-in
            one. DONE and ACTION are always allowed. A name that is not built in is the
            scaffold's own: its arguments are split at each ``|``, however many there are.

    Raises:
        ValueError: `phase` or a name in `enabled` is none.
    """
    if phase not in (LOG, PLAN):
        raise ValueError(f'phase is "{LOG}" or "{PLAN}", not {phase!r}')
    return _Reply(text, phase, _vocabulary(None if enabled is None else frozenset(enabled))).read()


class _Reply:
    """One pass over a reply: tags and fences in order, at most one block open at a time."""

    def __init__(self, text: str, phase: str, vocabulary: _Vocabulary) -> None:
        self.text = text
        self.phase = phase
        self.vocabulary = vocabulary
        self.ops: list[Op] = []
        self.errors: list[str] = []
        self.dropped = 0
        self.done_span: tuple[int, int] | None = None
        self.action: str | None = None
        self.action_span: tuple[int, int] | None = None
        self.fenced = False
        self.name = ""
        self.start = self.body = 0
        self.fences = 0
        self.first_fence = self.last_fence = self.after_fence = 0

    def read(self) -> Parsed:
        ended = False
        for tag in self.vocabulary.token.finditer(self.text):
            if tag["fence"]:
                self._fence(tag)
                continue
            name = (tag["exact"] or tag["barred"] or tag["bare"]).upper()
            closing = bool(tag["slash"] or tag["slash2"])
            if name == "END" or name in _CHAT_ENDS or (closing and name == self.name):
                ended = bool(self.name) and self._close(tag.start(), tag.end())
            elif closing:
                continue
            else:
                ended = bool(self.name) and self._close(tag.start(), None)
                if not ended:
                    self.name, self.start, self.body, self.fences = name, tag.start(), tag.end(), 0
            if ended:
                break
        if self.name and not ended:
            self._close(len(self.text), None)
        if self.dropped:
            self.errors.append(f"{self.dropped} more errors like these")
        return Parsed(
            ops=tuple(self.ops),
            done=self.done_span is not None,
            action=self.action,
            errors=tuple(self.errors),
            done_span=self.done_span,
            action_span=self.action_span,
        )

    def _fence(self, tag: re.Match[str]) -> None:
        if not self.name:
            self.fenced = not self.fenced
            return
        if not self.fences:
            self.first_fence = tag.start()
        self.fences += 1
        self.last_fence, self.after_fence = tag.span()

    def _close(self, stop: int, after: int | None) -> bool:
        """End the open block before `stop`; `after` is where its END tag ends. True if the phase ended."""
        stop = self._without_fence(stop, after)
        body = self.text[self.body : stop]
        span = (self.start, self.body + len(body.rstrip()) if after is None else after)
        name, self.name = self.name, ""
        self._take(name, body.strip(), span)
        return name in ("ACTION", "DONE")

    def _without_fence(self, stop: int, after: int | None) -> int:
        """Where the body ends once a code fence that belongs around the block is left out."""
        if not self.fences:
            return stop
        if after is None and self.fenced:
            # The fence that was open before the block closes at the first one after it.
            self.fenced = self.fences % 2 == 0
            return self.first_fence
        last_line = self.text[self.after_fence : min(stop, self.after_fence + 80)]
        unpaired = self.fences % 2 == 1 and len(last_line.split()) <= 1 and stop - self.after_fence < 80
        if after is None and unpaired:
            # A fence that opens around the next block, or was never opened.
            self.fenced = True
            return self.last_fence
        if after is not None and self.fenced and unpaired and not last_line.strip():
            # END stands behind the closing fence, unless the closing fence follows END.
            if not self.text[after : after + 80].lstrip().startswith("```"):
                self.fenced = False
                return self.last_fence
        return stop

    def _take(self, name: str, body: str, span: tuple[int, int]) -> None:
        if name not in self.vocabulary.enabled:
            self._error(lambda: self._unknown(name))
            return
        operation = OPERATIONS.get(name)
        if operation is not None and operation.phase not in ("both", self.phase):
            self._error(lambda: _wrong_phase(operation))
            return
        if name == "DONE":
            self.done_span = span
            return
        args = _split(name, body)
        wrong = _problem(operation, args) if operation is not None else None
        if wrong is not None:
            self._error(lambda: f"{name}: {wrong}. Write {OPERATIONS[name].usage}")
        elif name == "ACTION":
            self.action, self.action_span = args[0], span
        else:
            self.ops.append(Op(name, args, span))

    def _error(self, line: Callable[[], str]) -> None:
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(line())
        else:
            self.dropped += 1

    def _unknown(self, name: str) -> str:
        end = "DONE" if self.phase == LOG else "ACTION"
        usable = [
            other
            for other in (*OPERATIONS, *sorted(self.vocabulary.enabled - OPERATIONS.keys()))
            if other in self.vocabulary.enabled
            and (other not in OPERATIONS or OPERATIONS[other].phase in ("both", self.phase))
        ]
        what = "is not enabled here" if name in OPERATIONS else "is no operation"
        return f"{one_line(name, 40)} {what}, nothing was run for it. Use {', '.join(usable or [end])}"


def _wrong_phase(operation: Operation) -> str:
    if operation.name == "ACTION":
        return f"ACTION was not run: actions are chosen in PLAN. Finish LOG with {OPERATIONS['DONE'].usage}"
    if operation.name == "DONE":
        return f"DONE was not run: it finishes LOG. In PLAN commit with {OPERATIONS['ACTION'].usage}"
    return f"{operation.name} was not run: memory can be changed in LOG only. In PLAN read, then commit with ACTION"


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
