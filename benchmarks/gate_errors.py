"""What the gates of loop 1 accept: revisions that change nothing, and revisions that gain something.

    python benchmarks/gate_errors.py [--game crafter|minihack|nethack] [--spread 15] [--simulations 2000]
                                     [--revisions 6 --attempts 3 --continuations 1] [--most 80,160,320] [--fresh]

No game is played: progressions are drawn. A seed is easier or harder for everybody, and each version has luck of its
own on it. In Crafter a progression comes in steps of 1/22, and paired differences have the standard deviation
`--spread`, in points; the paired intervals of real runs in the README come to 11 to 17. In MiniHack it is the mean of
eight tasks that are won or lost; in NetHack it is small and very skewed.

A loop tries revision after revision, each in attempts with continuations until one is accepted. All candidates of a
parent are held against the same episodes of it, on the same seeds; `--fresh` takes new seeds for each revision. Power
is that of one candidate, tested as the first of such a loop. An episode of the table is one of each task.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from automem.statistics import TIE
from meta.gate import Paper, Sequential
from meta.gate.errors import ErrorBudget

GAINS = (0.02, 0.05, 0.08, 0.10, 0.13, 0.20)

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int_]


@dataclass(frozen=True)
class Game:
    """How progressions are drawn.

    Attributes:
        seeds: what a seed is like, for an array of them.
        play: what versions with a gain reach on seeds, by their luck.
    """

    seeds: Callable[[np.random.Generator, tuple[int, int]], Array]
    play: Callable[[np.random.Generator, Array, float], Array]


def crafter(spread: float) -> Game:
    def play(rng: np.random.Generator, seeds: Array, gain: float) -> Array:
        reached = seeds + gain + rng.normal(0, spread / np.sqrt(2), seeds.shape)
        return np.asarray(np.round(22 * np.clip(reached, 0, 1)) / 22)

    return Game(lambda rng, shape: rng.normal(0.5, 0.12, shape), play)


def minihack() -> Game:
    chances = np.linspace(0.1, 0.7, 8)

    def play(rng: np.random.Generator, seeds: Array, gain: float) -> Array:
        won = rng.random((*seeds.shape, 8)) < chances + gain + seeds[..., None]
        return np.asarray(won.mean(axis=-1))

    return Game(lambda rng, shape: rng.uniform(-0.1, 0.1, shape), play)


def nethack() -> Game:
    def play(rng: np.random.Generator, seeds: Array, gain: float) -> Array:
        return np.minimum((0.02 + gain) * seeds * rng.lognormal(-0.32, 0.8, seeds.shape), 1)

    return Game(lambda rng, shape: rng.gamma(2, 0.5, shape), play)


def judged(gate: Sequential | Paper, differences: Array, alpha: Array) -> tuple[Flags, Counts]:
    """Whether each candidate is accepted, and after how many seeds that is known.

    Args:
        gate: decides.
        differences: shape (candidates, at least `gate.most`).
        alpha: one for each candidate.
    """
    if isinstance(gate, Paper):
        return differences[:, : gate.seeds].mean(axis=1) > TIE, np.full(len(differences), gate.seeds)
    courses = [gate.course(values[: gate.most], share) for values, share in zip(differences, alpha, strict=True)]
    return np.array([c[0] == "accepted" for c in courses]), np.array([c[1] for c in courses])


@dataclass(frozen=True)
class Loops:
    """Loops in which no candidate changes anything: for each of them,

    Attributes:
        first: whether its first candidate was accepted.
        revision: whether its first revision accepted one.
        ever: whether it accepted any.
        candidates: how many were played.
        seeds: episodes of all candidates.
        episodes: those, and the ones of parents that no candidate had played before.
    """

    first: Flags
    revision: Flags
    ever: Flags
    candidates: Counts
    seeds: Counts
    episodes: Counts


def null_loops(
    rng: np.random.Generator, gate: Sequential | Paper, game: Game, budget: ErrorBudget, count: int, fresh: bool
) -> Loops:
    """Play `count` loops side by side."""
    share = functools.cache(budget.alpha_of)
    shape = (count, gate.most)
    places = game.seeds(rng, shape)
    parent, known = game.play(rng, places, 0.0), np.zeros(count, dtype=int)
    first = revision = np.zeros(count, dtype=bool)
    ever, made, seeds, more = np.zeros(count, dtype=bool), *np.zeros((3, count), dtype=int)
    past: list[tuple[tuple[str, ...], ...]] = [() for _ in range(count)]
    for number in range(1, budget.revisions + 1):
        if fresh and number > 1:
            places = game.seeds(rng, shape)
            parent, known = game.play(rng, places, 0.0), np.zeros(count, dtype=int)
        alpha = np.array([share(number, before) for before in past])
        outcomes: list[list[str]] = [[] for _ in range(count)]
        trying = np.arange(count)
        for candidate in range(budget.candidates):
            played = game.play(rng, places, 0.0)
            accepted, used = judged(gate, (played - parent)[trying], alpha[trying])
            made[trying] += 1
            seeds[trying] += used
            more[trying] += np.maximum(used - known[trying], 0)
            known[trying] = np.maximum(used, known[trying])
            for row, took in zip(trying, accepted, strict=True):
                outcomes[row].append("accepted" if took else "rejected")
            won = trying[accepted]
            parent[won], known[won], ever[won] = played[won], used[accepted], True
            if number == 1 and candidate == 0:
                first = ever.copy()
            trying = trying[~accepted]
            if not len(trying):
                break
        if number == 1:
            revision = ever.copy()
        past = [(*before, tuple(now)) for before, now in zip(past, outcomes, strict=True)]
    return Loops(first, revision, ever, made, seeds, seeds + more)


def power(
    rng: np.random.Generator, gate: Sequential | Paper, game: Game, alpha: float, gain: float, count: int
) -> tuple[float, float]:
    """The chance that a candidate with a gain is accepted, and the mean of the seeds that it plays."""
    places = game.seeds(rng, (count, gate.most))
    differences = game.play(rng, places, gain) - game.play(rng, places, 0.0)
    accepted, seeds = judged(gate, differences, np.full(count, alpha))
    return float(accepted.mean()), float(seeds.mean())


def null_table(sequential: Loops, paper: Loops, budget: ErrorBudget) -> str:
    rows = [
        ("a candidate is accepted", *(_share(loops.first) for loops in (sequential, paper))),
        (f"a revision of {budget.candidates} accepts one", *(_share(loops.revision) for loops in (sequential, paper))),
        (
            f"a loop of {budget.revisions * budget.candidates} accepts any",
            *(_share(loops.ever) for loops in (sequential, paper)),
        ),
        (
            "seeds a candidate, mean",
            *(f"{loops.seeds.sum() / loops.candidates.sum():.1f}" for loops in (sequential, paper)),
        ),
        (
            "episodes a loop, parents' included, mean",
            *(f"{loops.episodes.mean():,.0f}" for loops in (sequential, paper)),
        ),
    ]
    return _markdown(("no revision has an effect", "sequential", "paper"), rows)


def power_table(rng: np.random.Generator, gates: list[Sequential | Paper], game: Game, alpha: float, count: int) -> str:
    head = ["true gain"]
    for gate in gates:
        head += [f"{type(gate).__name__.lower()}, {gate.most} seeds: accepted", "seeds, mean"]
    rows = []
    for gain in GAINS:
        row = [f"{100 * gain:.0f} points"]
        for gate in gates:
            accepted, seeds = power(rng, gate, game, alpha, gain, count)
            row += [f"{accepted:.0%}".replace("%", " %"), f"{seeds:.0f}"]
        rows.append(tuple(row))
    return _markdown(tuple(head), rows)


def _share(flags: Flags) -> str:
    return f"{100 * flags.mean():.2f} % ({flags.sum():,} of {len(flags):,})"


def _markdown(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", choices=("crafter", "minihack", "nethack"), default="crafter")
    parser.add_argument("--spread", type=float, default=15, help="of Crafter's paired differences, in points")
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--revisions", type=int, default=6)
    parser.add_argument("--attempts", type=int, default=3)
    parser.add_argument("--continuations", type=int, default=1)
    parser.add_argument("--error", type=float, default=0.05, help="budget of the whole loop")
    parser.add_argument("--most", default="160,80,320", help="seeds that `sequential` plays at most; loops: the first")
    parser.add_argument("--paper-seeds", type=int, default=10)
    parser.add_argument("--fresh", action="store_true", help="new seeds for each revision")
    parser.add_argument("--no-power", action="store_true")
    parser.add_argument("--random", type=int, default=1, help="seed of the draws")
    chosen = parser.parse_args()
    began = time.perf_counter()
    rng = np.random.default_rng(chosen.random)
    game = {"crafter": lambda: crafter(chosen.spread / 100), "minihack": minihack, "nethack": nethack}[chosen.game]()
    budget = ErrorBudget(chosen.error, chosen.revisions, chosen.attempts * (1 + chosen.continuations))
    sequentials = [Sequential(most=int(most)) for most in chosen.most.split(",")]
    paper = Paper(chosen.paper_seeds)

    places = game.seeds(rng, (chosen.simulations, 50))
    spread = (game.play(rng, places, 0.0) - game.play(rng, places, 0.0)).std()
    alpha = budget.alpha_of(1, [])
    print(
        f"{chosen.game}, paired differences of {100 * spread:.1f} points (standard deviation); loops of "
        f"{budget.revisions} revisions, {chosen.attempts} attempts each, {chosen.continuations} continuation(s); "
        f"first share of the error budget: {alpha:.5f}\n"
    )
    loops = [null_loops(rng, gate, game, budget, chosen.simulations, chosen.fresh) for gate in (sequentials[0], paper)]
    print(null_table(loops[0], loops[1], budget), "\n")
    if not chosen.no_power:
        print(power_table(rng, [*sequentials, paper], game, alpha, chosen.simulations), "\n")
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
