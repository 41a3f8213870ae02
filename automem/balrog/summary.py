"""Summaries of a folder of BALROG's results, from nothing but its episodes' logs.

The same figures under the same names as BALROG's ``collect_and_summarize_results`` makes of the same files; it may
be run over the folder and changes nothing but the order in which games stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from automem.balrog import scoring
from automem.balrog.scoring import Score

Log = Mapping[str, Any]
"""An episode's log (`automem.balrog.episode_log.log`)."""


def of_environment(logs: Sequence[Log]) -> dict[str, Any]:
    """``<env>/<env>_summary.json``, from the logs of at least one episode of that environment."""
    tasks: dict[str, list[Log]] = {}
    for log in logs:
        tasks.setdefault(log["task"], []).append(log)
    return {
        **_told(_pooled(logs)),
        "average_steps": sum(log["num_steps"] for log in logs) / len(logs),
        "episodes_played": len(logs),
        "tasks": {task: {**_told(_pooled(runs)), "episodes_played": len(runs)} for task, runs in tasks.items()},
        "input_tokens": sum(log["input_tokens"] for log in logs),
        "output_tokens": sum(log["output_tokens"] for log in logs),
    }


def of_folder(environments: Mapping[str, Sequence[Log]]) -> dict[str, Any]:
    """``summary.json``, from the logs of each environment: at least one, with at least one episode in each."""
    scores = {name: _pooled(logs) for name, logs in environments.items()}
    whole = scoring.overall(list(scores.values()))
    logs = [log for found in environments.values() for log in found]
    return {
        "average_progress": 100 * whole.progression,
        "standard_error": 100 * whole.standard_error,
        "environments": {name: {**_told(score), "episodes_played": score.episodes} for name, score in scores.items()},
        "total_input_tokens": sum(log["input_tokens"] for log in logs),
        "total_output_tokens": sum(log["output_tokens"] for log in logs),
        "client": logs[0]["client"],
        "agent": logs[0]["agent"],
    }


def _pooled(logs: Sequence[Log]) -> Score:
    return scoring.pooled([log["progression"] for log in logs])


def _told(score: Score) -> dict[str, float]:
    return {"progression_percentage": 100 * score.progression, "standard_error": 100 * score.standard_error}
