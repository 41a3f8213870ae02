"""The lineage as a tree: the first version, what was made from it, what was made from that, and what came of each."""

from __future__ import annotations

from dataclasses import dataclass

from meta.evidence import Attempt
from meta.page.attempts import OUTCOMES, anchor, gain
from meta.page.history import History


@dataclass(frozen=True, slots=True)
class Branch:
    """An attempt in the tree.

    Attributes:
        attempt: it.
        anchor: id of its section.
        word: how it ended.
        gain: what the gate saw last, in points.
        children: attempts that were made from it.
    """

    attempt: Attempt
    anchor: str
    word: str
    gain: str
    children: tuple[Branch, ...]


def tree(history: History) -> tuple[Branch, ...]:
    """What was made from the first version."""
    by_parent: dict[str, list[Attempt]] = {}
    for attempt in history.attempts:
        by_parent.setdefault(attempt.parent, []).append(attempt)
    return _below(by_parent, history.versions[0].identity)


def _below(by_parent: dict[str, list[Attempt]], identity: str) -> tuple[Branch, ...]:
    # Each version's children are taken once, so that no attempt can be its own ancestor.
    found = by_parent.pop(identity, [])
    return tuple(
        Branch(
            attempt,
            anchor(attempt.number),
            OUTCOMES[attempt.outcome],
            gain(attempt),
            _below(by_parent, attempt.identity) if attempt.outcome == "accepted" else (),
        )
        for attempt in found
    )
