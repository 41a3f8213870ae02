"""How often 95 % intervals of a mean progression hold, and how wide they are, for few episodes of many kinds.

    python benchmarks/interval_coverage.py [--simulations 1000] [--random 1]

No game is played: progressions are drawn from distributions whose mean is known. `tasks` are single tasks, as a suite
plays them: five episodes that are won or lost (MiniHack), five with the levels of NetHack's table, ten with counts of
Crafter's 22 achievements. `games` are MiniHack's eight tasks, and three graded ones; `suites` are three games together.

Methods: BALROG's standard error, taken 1.96 times both ways; Student's t; the same with Clopper and Pearson's
interval where all outcomes are equal; the betting interval of `ville` with its own largest bet and a larger one; and
those of `automem.bench.intervals`. The first two are often read out of tables that give a mean and an error.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from ville import BettingCS

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from automem.bench import intervals
from automem.bench.intervals import Interval

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Array]

GRID = 501
"""Means that the betting intervals are computed on."""

EDGE = 1e-9


@dataclass(frozen=True)
class Task:
    """How the progressions of a task's episodes are drawn.

    Attributes:
        name: of the case.
        episodes: that a suite plays.
        draw: progressions of a given shape.
        mean: of what is drawn.
    """

    name: str
    episodes: int
    draw: Draw
    mean: float


def listed(name: str, episodes: int, values: Sequence[float], chances: Sequence[float]) -> Task:
    return Task(
        name,
        episodes,
        lambda rng, shape: rng.choice(values, shape, p=chances),
        float(np.dot(values, chances)),
    )


def won(chance: float) -> Task:
    return listed(f"won or lost, {100 * chance:g} %", 5, (0, 1), (1 - chance, chance))


def nethack(name: str, chances: dict[str, float]) -> Task:
    table = json.loads(resources.files("games").joinpath("nethack/progression.json").read_text(encoding="utf-8"))
    return listed(f"NetHack, {name}", 5, [table[level] for level in chances], list(chances.values()))


def crafter(name: str, chances: Array) -> Task:
    """Each achievement by itself."""
    every = np.concatenate([chances, np.zeros(22 - len(chances))])
    return Task(
        f"Crafter, {name}", 10, lambda rng, shape: (rng.random((*shape, 22)) < every).mean(-1), float(every.mean())
    )


def crafter_with_deaths(dies: float) -> Task:
    """A good player, 18 achievements with a chance of 0.9, that with chance `dies` ends at one or none."""
    return Task(
        f"Crafter, {100 * dies:g} % die at once",
        10,
        lambda rng, shape: (
            np.where(rng.random(shape) < dies, rng.binomial(1, 0.5, shape), rng.binomial(18, 0.9, shape)) / 22
        ),
        (dies * 0.5 + (1 - dies) * 16.2) / 22,
    )


TASKS = [
    *(won(chance) for chance in (0.05, 0.2, 0.5, 0.9)),
    nethack("mostly nothing", {"Dlvl:1": 0.72, "Dlvl:2": 0.15, "Dlvl:3": 0.08, "Xp:2": 0.05}),
    nethack(
        "rarely far",
        {
            "Dlvl:1": 0.6,
            "Dlvl:2": 0.2,
            "Dlvl:3": 0.1,
            "Dlvl:4": 0.05,
            "Dlvl:6": 0.03,
            "Dlvl:9": 0.015,
            "Dlvl:13": 0.005,
        },
    ),
    nethack(
        "some progress",
        {"Dlvl:2": 0.3, "Dlvl:3": 0.25, "Dlvl:4": 0.2, "Dlvl:5": 0.15, "Dlvl:7": 0.05, "Dlvl:10": 0.03, "Xp:10": 0.02},
    ),
    crafter("wood and little else", np.array([0.9, 0.05])),
    crafter("at random", np.array([0.6, 0.4, 0.3, 0.1, 0.05])),
    crafter("a middling player", np.linspace(1, 0, 22) ** 1.5),
    crafter_with_deaths(0.1),
    crafter_with_deaths(0.3),
]

MINIHACK = {
    "MiniHack, wins in one task": [won(chance) for chance in (0, 0, 0, 0, 0, 0, 0, 0.3)],
    "MiniHack, unequal tasks": [won(chance) for chance in (0, 0, 0.1, 0.2, 0.3, 0.4, 0.8, 1)],
    "MiniHack, 10 % in all": [won(0.1)] * 8,
}

GAMES = {name: (tasks, [5] * 8) for name, tasks in MINIHACK.items()} | {
    "the same, one episode missing": (MINIHACK["MiniHack, 10 % in all"], [5] * 7 + [4]),
    "unequal tasks, 5 to 20 episodes": (MINIHACK["MiniHack, unequal tasks"], [20, 5, 5, 5, 10, 5, 5, 20]),
    "three graded tasks": ([TASKS[5], TASKS[6], TASKS[11]], [5, 5, 5]),
    "the same, 5, 5 and 10 episodes": ([TASKS[5], TASKS[6], TASKS[11]], [5, 5, 10]),
}
"""Tasks, and how many episodes there are of each."""

SUITES = {
    "weak: MiniHack one task, NetHack rarely far, Crafter at random": [
        MINIHACK["MiniHack, wins in one task"],
        [TASKS[5]],
        [TASKS[8]],
    ],
    "strong: MiniHack unequal, NetHack some progress, Crafter dies": [
        MINIHACK["MiniHack, unequal tasks"],
        [TASKS[6]],
        [TASKS[10]],
    ],
}


def around(middle: float, reach: float) -> Interval:
    return max(0.0, middle - reach), min(1.0, middle + reach)


def balrog(values: Array) -> Interval:
    return around(float(values.mean()), 1.96 * float(values.std()) / len(values) ** 0.5)


def student(values: Array) -> Interval:
    reach = float(stdtrit(len(values) - 1, 0.975)) * float(values.std(ddof=1)) / len(values) ** 0.5
    return around(float(values.mean()), reach)


@functools.cache
def gaffke(values: tuple[float, ...]) -> Interval:
    found = intervals.of_task(values)
    assert found is not None
    return found


def ours(values: Array) -> Interval:
    return gaffke(tuple(np.sort(values).tolist()))


def student_unless_equal(values: Array) -> Interval:
    return ours(values) if np.ptp(values) == 0 else student(values)


def betting(largest: float) -> Callable[[Array], Interval]:
    def interval(values: Array) -> Interval:
        found = BettingCS(c=largest, grid=GRID).update(values)
        return float(found.lower_[-1]), float(found.upper_[-1])

    return interval


METHODS: dict[str, Callable[[Array], Interval]] = {
    "BALROG's error × 1.96": balrog,
    "Student": student,
    "Student, or Clopper-Pearson": student_unless_equal,
    "betting, largest bet 0.5": betting(0.5),
    "betting, largest bet 0.95": betting(0.95),
    "Gaffke (`of_task`)": ours,
}


def student_over(parts: Sequence[Array]) -> Interval:
    """As `automem.statistics.combined`: the normal interval, over the errors of tasks."""
    error = sum(values.var(ddof=1) / len(values) for values in parts) ** 0.5 / len(parts)
    return around(float(np.mean([values.mean() for values in parts])), 1.96 * float(error))


def game_of(parts: Sequence[Array]) -> Interval:
    found = intervals.of_game([values.tolist() for values in parts])
    assert found is not None
    return found


def square_and_add(parts: Sequence[Array]) -> Interval:
    """Of the tasks' intervals, as `of_suite` does with those of games."""
    found = intervals.of_suite([[values.tolist()] for values in parts])
    assert found is not None
    return found


