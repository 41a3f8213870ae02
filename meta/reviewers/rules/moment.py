"""How one step looks as one short line, in the fields that the game at hand can fill in."""

from __future__ import annotations

import re
from collections.abc import Mapping

from automem.schema import ENTRY_FIELDS
from meta.reviewers.rules.findings import WHOLE, FieldFigures, FileFigures, Measured
from meta.reviewers.rules.thresholds import thresholds


def long_fields(file: FileFigures) -> list[str]:
    """Fields of its entry that are long and mostly say again what was said, the longest first."""
    limits = thresholds()["line"]
    found = [(f.chars, name) for name, f in file.fields.items() if _wordy(f, limits)]
    return [name for _, name in sorted(found, reverse=True)]


def _wordy(figures: FieldFigures, limits: Mapping[str, float]) -> bool:
    if figures.chars >= limits["always_long"]:
        return True
    return figures.chars >= limits["long"] and figures.repeated >= limits["repeated"]


def can_fill(name: str, measured: Measured) -> bool:
    """Whether entries of this game may name a field: the traces show what it is about, and no other game owns it."""
    owners = re.search(r"\(([^()]*)\)$", ENTRY_FIELDS.get(name, ""))
    games = [owner.strip().lower() for owner in owners[1].split(",")] if owners else [measured.game]
    return measured.game in games and measured.shows.get(name, True)


def entry(measured: Measured, file: FileFigures) -> str:
    """An entry for one step.

    It has the step, the place and what else the observations show; of the fields that the file's own entry has, the
    short ones. A field that this game cannot fill in would leave the whole line unwritten, so it is offered only
    where the traces show what it is about.
    """
    dropped = {WHOLE, *long_fields(file)}
    planned = re.findall(r"\{(\w+)\}", file.planned.entry) if file.planned is not None else []
    own, short_of = {*planned, *file.fields}, thresholds()["short_of"]
    parts = []
    for name, text in thresholds()["entry"].items():
        wanted = name not in short_of or not own.isdisjoint((name, short_of[name]))
        if wanted and name not in dropped and can_fill(name, measured):
            parts.append(text)
    return "".join(parts)


def lasting(measured: Measured) -> str:
    """An entry for what stays as it is for many steps; empty where the game has nothing of the kind."""
    return "; ".join(text for name, text in thresholds()["lasting"].items() if can_fill(name, measured))
