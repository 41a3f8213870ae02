"""A difference put into words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mark = Literal["+", "-", "~", " "]
"""Gained, lost, changed, or neither."""


@dataclass(frozen=True, slots=True)
class Said:
    """One difference in words.

    Attributes:
        mark: gained, lost, changed, or neither.
        text: one line; what scaffolds say of themselves in it is as they wrote it.
    """

    mark: Mark
    text: str


@dataclass(frozen=True, slots=True)
class Section:
    """Differences of one kind."""

    title: str
    said: tuple[Said, ...]
