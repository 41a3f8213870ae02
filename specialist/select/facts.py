"""What one phase did with memory, and what came of it later: all that signals are computed from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from automem.blocks import MADE_BY_THE_AGENT
from automem.ops import parse
from automem.records import Executed, Phase, Turn
from automem.vocabulary import OPERATIONS
from specialist.select.entries import Note


@dataclass(slots=True, eq=False)
class Facts:
    """A phase.

    Attributes:
        step, phase: which one.
        operations: memory operations of the model that were run, refused ones included.
        errors: lines of error that the model was told; those about a game action are no memory work and left out.
        refused: operations that were refused.
        notes: what it wrote, a note for each write that said something new.
        duplicates: writes that said again what the file was told before.
        updates: entries that it replaced with another value.
        deletions: entries that it removed and that nobody wrote again soon after; they had stood for a step or longer.
        finding, empty: searches that found lines, and that found none.
        shown: reads that showed something.
        repeated: reads that had been asked in the same phase already.
        imitated: a reply holds lines that look like results or an observation: it made them up.
        talk: characters of its replies outside operations, white space aside, up to the last one.
        done: LOG was ended with DONE.
        turned: the action that was played is not the one of the step before.
        progress: the first step, from this one on and within the horizon, whose action made progress; None for none.
        left: steps of the trace after this one.
    """

    step: int
    phase: Phase
    operations: int = 0
    errors: int = 0
    refused: int = 0
    notes: list[Note] = field(default_factory=list)
    duplicates: int = 0
    updates: int = 0
    deletions: int = 0
    finding: int = 0
    empty: int = 0
    shown: int = 0
    repeated: int = 0
    imitated: bool = False
    talk: int = 0
    done: bool = False
    turned: bool = False
    progress: int | None = None
    left: int = 0


def own(turn: Turn) -> Iterator[Executed]:
    """The operations that the model wrote itself."""
    return (op for op in turn.ops if not op.by)


def is_read(op: Executed) -> bool:
    """Whether it shows what files hold; so may every operation that a scaffold adds."""
    operation = OPERATIONS.get(op.name)
    return operation is None or (operation.effect == "read" and op.name != "COUNT")


def shows(op: Executed) -> bool:
    """Whether a read showed anything."""
    if op.found is not None:
        return op.found > 0
    return bool(op.result) and not (op.result.startswith("(") and op.result.endswith(" is empty)"))


def said(facts: Facts, turns: Sequence[Turn], enabled: Collection[str] | None) -> None:
    """Fill in what the replies alone tell."""
    asked: set[tuple[str, ...]] = set()
    for turn in turns:
        # An action is taken away before anything is learned, so what was wrong with it does not count.
        facts.errors += sum(facts.phase == "log" or not line.startswith("ACTION") for line in turn.errors)
        spans = set()
        for op in own(turn):
            facts.operations += 1
            facts.refused += not op.ok
            spans.add(op.span)
            if not op.ok or not (is_read(op) or op.name == "COUNT"):
                continue
            asking = (op.name, *op.args)
            facts.repeated += asking in asked
            asked.add(asking)
            facts.shown += is_read(op) and shows(op)
            if op.name == "SEARCH":
                facts.finding += bool(op.found)
                facts.empty += op.found == 0
        facts.talk += _outside(turn.text, sorted(spans))
        facts.imitated = facts.imitated or imitates(turn.text)
    if facts.phase == "log":
        facts.done = parse(turns[-1].text, "log", enabled).done


def _outside(text: str, spans: Sequence[tuple[int, int]]) -> int:
    """Characters before, between, but not after these spans; of all of the text where there are none."""
    edges = [0, *(edge for span in spans for edge in span)] if spans else [0, len(text)]
    return sum(
        len(part) for start, stop in zip(edges[::2], edges[1::2], strict=False) for part in text[start:stop].split()
    )


def imitates(text: str) -> bool:
    """Whether a reply holds a mark of a block that only the agent writes."""
    return ("---" in text or "===" in text) and MADE_BY_THE_AGENT.search(text) is not None
