"""What a bench comes to: ``results.json``, from the finished episodes of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import games
from automem.balrog import scoring
from automem.bench import intervals
from automem.bench.storage import RESULTS, Bench, PlannedAgent
from automem.episode import EpisodeError, EpisodeResult, write_json
from automem.errors import UserError
from automem.metric_names import CLOCKS
from automem.metrics import Counts, rates
from automem.models.registry import NO_LANGUAGE_MODELS
from automem.runs import BeingPlayed, Run, RunConfig
from automem.statistics import mean

FORMAT = 1

NOT_BEGUN = "not begun"

_DAMAGED = (UserError, AttributeError, KeyError, TypeError, ValueError)
"""What reading older results may raise. They are made anew from the episodes: no damage keeps a bench from going on."""

Played = Mapping[str, Sequence[EpisodeResult]]
"""Task -> its finished episodes, by seed."""


def write(bench: Bench, seconds: Mapping[str, float], errors: Mapping[str, str]) -> dict[str, Any]:
    """Write ``results.json``; see `gather`. Returns what was written."""
    found = gather(bench, seconds, errors)
    write_json(bench.folder / RESULTS, found)
    return found


def refreshed(bench: Bench) -> dict[str, Any]:
    """The results as they are now: written anew, but where another process plays the bench and writes them itself."""
    known = seconds(bench), errors(bench)
    try:
        with bench.exclusive():
            return write(bench, *known)
    except BeingPlayed:
        return gather(bench, *known)


def seconds(bench: Bench) -> dict[str, float]:
    """Label -> seconds of playing so far, as the last results say; none where these are damaged."""
    try:
        found = bench.results() or {"times": {"seconds": {}}}
        return {str(label): float(value) for label, value in found["times"]["seconds"].items()}
    except _DAMAGED:
        return {}


def errors(bench: Bench) -> dict[str, str]:
    """Label -> why an agent could not be played, as the last results say; none where these are damaged."""
    try:
        found = bench.results() or {"agents": ()}
        told = {str(agent["label"]): str(agent["error"]) for agent in found["agents"] if agent["error"]}
    except _DAMAGED:
        return {}
    return {label: error for label, error in told.items() if error != NOT_BEGUN}  # it may have, since


def gather(bench: Bench, seconds: Mapping[str, float], errors: Mapping[str, str]) -> dict[str, Any]:
    """The results: all of it is the same for two equal benches, but for ``times``.

    Per task, per game and overall, ``progression`` is the mean over finished episodes alone: a game's is that of its
    tasks' means, the overall that of the games'. ``balrog`` is BALROG's: with its own scoring of MiniHack, and a
    game's the mean of all its episodes, which is the same where every task has as many. ``standard_error`` is
    BALROG's, too (`automem.balrog.scoring`), ``interval`` one that holds for few episodes
    (`automem.bench.intervals`). What is not finished is missing from every mean, and ``complete`` says so.

    Args:
        bench: which.
        seconds: label -> seconds of playing.
        errors: label -> why an agent could not be played.
    """
    begun = bench.runs()
    planned = sum(len(task.seeds) for task in begun[0].config.tasks) if begun else 0
    agents = [_agent(bench, agent, errors.get(agent.label), planned) for agent in bench.config.agents]
    return {
        "format": FORMAT,
        "bench": bench.config.name,
        "suite": bench.config.suite,
        "command": bench.config.command,
        "complete": all(agent["complete"] for agent in agents),
        "settings": {
            "tasks": [task.model_dump(mode="json") for task in begun[0].config.tasks] if begun else [],
            "suite_seeds": bench.config.suite_seeds,
            "suite_steps": bench.config.suite_steps,
        },
        "agents": agents,
        "versions": _versions([run.config for run in begun]),
        "times": {"created": bench.config.created, "seconds": dict(seconds)},
    }


def _versions(configs: Sequence[RunConfig]) -> dict[str, str]:
    """Package -> version, of all runs; of one that changed between them, each."""
    found: dict[str, list[str]] = {}
    for config in configs:
        for package, version in config.versions.items():
            found.setdefault(package, []).append(version)
    return {package: ", ".join(dict.fromkeys(found[package])) for package in sorted(found)}


def _agent(bench: Bench, agent: PlannedAgent, error: str | None, planned_of_others: int) -> dict[str, Any]:
    run = bench.run(agent.label)
    head: dict[str, Any] = {"label": agent.label, "agent": agent.agent}
    if run is None:
        nothing = _joined([]) | {"planned": planned_of_others, "standard_error": None, "interval": None}
        return {
            **head,
            "model": None,
            "language_model": None,
            "specialist": None,
            "scaffolds": {},
            "run": f"{bench.config.name}/{agent.label}",
            "complete": False,
            "overall": nothing,
            "per_game": {},
            "per_task": {},
            "failed": [],
            "error": error or NOT_BEGUN,
            "usage": _usage(Counts()),
            "behaviour": {},
        }
    config = run.config
    played, damaged = _played(run)
    planned = {task.task: len(task.seeds) for task in config.tasks}
    per_task = {task: _task(played[task], planned[task]) for task in planned}
    of_game: dict[str, list[str]] = {}
    for task in planned:
        of_game.setdefault(games.game_of(task), []).append(task)
    per_game = {game: _game(tasks, played, per_task) for game, tasks in of_game.items()}
    counts = reduce(Counts.merged, (r.counts for results in played.values() for r in results), Counts())
    specialist = config.specialist
    complete = all(row["complete"] for row in per_task.values())
    return {
        **head,
        "model": config.model.name,
        "language_model": not {config.model.name, *([specialist.model.name] if specialist else [])}
        <= NO_LANGUAGE_MODELS,
        "specialist": None if specialist is None else specialist.model.name,
        "scaffolds": {game: {"ref": s.ref, "identity": s.identity} for game, s in config.scaffolds.items()},
        "run": config.name,
        "complete": complete,
        "overall": _overall(of_game, played, per_game),
        "per_game": per_game,
        "per_task": per_task,
        "failed": _failed(run, played, damaged),
        "error": None if complete else error,  # of what is all there, nothing is missing
        "usage": _usage(counts),
        "behaviour": {name: value for name, value in rates(counts).items() if name not in CLOCKS},
    }


def _played(run: Run) -> tuple[dict[str, list[EpisodeResult]], list[dict[str, Any]]]:
    """Finished episodes by task, and those whose result cannot be read or is not theirs."""
    jobs = run.jobs()
    played: dict[str, list[EpisodeResult]] = {job.task: [] for job in jobs}
    damaged = []
    for job in sorted(jobs, key=lambda job: (job.task, job.seed)):
        try:
            result = run.result(job)
        except EpisodeError as error:
            damaged.append({"task": job.task, "seed": job.seed, "error": str(error)})
            continue
        if result is not None:
            played[job.task].append(result)
    return played, damaged


def _failed(run: Run, played: Played, damaged: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Episodes that failed when they were last played and are not finished since, and damaged ones; each once."""
    known = {(result.task, result.seed) for results in played.values() for result in results}
    known |= {(one["task"], one["seed"]) for one in damaged}
    failed = [
        {"task": task, "seed": seed, "error": error}
        for (task, seed), error in run.failures().items()
        if (task, seed) not in known
    ]
    return sorted([*failed, *damaged], key=lambda one: (one["task"], one["seed"]))


