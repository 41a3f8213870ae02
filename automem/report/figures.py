"""What the report says of runs before anybody opens an episode: tables, and the rows of charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import games
from automem import compare as comparing
from automem.compare import Behaviour, Comparison
from automem.episode import EpisodeResult
from automem.errors import UserError
from automem.executor import Outcome
from automem.metric_names import figure, metric, shares, unit
from automem.report.episode import Packed
from automem.runs import Run
from automem.summary import summarise
from automem.trace import EpisodeTrace
from automem.trace.stats import so_far


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


def behaviour_rows(
    values: Sequence[Mapping[str, float | None] | None], compared: Sequence[Sequence[Behaviour]]
) -> list[dict[str, Any]]:
    """Rows of a table of metrics: what each is called, its value in each run, and how it changed.

    Args:
        values: metrics of each run; None for a run that has none.
        compared: what `automem.compare.compare` says of the same metrics, for each comparison.
    """
    changes = [{one.name: one.change for one in comparison} for comparison in compared]
    names = dict.fromkeys(name for of_run in values for name in of_run or () if name != "totals")
    return [
        {
            "name": metric(name).label,
            "unit": unit(name),
            "meaning": metric(name).meaning,
            "values": [figure(name, of_run.get(name) if of_run else None).replace("-", "–") for of_run in values],
            "changes": [change(of_pair.get(name)) for of_pair in changes],
        }
        for name in names
        if any(of_run and of_run.get(name) is not None for of_run in values)
    ]


def operation_rows(counts: Sequence[dict[str, int]], compared: Sequence[Comparison]) -> list[dict[str, Any]]:
    """The same for operations, each as a part of all: how often each run used them, and the comparisons."""
    parts = [shares(of_run) for of_run in counts]
    changes = [{one.name: one.change for one in comparison.operations} for comparison in compared]
    return [
        {
            "name": name,
            "unit": "%",
            "meaning": "",
            "values": [percent(part.get(name, 0.0) if part else None) for part in parts],
            "changes": [change(of_pair.get(name)) for of_pair in changes],
        }
        for name in sorted({name for part in parts for name in part})
    ]


def change(value: float | None) -> str:
    """A relative change in percent, with its sign; a dash for None."""
    return "–" if value is None else f"{signed(value, 0)} %"


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
    chosen = _of_game(episodes, run, game)
    largest: dict[str, int] = {}
    for packed in (packed for _, packed in chosen):
        for name, points in packed.memory.items():
            largest[name] = max(largest.get(name, 0), max(size for _, size, _ in points))
    ordered = sorted(largest, key=lambda name: (-largest[name], name))
    shown = ordered if len(ordered) <= 8 else ordered[:7]
    files = shown if len(ordered) <= 8 else [*shown, f"{len(ordered) - 7} smaller files"]
    rows = []
    for number, (episode, packed) in enumerate(chosen):
        for name, points in packed.memory.items():
            file = shown.index(name) if name in shown else 7
            told = f"{name}, {episode}: {points[-1][1]:,} bytes at the end"
            line = f"{number} {name}"
            last = (packed.steps, *points[-1][1:])
            rows += [
                {"step": step, "value": size, "file": file, "line": line, "label": told}
                for step, size, _ in [*points, last]
            ]
    return rows, files


def memory_ends(episodes: Sequence[Episode], run: int, game: str) -> list[tuple[str, int, float, float]]:
    """Files of a run's episodes of a game, in name order: in how many episodes each changed, and how large it ended.

    Sizes are mean lines and mean bytes over these episodes.
    """
    ends: dict[str, list[tuple[int, int, int]]] = {}
    for _, packed in _of_game(episodes, run, game):
        for name, points in packed.memory.items():
            ends.setdefault(name, []).append(points[-1])
    return [
        (name, len(found), sum(lines for _, _, lines in found) / len(found), sum(n for _, n, _ in found) / len(found))
        for name, found in sorted(ends.items())
    ]


def _of_game(episodes: Sequence[Episode], run: int, game: str) -> list[tuple[str, Packed]]:
    """Name and curves of the run's episodes of a game that could be read."""
    return [
        (episode.name, episode.packed)
        for episode in episodes
        if episode.run == run and games.game_of(episode.result.task) == game and episode.packed is not None
    ]


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
