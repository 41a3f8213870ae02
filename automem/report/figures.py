"""What the report says of runs before anybody opens an episode: tables, and the rows of charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import games
from automem import compare as comparing
from automem.compare import Comparison
from automem.episode import EpisodeResult
from automem.errors import UserError
from automem.executor import Outcome
from automem.report.episode import Packed
from automem.runs import Run
from automem.summary import summarise
from automem.trace import EpisodeTrace
from automem.trace.stats import so_far

METRICS: dict[str, tuple[str, str]] = {
    "stuck_share": ("stuck", "steps after which the observation was the same as before"),
    "oscillating_share": ("oscillating", "steps that left a state to which the agent had just returned"),
    "invalid_per_step": ("invalid actions", "actions written that the game does not have"),
    "fallback_share": ("fallback", "steps at which no action was committed, and the game's default was played"),
    "duplicate_write_share": ("duplicate writes", "writes that put what a file held already into it again"),
    "empty_search_share": ("empty searches", "searches that found no line"),
    "refused_per_step": ("refused operations", "operations that the memory folder refused"),
    "truncated_reads_per_step": ("cut results", "results longer than the scaffold's limit, cut there"),
    "written_chars_per_step": ("characters written", "in write operations"),
    "added_bytes_per_step": ("bytes of growth", "of the memory folder"),
    "updated_share": ("updated or deleted", "of all entries added, updated and deleted"),
    "log_turns_per_step": ("LOG turns", "model calls in LOG"),
    "plan_turns_per_step": ("PLAN turns", "model calls in PLAN"),
    "turns_per_step": ("turns", "model calls"),
    "prompt_tokens_per_step": ("prompt tokens", "as the server counts them"),
    "completion_tokens_per_step": ("completion tokens", "as the server counts them"),
    "cached_share": ("cached tokens", "of prompt tokens"),
    "seconds_per_step": ("seconds of model time", "summed latency of calls"),
}
"""Metric of `automem.metrics.rates` -> what it is called, and what it counts."""


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode that was begun.

    Attributes:
        run: number of its run in the report.
        result: what it came to, or what its readable steps come to.
        finished: whether it is over.
        trouble: what a reader should know: that it is not finished, why, and what is damaged.
        packed: its replay and curves; None when its trace cannot be read at all.
    """

    run: int
    result: EpisodeResult
    finished: bool
    trouble: tuple[str, ...]
    packed: Packed | None

    @property
    def name(self) -> str:
        """Task and seed."""
        return f"{self.result.task}, seed {self.result.seed}"


def result_of(trace: EpisodeTrace) -> tuple[EpisodeResult, bool, list[str]]:
    """What an episode came to, whether it is finished, and what is wrong with it in words.

    Where its ``episode.json`` is damaged, what its readable steps come to. Raises `UserError` when these cannot
    be read either.
    """
    damaged = []
    try:
        result = trace.result
    except UserError as error:
        result, damaged = None, [str(error)]
    damaged += [str(trace.damage)] if trace.damage is not None else []
    if result is not None:
        if len(trace) < result.steps:
            damaged.append(f"its trace holds {len(trace)} of the {result.steps} steps that were played")
        return result, True, damaged
    result = so_far(trace)
    return result, False, [f"not finished: {result.steps} steps were played", *damaged]


def summary(run: Run, episodes: Sequence[Episode]) -> dict[str, Any]:
    """What `automem.summary.summarise` says of the run's finished episodes; the others are listed as failed."""
    found = {(e.result.task, e.result.seed): e for e in episodes}
    outcomes = []
    for job in run.jobs():
        episode = found.get((job.task, job.seed))
        finished = episode is not None and episode.finished
        result = episode.result if episode is not None and finished else None
        outcomes.append(Outcome(job, result, None if finished else "not finished"))
    return summarise(outcomes)


def why_failed(run: Run) -> dict[tuple[str, int], str]:
    """Task and seed -> why the episode was not finished, as far as the run wrote that down."""
    try:
        stored = run.summary() or {}
        return {(f["task"], int(f["seed"])): str(f["error"]) for f in stored.get("failed", ())}
    except (UserError, KeyError, TypeError, ValueError):
        return {}


def comparisons(runs: Sequence[Run]) -> list[tuple[int, Comparison]]:
    """The first run against each other one with which it shares finished episodes, by the other's number."""
    found = []
    for number, other in enumerate(runs[1:], 1):
        try:
            found.append((number, comparing.compare(runs[0], other)))
        except UserError:
            continue
    return found


def percent(value: float | None, digits: int = 1) -> str:
    """A share in percent, without the sign; a dash for None."""
    return "–" if value is None else f"{100 * value:.{digits}f}"


def interval(span: Sequence[float] | None) -> str:
    """``12.3 to 45.6``, in percent; empty for None."""
    return "" if span is None else f"{percent(span[0])} to {percent(span[1])}"


