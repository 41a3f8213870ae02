"""Where to look for what has not been found yet."""

from __future__ import annotations

import numpy as np

from automem.models.scripted.crafter.belief import Belief
from automem.models.scripted.crafter.ground import CENTRE, NEVER, REACH, SIDE
from automem.models.scripted.crafter.rules import ANY, BIT, EDGE
from automem.models.scripted.crafter.rules import REACH as SIGHT
from automem.models.scripted.crafter.steps import ground_of, walk

_ROCK = sum(BIT[m] for m in ("stone", "path", "coal", "iron", "diamond", "lava"))
_MEADOW = BIT["grass"] | BIT["tree"]
_LIVES_IN = dict.fromkeys(("stone", "coal", "iron", "diamond"), _ROCK) | {"cow": _MEADOW, "tree": _MEADOW}
"""Kind -> materials among which it is found."""


def explore(belief: Belief, sought: str = "") -> str | None:
    """Walk to where most of what was never seen comes into view for the way; None when nothing is left.

    `sought` is the kind that is looked for: land of the sort in which it lies is preferred.
    """
    ground = ground_of(belief)
    bits = np.array(ground.bits, np.int32).reshape(SIDE, SIDE)
    gain = _in_view(bits == ANY).astype(np.float64)
    lives_in = _LIVES_IN.get(sought)
    if lives_in:
        known = (bits & ANY != ANY) & (bits != EDGE)
        fitting = known & ((bits & ~lives_in) == 0)
        gain *= 0.4 + 1.6 * _in_view(fitting) / np.maximum(1, _in_view(known))
    far = np.array(ground.far, np.float64).reshape(SIDE, SIDE)
    score = np.where(far < NEVER, gain / (far + 10.0), -1.0)
    if belief.facing:
        # Keep going rather than turn back.
        fx, fy = belief.facing
        away = np.arange(SIDE) - REACH - 1
        along = away[:, None] * fx + away[None, :] * fy
        score *= 1 + 0.5 * along / np.maximum(1, np.abs(away)[:, None] + np.abs(away)[None, :])
    score.flat[CENTRE] = -1.0
    best = int(score.argmax())
    if score.flat[best] <= 0:
        return None
    return walk(belief, ground.step_to(*ground.cell(best)))


def _in_view(cells: np.ndarray) -> np.ndarray:
    """For each cell, how many of `cells` (bool, same shape) are in view from it."""
    rx, ry = SIGHT
    width, height = 2 * rx + 1, 2 * ry + 1
    total = np.zeros((SIDE + width, SIDE + height), np.int32)
    total[rx + 1 : rx + 1 + SIDE, ry + 1 : ry + 1 + SIDE] = cells
    total = total.cumsum(0).cumsum(1)
    return total[width:, height:] - total[:-width, height:] - total[width:, :-height] + total[:-width, :-height]
