"""Whole loops with drawn progressions: what `benchmarks/gate_errors.py` reports, on a small scale."""

from __future__ import annotations

import numpy as np

from benchmarks import gate_errors
from meta.gate import Paper, Sequential
from meta.gate.errors import ErrorBudget


def test_loops_without_any_effect_accept_little_with_bounds_and_much_without() -> None:
    budget, game = ErrorBudget(0.2, 2, 3), gate_errors.minihack()
    ever = {}
    for gate in (Sequential(most=40), Paper(10)):
        loops = gate_errors.null_loops(np.random.default_rng(3), gate, game, budget, 150, fresh=False)
        ever[type(gate)] = loops.ever.mean()
        assert loops.candidates.max() <= 6
        assert np.all(loops.episodes >= loops.seeds)
    assert ever[Sequential] <= 0.2
    assert ever[Paper] > 0.6


def test_a_gain_that_is_large_enough_is_found() -> None:
    accepted, seeds = gate_errors.power(
        np.random.default_rng(4), Sequential(most=80), gate_errors.crafter(0.15), 0.05 / 36, 0.2, 50
    )
    assert accepted > 0.95
    assert seeds < 60
