"""Means and how sure they are: standard errors, 95 % intervals, and means over independent parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import ndtri, stdtrit

CONFIDENCE = 0.95

TIE = 1e-9
"""Progressions that differ by no more are equal."""

_TAIL = (1 + CONFIDENCE) / 2


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, as well as it is known.

    Attributes:
        mean: it.
        error: its standard error; None where too few values were measured.
        interval: its 95 % interval; None where there is no error.
    """

    mean: float
    error: float | None
    interval: tuple[float, float] | None


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean of at least one value; it does not depend on their order."""
    return math.fsum(values) / len(values)


def standard_error(values: Sequence[float]) -> float | None:
    """Of the mean, from the sample's own spread (n - 1). None for fewer than two values."""
    if len(values) < 2:
        return None
    middle = mean(values)
    return math.sqrt(math.fsum((v - middle) ** 2 for v in values) / (len(values) - 1) / len(values))


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of at least one value, with Student's t interval."""
    middle, error = mean(values), standard_error(values)
    reach = None if error is None else float(stdtrit(len(values) - 1, _TAIL)) * error
    return Estimate(middle, error, _around(middle, reach))


def combined(parts: Sequence[Estimate]) -> Estimate:
    """The mean of the means of at least one part.

    Parts are taken for independent, and the interval is the normal one. One part alone stays as it is; a part
    without an error leaves the whole without one.
    """
    if len(parts) == 1:
        return parts[0]
    middle = mean([part.mean for part in parts])
    known = [part.error for part in parts if part.error is not None]
    if len(known) < len(parts):
        return Estimate(middle, None, None)
    error = math.sqrt(math.fsum(e * e for e in known)) / len(parts)
    return Estimate(middle, error, _around(middle, float(ndtri(_TAIL)) * error))


def _around(middle: float, reach: float | None) -> tuple[float, float] | None:
    return None if reach is None else (middle - reach, middle + reach)


def won_tied_lost(differences: Sequence[float]) -> tuple[int, int, int]:
    """How many differences are above zero, zero as far as `TIE` goes, and below."""
    won, lost = sum(d > TIE for d in differences), sum(d < -TIE for d in differences)
    return won, len(differences) - won - lost, lost
