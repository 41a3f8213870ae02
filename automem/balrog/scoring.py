"""BALROG's names and arithmetic: what it would call our tasks, and what it would make of our episodes.

Everything is in [0, 1] here; BALROG writes percent. The formulas are those of the code behind its leaderboard
(balrog-ai/experiments: ``submit.py``, ``calculate_score.py``):

- the error of a mean is the spread of the episodes themselves (divided by n, not by n - 1) over the root of n, and 0
  for a single episode: smaller than `automem.statistics.standard_error`, and for one episode a claim of certainty;
- a game is the mean of all its episodes together, whatever task they belong to, so that a task with more episodes
  weighs more;
- the whole is the mean of the games, its error the root of the sum of their squared errors over their number.

Sums are made as BALROG makes them, plainly and in order, so that figures agree to the last digit where the order does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import games
from automem.episode import STEPS, EpisodeResult
from automem.errors import UserError

ENVIRONMENTS: Mapping[str, str] = {"crafter": "crafter", "minihack": "minihack", "nethack": "nle"}
"""Game -> what BALROG calls it: ``env`` in its settings, and the folder of its results."""

_TASKS: Mapping[str, str] = {"Crafter": "default"}
"""Task -> BALROG's name of it, where it is not the same."""

SOLVED = 1.0
"""MiniHack: the last reward must be at least this much."""


@dataclass(frozen=True, slots=True)
class Score:
    """A figure as BALROG publishes it.

    Attributes:
        progression: mean, in [0, 1].
        standard_error: of the mean, as BALROG computes it.
        episodes: how many are in it.
    """

    progression: float
    standard_error: float
    episodes: int


def environment(task: str) -> str | None:
    """BALROG's environment of a task; None when BALROG does not play its game. Raises `games.UnknownTask`."""
    return ENVIRONMENTS.get(games.game_of(task))


def task_name(task: str) -> str:
    """BALROG's name of a task: ``default`` for Crafter, and otherwise ours."""
    return _TASKS.get(task, task)


def standard_error(values: Sequence[float]) -> float:
    """Of the mean of at least one value: its population spread over the root of n; 0 for one value."""
    if len(values) < 2:
        return 0.0
    middle = sum(values) / len(values)
    return math.sqrt(sum((v - middle) ** 2 for v in values) / len(values)) / math.sqrt(len(values))


def pooled(progressions: Sequence[float]) -> Score:
    """The figure of a task, or of a game, from the progressions of all its episodes; at least one."""
    return Score(sum(progressions) / len(progressions), standard_error(progressions), len(progressions))


def overall(scores: Sequence[Score]) -> Score:
    """The figure of a suite from those of its games; at least one."""
    return Score(
        sum(score.progression for score in scores) / len(scores),
        math.sqrt(sum(score.standard_error**2 for score in scores)) / len(scores),
        sum(score.episodes for score in scores),
    )


def progression(result: EpisodeResult, folder: Path | None = None) -> float | None:
    """What BALROG would give a finished episode, in [0, 1]; None when that cannot be known.

    In MiniHack it looks at the last reward alone: at least 1.0 is a success, anything else is none. A winning move
    that took no game time carries the step penalty of 0.01 and scores 0, however well the task was solved; ours,
    `EpisodeResult.progression`, counts it. In other games both are the same.

    Args:
        result: the episode.
        folder: of the episode, to look for the last reward in its trace when the result does not hold it.
    """
    if games.game_of(result.task) != "minihack":
        return result.progression
    reward = result.last_reward
    if reward is None and folder is not None:
        reward = _last_reward(folder, result.steps)
    if reward is not None:
        return float(reward >= SOLVED)
    # Older results say what the simulator's own last reward was held to be.
    judged = result.achievements.get("balrog_success")
    return None if judged is None else float(judged)


def by_game(episodes: Iterable[tuple[str, float]]) -> dict[str, Score]:
    """The figure of each of BALROG's environments, from (task, progression) of episodes; others are left out."""
    found: dict[str, list[float]] = {}
    for task, value in episodes:
        name = environment(task)
        if name is not None:
            found.setdefault(name, []).append(value)
    return {name: pooled(values) for name, values in found.items()}


def _last_reward(folder: Path, steps: int) -> float | None:
    """The reward of the last step; None when the trace is not there, or is not the whole episode's."""
    from automem.trace import EpisodeTrace

    if not steps or not (folder / STEPS).is_file():
        return None
    try:
        trace = EpisodeTrace(folder)
        return trace.step(steps - 1).reward if len(trace) == steps else None
    except UserError:
        return None
