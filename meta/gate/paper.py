"""The gate of the AutoMem paper: the mean over a fixed list of seeds must rise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from automem.errors import UserError
from automem.statistics import TIE, mean
from meta.gate.look import Look
from meta.points import points


@dataclass(frozen=True)
class Paper:
    """Plays all its seeds and accepts whatever has the higher mean (arXiv 2607.01224).

    It knows no error: with a few seeds, half of all candidates that change nothing rise by chance
    (`benchmarks/gate_errors.py`). Here to compare with.

    Attributes:
        seeds: how many are played.
    """

    seeds: int = 10

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise UserError(f"gate: seeds must be at least 1, not {self.seeds}")

    @property
    def batch(self) -> int:
        """All seeds are played before the one look."""
        return self.seeds

    @property
    def most(self) -> int:
        """As `batch`."""
        return self.seeds

    def judge(self, differences: Sequence[float], alpha: float) -> Look:
        """As `meta.gate.Gate`, without bounds; `alpha` means nothing to it. Raises ValueError for no difference."""
        if not differences:
            raise ValueError("a gate judges at least one difference")
        seeds, change = len(differences), mean(differences)
        said = f"After {seeds} seeds the mean changed by {points(change)}"
        if seeds < self.seeds:
            return Look(seeds, change, None, None, "continue", f"{said}; {self.seeds} are to be played.")
        if change > TIE:
            return Look(seeds, change, None, None, "accepted", f"{said}: it rose.")
        return Look(seeds, change, None, None, "rejected", f"{said}: it did not rise.")