def line(name: str, mean: float, method: str, found: Sequence[Interval]) -> str:
    low, high = np.array(found).T
    above, below = (low > mean + EDGE).mean(), (high < mean - EDGE).mean()
    figures = [f"{100 * mean:.1f} %", method, f"{100 * (1 - above - below):.1f} %"]
    figures += [f"{100 * below:.1f} %", f"{100 * above:.1f} %", f"{100 * (high - low).mean():.1f}"]
    return "| " + " | ".join([name, *figures]) + " |"


def tasks_table(rng: np.random.Generator, count: int) -> None:
    for task in TASKS:
        drawn = task.draw(rng, (count, task.episodes))
        for name, method in METHODS.items():
            print(line(f"{task.name}, n = {task.episodes}", task.mean, name, [method(values) for values in drawn]))


def games_table(rng: np.random.Generator, count: int) -> None:
    methods = {"normal, over tasks": student_over, "square-and-add": square_and_add, "`of_game`": game_of}
    for name, (tasks, episodes) in GAMES.items():
        drawn = [task.draw(rng, (count, played)) for task, played in zip(tasks, episodes, strict=True)]
        mean = float(np.mean([task.mean for task in tasks]))
        for method, interval in methods.items():
            print(line(name, mean, method, [interval([one[row] for one in drawn]) for row in range(count)]))


def suites_table(rng: np.random.Generator, count: int) -> None:
    for name, games in SUITES.items():
        drawn = [[task.draw(rng, (count, task.episodes)) for task in game] for game in games]
        mean = float(np.mean([np.mean([task.mean for task in game]) for game in games]))
        played = [[[one[row].tolist() for one in game] for game in drawn] for row in range(count)]
        print(line(name, mean, "normal, over games", [normal_over(row) for row in played]))
        print(line(name, mean, "`of_suite`", [found for row in played if (found := intervals.of_suite(row))]))


def normal_over(games: Sequence[Sequence[Sequence[float]]]) -> Interval:
    """As `automem.summary` has it."""
    means = [np.mean([np.mean(task) for task in game]) for game in games]
    errors = [sum(np.var(task, ddof=1) / len(task) for task in game) / len(game) ** 2 for game in games]
    return around(float(np.mean(means)), 1.96 * float(np.sqrt(sum(errors))) / len(games))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--random", type=int, default=1, help="seed of the draws")
    chosen = parser.parse_args()
    began = time.perf_counter()
    tables = {"tasks": tasks_table, "games": games_table, "suites": suites_table}
    for number, (name, table) in enumerate(tables.items()):
        head = (name, "true mean", "method", "holds", "too low", "too high", "mean width, points")
        print("\n| " + " | ".join(head) + " |\n" + "| --- " * len(head) + "|")
        table(np.random.default_rng((chosen.random, number)), chosen.simulations)
    print(f"\n{chosen.simulations} simulations each, {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
