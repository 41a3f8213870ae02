"""What a run amounts to: means with their uncertainty, per task, per game and overall."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from scipy.special import ndtri, stdtrit

from automem.episode import EpisodeResult
from automem.executor import Outcome
from automem.metrics import Counts, rates
from games import game_of

CONFIDENCE = 0.95


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Student's t interval for the mean of progressions, cut to [0, 1]. None for fewer than two values."""
    if len(values) < 2:
        return None
    mean, error = _mean(values), standard_error(values)
    assert error is not None
    reach = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * error
    return max(0.0, mean - reach), min(1.0, mean + reach)


def standard_error(values: Sequence[float]) -> float | None:
    """Of the mean, from the sample's own spread (n - 1). None for fewer than two values."""
    if len(values) < 2:
        return None
    mean = _mean(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def summarise(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """``summary.json``: figures that do not depend on the order in which episodes finished.

    ``per_task`` and ``per_game`` hold progression (the mean), standard error, interval, episodes and behaviour.
    A game's mean is the mean of its tasks' means, and ``overall`` the mean of the games', as in
    BALROG. Episodes that failed are listed, missing from every mean, and mark it incomplete.
    """
    ordered = sorted(outcomes, key=lambda o: (o.job.task, o.job.seed))
    results = [o.result for o in ordered if o.result is not None]
    failed = [{"task": o.job.task, "seed": o.job.seed, "error": o.error} for o in ordered if o.result is None]
    tasks = {task: [r for r in results if r.task == task] for task in sorted({r.task for r in results})}
    per_task = {task: _task(found) for task, found in tasks.items()}
    games = {game: [t for t in tasks if game_of(t) == game] for game in sorted({game_of(t) for t in tasks})}
    incomplete = {o.job.task for o in ordered if o.result is None}
    for task, row in per_task.items():
        row["complete"] = task not in incomplete
    per_game = {
        game: _pooled([per_task[t] for t in names])
        | {
            "complete": not any(game_of(t) == game for t in incomplete),
            "facts": sorted({fact for t in names for fact in per_task[t]["facts"]}),
            "behaviour": _behaviour([r for r in results if r.task in names]),
        }
        for game, names in games.items()
    }
    return {
        "complete": not failed,
        "episodes": len(results),
        "overall": _pooled(list(per_game.values())) | {"behaviour": _behaviour(results)},
        "per_game": per_game,
        "per_task": per_task,
        "failed": failed,
    }


def _task(results: Sequence[EpisodeResult]) -> dict[str, Any]:
    values = [r.progression for r in results]
    reached: dict[str, int] = {}
    for result in results:
        for name, count in result.achievements.items():
            reached[name] = reached.get(name, 0) + bool(count)
    return {
        "progression": _mean(values),
        "standard_error": standard_error(values),
        "interval": interval(values),
        "episodes": len(values),
        "mean_steps": _mean([r.steps for r in results]),
        "mean_return": _mean([r.episode_return for r in results]),
        "facts": sorted({f"{k}: {v}" for r in results for k, v in r.facts.items()}),
        "reached": {name: count for name, count in sorted(reached.items()) if count},
        "behaviour": _behaviour(results),
        "by_seed": {str(r.seed): r.progression for r in results},
    }


def _pooled(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean of means; the error assumes that the parts are independent."""
    if not parts:
        return {"progression": None, "standard_error": None, "interval": None, "episodes": 0}
    mean = _mean([p["progression"] for p in parts])
    errors = [p["standard_error"] for p in parts]
    if any(e is None for e in errors):
        error, reach = None, None
    else:
        error = math.sqrt(math.fsum(e * e for e in errors)) / len(errors)
        z = float(ndtri((1 + CONFIDENCE) / 2))
        reach = (max(0.0, mean - z * error), min(1.0, mean + z * error))
    if len(parts) == 1:
        reach = parts[0]["interval"]
    episodes = sum(p["episodes"] for p in parts)
    return {"progression": mean, "standard_error": error, "interval": reach, "episodes": episodes}


def _behaviour(results: Sequence[EpisodeResult]) -> dict[str, Any]:
    total = reduce(Counts.merged, (r.counts for r in results), Counts())
    return {**rates(total), "totals": total.as_dict()}
