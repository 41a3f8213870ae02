"""What a run amounts to: means with their uncertainty, per task, per game and overall."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from automem.episode import EpisodeResult
from automem.executor import Outcome
from automem.metrics import Counts, rates
from automem.statistics import Estimate, combined, estimate, mean
from games import game_of


def summarise(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """``summary.json``: figures that do not depend on the order in which episodes finished.

    ``per_task`` and ``per_game`` hold progression (the mean), standard error, interval, episodes and behaviour.
    A game's mean is the mean of its tasks' means, and ``overall`` the mean of the games'. BALROG takes a game's
    episodes all together, which is the same where every task has as many. Episodes that failed are listed, missing
    from every mean, and mark it incomplete.
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
        **_told(estimate(values), len(values)),
        "mean_steps": mean([r.steps for r in results]),
        "mean_return": mean([r.episode_return for r in results]),
        "facts": sorted({f"{k}: {v}" for r in results for k, v in r.facts.items()}),
        "reached": {name: count for name, count in sorted(reached.items()) if count},
        "behaviour": _behaviour(results),
        "by_seed": {str(r.seed): r.progression for r in results},
    }


def _pooled(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean of means; the error assumes that the parts are independent."""
    if not parts:
        return {"progression": None, "standard_error": None, "interval": None, "episodes": 0}
    whole = combined([Estimate(p["progression"], p["standard_error"], p["interval"]) for p in parts])
    return _told(whole, sum(p["episodes"] for p in parts))


def _told(found: Estimate, episodes: int) -> dict[str, Any]:
    """The estimate of a progression, its interval cut to [0, 1]."""
    span = found.interval
    return {
        "progression": found.mean,
        "standard_error": found.error,
        "interval": None if span is None else (max(0.0, span[0]), min(1.0, span[1])),
        "episodes": episodes,
    }


def _behaviour(results: Sequence[EpisodeResult]) -> dict[str, Any]:
    total = reduce(Counts.merged, (r.counts for r in results), Counts())
    return {**rates(total), "totals": total.as_dict()}
