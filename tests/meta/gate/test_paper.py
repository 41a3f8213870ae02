"""The paper's gate."""

from __future__ import annotations

import pytest

from automem.errors import UserError
from meta.gate import Paper


@pytest.mark.parametrize(
    ("differences", "decision"),
    [
        ([0.1, -0.05], "accepted"),
        ([0.05, -0.1], "rejected"),
        ([0.0, 0.0], "rejected"),
        ([0.1 + 0.2, -0.3], "rejected"),  # equal but for a rounding
    ],
)
def test_a_mean_that_rises_is_accepted(differences: list[float], decision: str) -> None:
    look = Paper(2).judge(differences, 0.05)
    assert (look.decision, look.lower, look.upper, look.seeds) == (decision, None, None, 2)


def test_it_says_nothing_before_all_seeds_are_played() -> None:
    gate = Paper()
    assert (gate.batch, gate.most) == (10, 10)
    assert gate.judge([0.5] * 9, 0.05).decision == "continue"
    assert "+50.0 points" in gate.judge([0.5] * 10, 0.05).why


def test_nothing_played_and_no_seeds_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Paper().judge([], 0.05)
    with pytest.raises(UserError, match="seeds"):
        Paper(0)
