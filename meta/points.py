"""Gains in progression as people read them: points of a hundred, with their bounds."""

from __future__ import annotations


def points(gain: float) -> str:
    """A gain, a share of 1, in points: ``+8.0 points``."""
    return f"{100 * gain:+.1f} points"


def bounded(gain: float, lower: float | None, upper: float | None) -> str:
    """The same with its bounds, if it has any: ``+8.0 points [+1.0, +15.0]``."""
    span = "" if lower is None or upper is None else f" [{100 * lower:+.1f}, {100 * upper:+.1f}]"
    return f"{points(gain)}{span}"