def _task(results: Sequence[EpisodeResult], planned: int) -> dict[str, Any]:
    values = [result.progression for result in results]
    return {
        **_row(values, planned, intervals.of_task(values)),
        "balrog": _by_balrog(results),
        "mean_steps": mean([result.steps for result in results]) if results else None,
        "mean_return": mean([result.episode_return for result in results]) if results else None,
        "by_seed": {str(result.seed): result.progression for result in results},
        "facts": sorted({f"{name}: {fact}" for result in results for name, fact in result.facts.items()}),
    }


def _by_balrog(results: Sequence[EpisodeResult]) -> float | None:
    """BALROG's mean of these episodes, of whatever tasks; None when its score of one is not known."""
    own = [scoring.progression(result) for result in results]
    known = [value for value in own if value is not None]
    return mean(known) if known and len(known) == len(own) else None


def _game(tasks: Sequence[str], played: Played, per_task: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    rows = [per_task[task] for task in tasks]
    measured = [row for row in rows if row["episodes"]]
    return {
        **_joined(rows),
        "balrog": _by_balrog([result for task in tasks for result in played[task]]),
        "standard_error": scoring.standard_error([p for values in _values(tasks, played) for p in values])
        if measured
        else None,
        "interval": intervals.of_game(_values(tasks, played)),
        "facts": sorted({fact for row in rows for fact in row["facts"]}),
    }


def _overall(of_game: Mapping[str, Sequence[str]], played: Played, per_game: Mapping[str, Any]) -> dict[str, Any]:
    rows = list(per_game.values())
    scores = [
        scoring.Score(row["progression"], row["standard_error"], row["episodes"]) for row in rows if row["episodes"]
    ]
    return {
        **_joined(rows),
        "standard_error": scoring.overall(scores).standard_error if scores else None,
        "interval": intervals.of_suite([_values(tasks, played) for tasks in of_game.values()]),
    }


def _values(tasks: Sequence[str], played: Played) -> list[list[float]]:
    return [[result.progression for result in played[task]] for task in tasks]


def _joined(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean of the parts that were played."""
    measured = [row for row in rows if row["episodes"]]
    own = [row["balrog"] for row in measured if row["balrog"] is not None]
    return {
        "progression": mean([row["progression"] for row in measured]) if measured else None,
        "episodes": sum(row["episodes"] for row in rows),
        "planned": sum(row["planned"] for row in rows),
        "complete": bool(rows) and all(row["complete"] for row in rows),
        "balrog": mean(own) if own and len(own) == len(measured) else None,
    }


def _row(values: Sequence[float], planned: int, interval: intervals.Interval | None) -> dict[str, Any]:
    return {
        "progression": mean(values) if values else None,
        "standard_error": scoring.standard_error(values) if values else None,
        "interval": interval,
        "episodes": len(values),
        "planned": planned,
        "complete": bool(planned) and len(values) == planned,
    }


def _usage(counts: Counts) -> dict[str, Any]:
    return {
        "calls": counts.turns,
        "prompt_tokens": counts.prompt_tokens,
        "completion_tokens": counts.completion_tokens,
        "cached_tokens": counts.cached_tokens,
        "cost": counts.cost or None,
    }
