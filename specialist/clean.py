"""Makes a training target of a reply: the same words, without what a specialist must not learn.

Only the last assistant message of an item is cleaned; the conversation before it stays what the model saw.

- Code fences around operations are taken away; what still holds a fence is dropped.
- What follows the last operation is cut: LOG ends with DONE, PLAN before its ACTION.
- What holds no operation is dropped. DONE alone is one: a specialist must learn to write nothing more when nothing
  is worth noting.
- What holds a block that the parser refuses (unknown, in the wrong phase, badly filled in) is dropped whole. Cutting
  the block out would leave the reasoning that led to it.
- What ends in an operation without END is dropped: the reply may have been cut off in the middle of a note. Before
  another tag a missing END is only a slip, and DONE takes in nothing.
- What holds a marker of a chat template, or an answer or observation that the model made up, is dropped.

Nothing is ever rewritten: a target is spans of the reply. What memory answered is not looked at here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from automem import blocks
from automem.ops import OPERATIONS, RESERVED, Parsed, parse
from automem.records import Phase
from automem.vocabulary import one_line
from specialist import fences
from specialist.fences import Span

Reason = Literal[
    "no operation",
    "code fence",
    "chat marker",
    "invented result",
    "refused operation",
    "text after the last operation",
    "operation without end",
]
"""Why something is no training target."""

# Names that mean nothing else in any spelling; `<|user|>` and its like are refused as unknown operations.
_MARKER = re.compile(
    r"<[ \t]{0,2}[|｜]{0,2}[ \t]{0,2}/?"
    r"(?:im_(?:start|end|sep)|endoftext|(?:begin|end)_of_text|(?:start|end)_of_turn|(?:start|end)_header_id|e[om]t_id"
    r"|eom_id|header_(?:start|end)|begin▁of▁sentence|end▁of▁sentence|bos|eos|pad|unk|/?s)(?![A-Za-z0-9_])"
    r"|\[/?INST\]|<</?SYS>>|<｜(?:user|assistant|tool)",
    re.IGNORECASE,
)
# DONE as `automem.ops` understands it, with its END where nothing else is between.
_DONE = re.compile(
    r"<[ \t]{0,2}[|｜]{0,2}[ \t]{0,2}DONE(?:[ \t]{0,2}[|｜]{1,2})?(?:[ \t]{0,2}[>}])?"
    r"(?:\s{0,8}<[ \t]{0,2}[|｜]{0,2}[ \t]{0,2}(?:/?END|/DONE)[ \t]{0,2}[|｜]{0,2}[ \t]{0,2}[>}])?",
    re.IGNORECASE,
)
_TAG = re.compile(r"<\|([A-Z][A-Z0-9_]{0,39})\|>")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A training target.

    Attributes:
        text: the target.
        kept: spans of the reply that make it, in order: ``"".join(reply[a:b] for a, b in kept) == text``.
        operations: how many it holds, DONE not counted.
    """

    text: str
    kept: tuple[Span, ...]
    operations: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """A reply that is no training target, and why not.

    Attributes:
        reason: for counting.
        detail: one line for people; may be empty.
    """

    reason: Reason
    detail: str = ""


def clean(text: str, phase: Phase, enabled: Collection[str]) -> Cleaned | Dropped:
    """What of a reply is to be learnt. Linear in its length; cleaning its result again changes nothing.

    Args:
        text: the reply, as the model wrote it; may be anything.
        phase: in which it was written.
        enabled: names of the operations that can be used in this phase, the scaffold's own included.
    """
    parsed = parse(text, phase, enabled)
    spans = _blocks(text, parsed)
    if not spans:
        return Dropped("no operation", parsed.errors[0] if parsed.errors else "")
    last = spans[-1][1]
    kept = _without(last, fences.around(text[:last], [start for start, _ in spans]))
    target = joined(text, kept)
    for reason, detail in _broken(target, phase, enabled):
        return Dropped(reason, detail)
    if _meaning(parse(target, phase, enabled)) != _meaning(parsed):
        return Dropped("code fence", "it stands inside an operation")
    return Cleaned(target, kept, len(parsed.ops))


def violations(text: str, phase: Phase, enabled: Collection[str] | None = None) -> list[str]:
    """One line for each rule that a training target breaks; empty for what `clean` returns.

    Args:
        text: the target.
        phase: in which it was written.
        enabled: as in `clean`; where it is not known (None), a name in capitals that is not built in is taken for an
            operation of the scaffold's own.
    """
    names = _named(text) if enabled is None else enabled
    return [f"{reason}: {detail}" if detail else reason for reason, detail in _broken(text, phase, names)]


def joined(text: str, kept: Iterable[Span]) -> str:
    """The parts of a text, put together."""
    return "".join(text[start:end] for start, end in kept)


def _broken(text: str, phase: Phase, enabled: Collection[str]) -> Iterator[tuple[Reason, str]]:
    parsed = parse(text, phase, enabled)
    spans = _blocks(text, parsed)
    if fences.MARK in text:
        yield "code fence", one_line(text[text.index(fences.MARK) :], 60)
    if marker := _MARKER.search(text):
        yield "chat marker", one_line(text[marker.start() :], 40)
    if invented := blocks.MADE_BY_THE_AGENT.search(text):
        yield "invented result", one_line(text[invented.start() :], 60)
    for error in parsed.errors:
        yield "refused operation", error
    if not spans:
        yield "no operation", ""
        return
    if rest := text[spans[-1][1] :]:
        yield "text after the last operation", one_line(rest, 60)
    # What is added to an operation that is open becomes a part of it.
    elif not parsed.done and parse(f"{text}x", phase, enabled).ops != parsed.ops:
        yield "operation without end", one_line(text[spans[-1][0] :], 60)


def _blocks(text: str, parsed: Parsed) -> list[Span]:
    """Where the operations stand, DONE included and ACTION not, in order.

    DONE takes nothing, so what is said between it and a late END, or the end of the reply, is text after it.
    """
    spans = [op.span for op in parsed.ops]
    if parsed.done_span:
        start, end = parsed.done_span
        done = _DONE.match(text, start, end)
        spans.append((start, done.end() if done else end))
    return spans


def _without(end: int, removed: Iterable[Span]) -> tuple[Span, ...]:
    """What of a text's first `end` characters is left without some spans of it."""
    kept, at = [], 0
    for start, stop in removed:
        kept.append((at, start))
        at = stop
    return tuple((start, stop) for start, stop in [*kept, (at, end)] if start < stop)


def _meaning(parsed: Parsed) -> tuple[list[tuple[str, tuple[str, ...]]], bool]:
    return [(op.name, op.args) for op in parsed.ops], parsed.done


def _named(text: str) -> frozenset[str]:
    """Every built-in operation, and what the text uses beside them."""
    return frozenset(OPERATIONS) | (frozenset(_TAG.findall(text)) - RESERVED)
