"""How a loop's error is shared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta.gate.errors import ErrorBudget

ended = st.sampled_from(["accepted", "rejected", "inconclusive", "failed", "invalid"])


@st.composite
def loops(draw: st.DrawFn) -> tuple[ErrorBudget, list[list[str]]]:
    budget = ErrorBudget(draw(st.sampled_from([0.05, 0.2])), draw(st.integers(1, 8)), draw(st.integers(1, 6)))
    outcomes = st.lists(ended, max_size=budget.candidates)
    return budget, draw(st.lists(outcomes, min_size=budget.revisions, max_size=budget.revisions))


@given(loops())
def test_the_shares_of_candidates_that_were_not_accepted_never_sum_to_more_than_the_total(
    loop: tuple[ErrorBudget, list[list[str]]],
) -> None:
    budget, outcomes = loop
    spent = 0.0
    for revision, ends in enumerate(outcomes, start=1):
        alpha = budget.alpha_of(revision, outcomes[: revision - 1])
        assert alpha > 0
        # Even if every candidate that may come were no better, and one of this revision the first to be accepted.
        assert spent + budget.candidates * alpha <= budget.total * (1 + 1e-9)
        spent += alpha * sum(end != "accepted" for end in ends)


def test_a_loop_that_accepts_nothing_uses_a_third_of_what_is_left_and_at_last_all_of_it() -> None:
    budget, past = ErrorBudget(0.06, 4, 2), [["rejected"] * 2, ["inconclusive"] * 2, ["failed"] * 2]
    shares = [2 * budget.alpha_of(r, past[: r - 1]) for r in (1, 2, 3, 4)]
    left = [0.06, 0.04, 0.08 / 3, 0.04 / 3]
    assert shares == pytest.approx([left[0] / 3, left[1] / 3, left[2] / 2, left[3]])
    assert sum(shares) == pytest.approx(0.06)


def test_what_was_not_judged_and_what_was_accepted_give_their_shares_back() -> None:
    budget = ErrorBudget(0.06, 3, 2)
    assert budget.alpha_of(1, []) == pytest.approx(0.01)
    # Two revisions of two candidates are left.
    assert budget.alpha_of(2, [["accepted"]]) == pytest.approx(0.06 / 4)
    assert budget.alpha_of(2, [["rejected", "accepted"]]) == pytest.approx(0.05 / 4)
    assert budget.alpha_of(2, [["rejected"]]) == pytest.approx(0.05 / 4)
    assert budget.alpha_of(3, [["accepted"], []]) == pytest.approx(0.06 / 2)


@pytest.mark.parametrize(
    ("revision", "past"), [(0, []), (4, [[], [], []]), (2, []), (2, [[], []]), (2, [["rejected"] * 3])]
)
def test_what_does_not_fit_the_loop_is_refused(revision: int, past: list[list[str]]) -> None:
    with pytest.raises(ValueError, match=r"revision \d"):
        ErrorBudget(0.06, 3, 2).alpha_of(revision, past)
