"""Numbers and seeds as sentences of pages say them."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, word: str) -> str:
    """``1 seed``, ``1,200 seeds``."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def seeds(chosen: Sequence[int]) -> str:
    """``7..9 (3)`` where they follow one another; else the first of them, and how many there are."""
    if len(chosen) > 1 and list(chosen) == list(range(chosen[0], chosen[-1] + 1)):
        return f"{chosen[0]}..{chosen[-1]} ({len(chosen)})"
    listed = ", ".join(map(str, chosen[:6]))
    return f"{listed}, … ({len(chosen)})" if len(chosen) > 6 else listed
