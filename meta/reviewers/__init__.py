"""Reviewers, one file or folder each, behind `meta.reviewer.Reviewer`.

A new one is a module with a function ``make(settings) -> Reviewer`` and a line in `REVIEWERS`, or an entry
point of the group ``automem.reviewers`` in another package.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points

from automem.errors import UserError
from meta.reviewer import Reviewer
from meta.settings import ReviewerSettings

REVIEWERS = {"rules": "meta.reviewers.rules", "llm": "meta.reviewers.llm", "command": "meta.reviewers.command"}
"""Kind -> module, which is imported when it is chosen only."""

GROUP = "automem.reviewers"


def kinds() -> tuple[str, ...]:
    """Every kind that can be chosen."""
    return (*REVIEWERS, *(entry.name for entry in entry_points(group=GROUP)))


def check(settings: ReviewerSettings) -> None:
    """Whether the settings can make a reviewer; reaches nothing. Raises `UserError`."""
    make(settings)


def make(settings: ReviewerSettings) -> Reviewer:
    """The reviewer that settings describe. Raises `UserError` when there is none, or they do not fit it."""
    return _maker(settings.kind)(settings)


def _maker(kind: str) -> Callable[[ReviewerSettings], Reviewer]:
    if kind in REVIEWERS:
        return import_module(REVIEWERS[kind]).make
    for entry in entry_points(group=GROUP):
        if entry.name == kind:
            return entry.load()
    raise UserError(f"no reviewer {kind!r}; there are {', '.join(kinds())}")
