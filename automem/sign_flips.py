"""Whether a paired difference could be chance, without a word about how progressions are distributed.

If it made no difference which of two agents played an episode, each difference could as well have had the other sign.
So the mean is held against those of all choices of signs (Fisher's randomisation test). Five pairs that all went one
way leave 2 in 32 choices, 6 %, however equal the five are; Student's interval has no width there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import permutation_test

from automem.statistics import TIE

CHOICES = 99_999
"""Choices of signs that are drawn where there are more; all are counted otherwise, up to 16 differences."""

_AT_ONCE = 4096
"""Choices held in memory together."""


def p_value(differences: Sequence[float]) -> float:
    """How often the sum of differences of random signs is at least as far from 0: two-sided, in (0, 1].

    Args:
        differences: B minus A, in any unit, one for each pair; weighted where pairs do not count alike.
    """
    unequal = sorted(d for d in differences if abs(d) > TIE)
    if len(unequal) < 2:
        return 1.0
    found = permutation_test(
        (np.array(unequal),),
        lambda signed, axis: signed.sum(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=CHOICES,
        batch=_AT_ONCE,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)
