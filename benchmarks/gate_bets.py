"""How many seeds a gate's lower bound needs, by the largest bet that it may make, beside other bounds of `ville`.

    python benchmarks/gate_bets.py [--simulations 1000]

Progressions are drawn (`benchmarks/gate_errors.py`): Crafter's, MiniHack's mean of eight tasks, and one task that is
won or lost. Each method holds at every seed, for any numbers in [-1, 1]; the table says how often it finds the gain
in time, at the error that a loop of 24 candidates leaves to each. The floor is the number of seeds under which no such
method can find a gain, whatever the spread (`meta.gate.betting`).
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from ville import EmpiricalBernsteinCS

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.gate_errors import Array, Flags, Game, crafter, minihack
from meta.gate import betting

ALPHA = 0.05 / 24

SEEDS = 320


def bets(largest: float) -> Callable[[Array], Flags]:
    return lambda values: betting.log_wealth(values, 0.0, largest) >= -math.log(ALPHA)


def bernstein(values: Array) -> Flags:
    """It has two sides: twice the error leaves `ALPHA` for the lower bound."""
    return np.asarray(EmpiricalBernsteinCS((-1, 1), 2 * ALPHA).update(values).lower_ > 0)


METHODS: dict[str, Callable[[Array], Flags]] = {
    "largest bet 0.5, ville's own": bets(0.5),
    "largest bet 0.9": bets(0.9),
    f"largest bet {betting.LARGEST}, the gate's": bets(betting.LARGEST),
    "largest bet 0.99": bets(0.99),
    "empirical Bernstein": bernstein,
}


def one_task() -> Game:
    return Game(
        lambda rng, shape: rng.uniform(0.2, 0.4, shape),
        lambda rng, seeds, gain: (rng.random(seeds.shape) < seeds + gain).astype(float),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--random", type=int, default=1, help="seed of the draws")
    chosen = parser.parse_args()
    rng = np.random.default_rng(chosen.random)
    cases = [("Crafter", crafter(0.15), gain) for gain in (0.05, 0.08, 0.13)]
    cases += [("MiniHack, 8 tasks", minihack(), 0.1), ("one task", one_task(), 0.2)]
    print("| progressions | gain | method | found in 80 seeds | in 160 | in 320 | floor |\n" + "| --- " * 7 + "|")
    for game, draws, gain in cases:
        places = draws.seeds(rng, (chosen.simulations, SEEDS))
        differences = draws.play(rng, places, gain) - draws.play(rng, places, 0.0)
        floor = math.ceil(-math.log(ALPHA) / math.log1p(gain))
        for name, method in METHODS.items():
            found = np.maximum.accumulate([method(values) for values in differences], axis=1).mean(axis=0)
            shares = " | ".join(f"{100 * found[seeds - 1]:.0f} %" for seeds in (80, 160, 320))
            print(f"| {game}, {100 * differences.std():.0f} points | {100 * gain:.0f} | {name} | {shares} | {floor} |")


if __name__ == "__main__":
    main()