def signed(value: float | None, digits: int = 1) -> str:
    """A difference of shares in percentage points, with its sign."""
    return "–" if value is None else f"{100 * value:+.{digits}f}".replace("-", "−")


def figure(metric: str, value: float | None) -> str:
    """A metric's value as people read it: shares in percent."""
    if value is None:
        return "–"
    if metric.endswith("_share"):
        return f"{100 * value:.1f} %"
    return f"{value:,.0f}".replace(",", " ") if abs(value) >= 100 else f"{value:.3g}"


def progress_rows(summaries: Sequence[dict[str, Any]], names: Sequence[str]) -> tuple[list[Any], list[Any]]:
    """Rows of `automem.report.charts.progression`: means, and episodes."""
    means, episodes = [], []
    for number, data in enumerate(summaries):
        for task, row in data["per_task"].items():
            span = row["interval"]
            told = f"{names[number]}, {task}: {percent(row['progression'])} %"
            told += f" ({interval(span)}), {row['episodes']} episodes" if span else f", {row['episodes']} episode"
            low, high = (100 * span[0], 100 * span[1]) if span else (None, None)
            mean = 100 * row["progression"]
            means.append({"task": task, "run": number, "mean": mean, "low": low, "high": high, "label": told})
            episodes += [
                {
                    "task": task, "run": number, "value": 100 * value,
                    "label": f"{names[number]}, {task}, seed {seed}: {percent(value)} %",
                }
                for seed, value in row["by_seed"].items()
            ]  # fmt: skip
    return means, episodes


def curve_rows(episodes: Sequence[Episode], names: Sequence[str], which: str) -> dict[str, list[dict[str, Any]]]:
    """Task -> rows of `automem.report.charts.curves`; `which` is "progression", "prompt" or "completion"."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for number, episode in enumerate(episodes):
        if episode.packed is None or not episode.packed.steps:
            continue
        packed = episode.packed
        points: list[tuple[int, float]]
        if which == "progression":
            points = [(step, 100 * value) for step, value in packed.progression]
            points.append((packed.steps, points[-1][1]))
        else:
            column = 1 if which == "prompt" else 2
            points = [(row[0], row[column]) for row in packed.tokens]
        told = f"{names[episode.run]}, {episode.name}"
        rows.setdefault(episode.result.task, []).extend(
            {"step": step, "value": value, "run": episode.run % 8, "line": str(number), "label": told}
            for step, value in points
        )
    return rows


def memory_rows(episodes: Sequence[Episode], run: int, game: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows of `automem.report.charts.files` for a run's episodes of a game, and the files by number."""
    chosen = [e for e in episodes if e.run == run and games.game_of(e.result.task) == game and e.packed is not None]
    largest: dict[str, int] = {}
    for episode in chosen:
        assert episode.packed is not None
        for name, points in episode.packed.memory.items():
            largest[name] = max(largest.get(name, 0), max(size for _, size in points))
    ordered = sorted(largest, key=lambda name: (-largest[name], name))
    shown = ordered if len(ordered) <= 8 else ordered[:7]
    files = shown if len(ordered) <= 8 else [*shown, f"{len(ordered) - 7} smaller files"]
    rows = []
    for number, episode in enumerate(chosen):
        assert episode.packed is not None
        for name, points in episode.packed.memory.items():
            file = shown.index(name) if name in shown else 7
            told = f"{name}, {episode.name}: {points[-1][1]:,} bytes at the end"
            line = f"{number} {name}"
            last = [(episode.packed.steps, points[-1][1])]
            rows += [
                {"step": step, "value": size, "file": file, "line": line, "label": told}
                for step, size in [*points, *last]
            ]
    return rows, files


def achievement_rows(episodes: Sequence[Episode], names: Sequence[str]) -> dict[str, tuple[list[Any], list[str]]]:
    """Task -> rows of `automem.report.charts.achievements`, and its achievements in the order in which they fall."""
    found: dict[str, tuple[list[Any], dict[str, list[int]]]] = {}
    for episode in episodes:
        rows, steps = found.setdefault(episode.result.task, ([], {}))
        for name, step in episode.result.reached_at.items():
            words = name.replace("_", " ")
            steps.setdefault(words, []).append(step)
            told = f"{names[episode.run]}, seed {episode.result.seed}: {words} at step {step}"
            rows.append({"step": step, "name": words, "run": episode.run % 8, "label": told})
    ordered: dict[str, tuple[list[Any], list[str]]] = {}
    for task, (rows, steps) in found.items():
        # What everybody has from the first action on, as NetHack's first dungeon level, says nothing.
        order = [name for name in steps if any(steps[name])]
        order.sort(key=lambda name: (sorted(steps[name])[len(steps[name]) // 2], name))
        if order:
            ordered[task] = ([row for row in rows if row["name"] in order], order)
    return ordered
