"""What the default gate decides, and when it stops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from automem.errors import UserError
from meta.gate import GATES, Sequential, make
from meta.gate.look import Look
from meta.settings import GateSettings

ALPHA = 0.05 / 36

courses = st.lists(st.integers(-22, 22).map(lambda steps: steps / 22), min_size=1, max_size=60)
gates = st.builds(
    Sequential, batch=st.just(4), most=st.integers(4, 48), smallest_gain=st.sampled_from([0.0, 0.02, 0.1])
)


def played(gain: float, spread: float, seed: int = 0, count: int = 80) -> list[float]:
    drawn = np.random.default_rng(seed).normal(gain, spread, count)
    return [float(d) for d in np.round(22 * np.clip(drawn, -1, 1)) / 22]


def course(gate: Sequential, differences: list[float], alpha: float = ALPHA) -> list[Look]:
    """All looks up to the decision."""
    looks = []
    for seeds in range(gate.batch, gate.most + gate.batch, gate.batch):
        looks.append(gate.judge(differences[: min(seeds, gate.most)], alpha))
        if looks[-1].decision != "continue":
            break
    return looks


def test_a_large_gain_is_accepted_before_all_seeds_are_played() -> None:
    looks = course(Sequential(most=80), played(0.25, 0.15))
    assert looks[-1].decision == "accepted"
    assert looks[-1].seeds < 80
    assert looks[-1].lower is not None and looks[-1].lower > 0
    assert all(look.decision == "continue" and look.lower is not None and look.lower <= 0 for look in looks[:-1])


def test_a_loss_is_rejected_early_and_the_reason_names_what_is_worth_having() -> None:
    last = course(Sequential(most=800), played(-0.2, 0.15))[-1]
    assert last.decision == "rejected"
    assert last.seeds <= 48
    assert last.upper is not None and last.upper < 0.02
    assert "+2.0 points" in last.why


def test_no_gain_is_given_up_early_and_the_reason_says_what_it_would_have_taken() -> None:
    alike = course(Sequential(most=80), [0.0] * 80)[-1]
    assert (alike.decision, alike.seeds) == ("inconclusive", 16) and "another end" in alike.why
    for differences in (played(0.0, 0.15), [0.01, -0.01] * 40):
        last = course(Sequential(most=80), differences)[-1]
        assert last.decision == "inconclusive"
        assert last.seeds < 48
        assert f"the other {80 - last.seeds} would have to average +" in last.why


def test_a_gain_that_would_take_more_seeds_is_inconclusive_at_the_last_seed() -> None:
    wide = [0.27, -0.07] * 40
    last = course(Sequential(most=80), wide)[-1]
    assert (last.decision, last.seeds) == ("inconclusive", 80)
    assert "no seeds are left" in last.why
    assert course(Sequential(most=160), wide + wide)[-1].decision == "accepted"


def test_more_error_to_spend_accepts_sooner() -> None:
    differences = played(0.2, 0.15)
    assert (
        course(Sequential(most=80), differences, 0.05)[-1].seeds
        < course(Sequential(most=80), differences, 1e-4)[-1].seeds
    )


@given(gates, courses, st.sampled_from([0.2, 0.05, ALPHA]))
@settings(deadline=None, max_examples=60)
def test_decisions_follow_from_the_bounds(gate: Sequential, differences: list[float], alpha: float) -> None:
    look = gate.judge(differences, alpha)
    assert look.seeds == len(differences)
    assert look.mean == pytest.approx(np.mean(differences))
    assert look.lower is not None and look.upper is not None
    assert (look.decision == "accepted") == (look.lower > 0)
    if look.decision != "accepted":
        assert (look.decision == "rejected") == (look.upper < gate.smallest_gain)
    if len(differences) >= gate.most:
        assert look.decision != "continue"


@given(gates, courses, st.sampled_from([0.2, 0.05, ALPHA]))
@settings(deadline=None, max_examples=60)
def test_nothing_is_given_up_that_a_course_at_the_upper_bound_would_save(
    gate: Sequential, differences: list[float], alpha: float
) -> None:
    look = gate.judge(differences, alpha)
    left = gate.most - len(differences)
    if look.decision != "inconclusive" or left <= 0:
        return
    assert look.upper is not None
    assert gate.judge([*differences, *[look.upper] * left], alpha).decision != "accepted"


@given(st.integers(0, 200), st.sampled_from([-0.1, 0.0, 0.1, 0.2]), st.sampled_from([3, 8]))
@settings(deadline=None, max_examples=20)
def test_a_course_ends_as_look_after_look_would(seed: int, gain: float, batch: int) -> None:
    gate, differences = Sequential(batch=batch, most=40), played(gain, 0.15, seed, 40)
    last = course(gate, differences, 0.05)[-1]
    assert gate.course(np.array(differences), 0.05) == (last.decision, last.seeds)


def test_ends_missed_by_a_rounding_are_taken_for_the_ends() -> None:
    assert Sequential(most=80).judge([1 + 1e-12] * 8, 0.05).seeds == 8


@pytest.mark.parametrize("differences", [[], [0.1, 1.5], [0.1, float("nan")], [float("-inf")]])
def test_what_is_no_difference_of_progressions_is_refused(differences: list[float]) -> None:
    with pytest.raises(ValueError, match="each in"):
        Sequential(most=80).judge(differences, 0.05)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, float("nan")])
def test_an_alpha_that_is_none_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        Sequential(most=80).judge([0.1], alpha)


@pytest.mark.parametrize(
    ("options", "named"),
    [({"batch": 0}, "batch"), ({"batch": 9, "most": 8}, "most"), ({"smallest_gain": 2.0}, "smallest_gain")],
)
def test_settings_that_cannot_be_are_named(options: dict[str, float], named: str) -> None:
    with pytest.raises(UserError, match=named):
        Sequential(**options)  # type: ignore[arg-type]


def test_settings_make_their_gate() -> None:
    assert make(GateSettings(batch=5, most=50, smallest_gain=0.03)) == Sequential(5, 50, 0.03)
    paper = make(GateSettings(kind="paper", most=12))
    assert (paper.batch, paper.most) == (12, 12)
    assert set(GATES) == {"sequential", "paper"}


def test_with_a_margin_play_that_is_as_good_is_accepted_and_play_that_is_worse_by_more_is_not() -> None:
    equal = course(Sequential(most=160, margin=0.05), [0.0] * 160, 0.01)[-1]
    assert equal.decision == "accepted" and "above -5.0 points" in equal.why
    assert equal.lower is not None and -0.05 < equal.lower < 0
    worse = course(Sequential(most=160, margin=0.05), played(-0.2, 0.15, count=160), 0.01)[-1]
    assert worse.decision in ("rejected", "inconclusive") and "-5.0 points" in worse.why
    assert course(Sequential(most=160), [0.0] * 160, 0.01)[-1].decision == "inconclusive"


def test_a_margin_keeps_its_error() -> None:
    """Of candidates that are worse by just the margin, no more are accepted than the error allows."""
    rng, gate = np.random.default_rng(3), Sequential(batch=10, most=60, margin=0.1)
    accepted = 0
    for _ in range(400):
        accepted += gate.course(np.clip(rng.normal(-0.1, 0.15, 60), -1, 1), 0.05)[0] == "accepted"
    assert accepted <= 400 * 0.05 + 3 * (400 * 0.05 * 0.95) ** 0.5
