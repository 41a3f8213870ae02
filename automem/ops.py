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
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from automem.vocabulary import OPERATIONS, Op, Operation, argument_problem, one_line, reference, render

__all__ = ["LOG", "OPERATIONS", "PLAN", "RESERVED", "Op", "Operation", "Parsed", "parse", "reference", "render"]

LOG: Final = "log"
PLAN: Final = "plan"
MAX_ERRORS: Final = 20
"""Error lines kept for one reply; the rest are counted in one more line."""

_COORDINATE = re.compile(r"\(?\s{0,8}([+-]?[0-9]{1,9})\s{0,8}[,|]\s{0,8}([+-]?[0-9]{1,9})\s{0,8}\)?\s{0,8}[,|:]")
_OWN_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,39}")
_CHAT_ENDS = frozenset({"IM_END", "ENDOFTEXT", "END_OF_TEXT", "EOT_ID", "END_OF_TURN"})

RESERVED: Final = _CHAT_ENDS | {"END", "IM_START", "THINK", "THINKING"}
"""Tags that models write for other reasons: no operation can be called that."""


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
        if found is not None:
            x, y, rest = found
            return (f"{x},{y}", body[rest:].strip())
    if not body or not operation.args:
        return ()
    if len(operation.args) == 1:
        return (body,)
    return tuple(part.strip() for part in body.split("|", len(operation.args) - 1))


@dataclass(frozen=True, slots=True)
class _Vocabulary:
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
    return _Vocabulary(frozenset(always | {"DONE", "ACTION"}), token)


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
        self.ended = False
        self.fenced = False
        self.name = ""
        self.start = self.body = 0
        self.fences = 0
        self.first_fence = self.last_fence = self.after_fence = 0

    def read(self) -> Parsed:
        for tag in self.vocabulary.token.finditer(self.text):
            kind = tag.lastgroup or ""
            if kind == "fence":
                self._fence(tag)
                continue
            name = tag[kind].upper()
            closing = kind != "exact" and (tag["slash"] or tag["slash2"])
            if name == "END" or name in _CHAT_ENDS or (closing and name == self.name):
                self._close(tag.start(), tag.end())
            elif not closing:
                self._close(tag.start(), None)
                self.name, self.start, self.body, self.fences = name, tag.start(), tag.end(), 0
            if self.ended:
                break
        if not self.ended:
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

    def _close(self, stop: int, after: int | None) -> None:
        """End the open block, if any, before `stop`; `after` is where its END tag ends."""
        if not self.name:
            return
        stop = self._without_fence(stop, after)
        body = self.text[self.body : stop]
        span = (self.start, self.body + len(body.rstrip()) if after is None else after)
        name, self.name = self.name, ""
        self._take(name, body.strip(), span)
        self.ended = name in ("ACTION", "DONE")

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
        # END may stand behind the closing fence; if a fence follows END, that one closes.
        if after is not None and self.fenced and unpaired and not last_line.strip() and not self._fence_at(after):
            self.fenced = False
            return self.last_fence
        return stop

    def _fence_at(self, at: int) -> bool:
        return self.text[at : at + 80].lstrip().startswith("```")

    def _take(self, name: str, body: str, span: tuple[int, int]) -> None:
        if name not in self.vocabulary.enabled:
            self._error(self._unknown, name)
            return
        operation = OPERATIONS.get(name)
        if operation is not None and not self._now(operation):
            self._error(_wrong_phase, operation)
            return
        if name == "DONE":
            self.done_span = span
            return
        args = _split(name, body)
        wrong = argument_problem(operation, args) if operation is not None else None
        if wrong is not None:
            self._error(_wrong_argument, OPERATIONS[name], wrong)
        elif name == "ACTION":
            self.action, self.action_span = args[0], span
        else:
            self.ops.append(Op(name, args, span))

    def _error(self, line: Callable[..., str], *about: object) -> None:
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(line(*about))
        else:
            self.dropped += 1

    def _unknown(self, name: str) -> str:
        enabled = self.vocabulary.enabled
        built_in = [o.name for o in OPERATIONS.values() if o.name in enabled and o.effect != "end" and self._now(o)]
        usable = [*built_in, *sorted(enabled - OPERATIONS.keys()), "DONE" if self.phase == LOG else "ACTION"]
        what = "is not enabled here" if name in OPERATIONS else "is no operation"
        return f"{one_line(name, 40)} {what}, nothing was run for it. Use {', '.join(usable)}"

    def _now(self, operation: Operation) -> bool:
        return operation.phase in ("both", self.phase)


def _wrong_phase(operation: Operation) -> str:
    if operation.name == "ACTION":
        return f"ACTION was not run: actions are chosen in PLAN. Finish LOG with {OPERATIONS['DONE'].usage}"
    if operation.name == "DONE":
        return f"DONE was not run: it finishes LOG. In PLAN commit with {OPERATIONS['ACTION'].usage}"
    return f"{operation.name} was not run: memory can be changed in LOG only. In PLAN read, then commit with ACTION"


def _wrong_argument(operation: Operation, wrong: str) -> str:
    return f"{operation.name}: {wrong}. Write {operation.usage}"
