"""Choosing one of several kinds by name: those that come with AutoMem, and those of other packages."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import TypeVar

from automem.errors import UserError

Maker = TypeVar("Maker")


def kinds(ours: Mapping[str, Maker], group: str) -> tuple[str, ...]:
    """Every name that can be chosen: ours, then the entry points of `group`."""
    return (*ours, *(entry.name for entry in entry_points(group=group)))


def chosen(kind: str, ours: Mapping[str, Maker], group: str, what: str) -> Maker:
    """What makes the kind of this name; an entry point is loaded only when it is chosen.

    Args:
        kind: the name.
        ours: what comes with AutoMem, by name.
        group: of entry points.
        what: how people call one of them, e.g. "reviewer".

    Raises `UserError` when there is none of this name.
    """
    if kind in ours:
        return ours[kind]
    for entry in entry_points(group=group):
        if entry.name == kind:
            return entry.load()
    raise UserError(f"no {what} {kind!r}; there are {', '.join(kinds(ours, group))}")
