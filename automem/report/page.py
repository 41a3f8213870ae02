"""The page: one HTML file that needs nothing else, and asks for nothing.

What comes from traces is text that somebody else wrote. It gets into the page in three ways only: escaped
by the template; in charts, through `automem.report.svg`; and as JSON, compressed, whose values the page's
script puts into text nodes. The page's policy lets no other script run and nothing be fetched.
"""

from __future__ import annotations

from typing import Any

import orjson
from markupsafe import Markup

import games
from automem import compare as comparing
from automem import runs as stored
from automem.report import charts, figures, frame, tiles
from automem.report.episode import Packed
from automem.report.gather import Gathered

MARK = '<meta name="generator" content="AutoMem report">'
"""Stands at the beginning of every report, so that one can be told from other files."""

_SCRIPTS = ("parts.js", "picture.js", "memory.js", "turns.js", "replay.js")
"""The page's script, in the order in which its files build on each other."""


def page(gathered: Gathered) -> str:
    """The whole file."""
    script = "\n".join(frame.text("automem.report", f"page/{name}") for name in _SCRIPTS)
    script = f'"use strict";\n(() => {{\n{script}\n}})();\n'
    style = frame.style()
    template = frame.environment("automem.report", "page").get_template("page.html.j2")
    return template.render(
        mark=Markup(MARK),
        policy=frame.policy(script, style),
        style=Markup(style),
        script=Markup(script),
        created=stored.now(),
        versions=stored.versions(),
        **_overview(gathered),
        **_replay(gathered),
    )


def _overview(gathered: Gathered) -> dict[str, Any]:
    """Everything above the replay."""
    names = gathered.names
    means, points = figures.progress_rows(gathered.summaries, names)
    found = figures.comparisons(gathered.runs)
    falls = figures.achievement_rows(gathered.episodes, names)
    return {
        "runs": [_run(gathered, number) for number in range(len(names))],
        "trouble": _trouble(gathered),
        "progression": _chart(charts.progression(means, points, names)) if means else "",
        "tasks": _tasks(gathered),
        "advance": _curves(gathered, "progression", "progression in %", steps=True),
        "compared": [_compared(names, number, comparison) for number, comparison in found],
        "achievements": [
            (task, _chart(charts.achievements(rows, order, f"Steps at which achievements fell, {task}")), order)
            for task, (rows, order) in falls.items()
        ],
        "reached": _reached(gathered),
        "behaviour": _behaviour(gathered, [comparison for _, comparison in found]),
        "memory": _memory(gathered),
        "prompt_tokens": _curves(gathered, "prompt", "prompt tokens a step"),
        "completion_tokens": _curves(gathered, "completion", "completion tokens a step"),
    }


def _chart(svg: str) -> Any:
    return Markup(svg)


def _run(gathered: Gathered, number: int) -> dict[str, Any]:
    config, data = gathered.runs[number].config, gathered.summaries[number]
    mine = [e for e in gathered.episodes if e.run == number]
    return {
        "number": number,
        "colour": f"run-{number % charts.RUNS}",
        "shape": charts.shape(number),
        "name": config.name,
        "target": config.target,
        "model": config.players,
        "temperature": config.model.temperature,
        "scripted": config.model.name == "scripted",
        "created": config.created,
        "scaffolds": [(game, s.ref, s.identity) for game, s in config.scaffolds.items()],
        "planned": sum(len(task.seeds) for task in config.tasks),
        "begun": len(mine),
        "finished": sum(e.finished for e in mine),
        "steps": sum(e.result.steps for e in mine),
        "overall": data["overall"],
        "facts": sorted({fact for row in data["per_task"].values() for fact in row["facts"]}),
        "versions": config.versions,
        "unsafe": config.sandbox.unsafe,
    }


def _trouble(gathered: Gathered) -> list[dict[str, Any]]:
    """Episodes that somebody should know of, each with what is the matter."""
    rows = [
        {"run": gathered.names[e.run], "name": e.name, "why": why, "episode": number if _watchable(e.packed) else None}
        for number, e in enumerate(gathered.episodes)
        for why in e.trouble
    ]
    rows += [
        {"run": gathered.names[m.run], "name": f"{m.task}, seed {m.seed}", "why": m.why, "episode": None}
        for m in gathered.missing
    ]
    return rows


def _watchable(packed: Packed | None) -> bool:
    return packed is not None and bool(packed.head)


def _tasks(gathered: Gathered) -> list[dict[str, Any]]:
    """Progression by task and run; a run without finished episodes of a task has None."""
    names = list(dict.fromkeys(task for data in gathered.summaries for task in data["per_task"]))
    return [{"task": name, "runs": [data["per_task"].get(name) for data in gathered.summaries]} for name in names]


def _curves(gathered: Gathered, which: str, value: str, steps: bool = False) -> list[tuple[str, Any]]:
    rows = figures.curve_rows(gathered.episodes, gathered.names, which)
    return [
        (task, _chart(charts.curves(points, f"{value[0].upper()}{value[1:]} over the steps of {task}", value, steps)))
        for task, points in rows.items()
        if any(point["value"] for point in points)
    ]


def _compared(names: list[str], number: int, comparison: comparing.Comparison) -> dict[str, Any]:
    rows = [*comparison.tasks, *([comparison.overall] if len(comparison.tasks) > 1 else [])]
    drawn = [
        {
            "task": row.name,
            "run": number % charts.RUNS,
            "mean": 100 * row.difference,
            "low": None if row.interval is None else 100 * row.interval[0],
            "high": None if row.interval is None else 100 * row.interval[1],
            "label": f"{row.name}: {figures.signed(row.difference)} points over {row.pairs} pairs",
        }
        for row in rows
    ]
    label = f"Paired differences in progression, {names[number]} minus {names[0]}"
    return {
        "a": names[0],
        "b": names[number],
        "rows": rows,
        "chart": _chart(charts.differences(drawn, label)),
        "warnings": comparison.warnings,
        "achievements": [
            (task, name.replace("_", " "), *counts)
            for task, changed in comparison.achievements.items()
            for name, counts in sorted(changed.items(), key=lambda item: item[1][0] - item[1][1])
        ],
    }


def _reached(gathered: Gathered) -> list[dict[str, Any]]:
    """Episodes with the steps at which their achievements fell."""
    return [
        {
            "number": number,
            "run": gathered.names[e.run],
            "name": e.name,
            "watchable": _watchable(e.packed),
            "progression": e.result.progression,
            "steps": e.result.steps,
            "return": e.result.episode_return,
            "ended": "" if not e.finished else "the game ended" if e.result.terminated else "a limit ended it",
            "finished": e.finished,
            "reached": sorted((step, name.replace("_", " ")) for name, step in e.result.reached_at.items()),
        }
        for number, e in enumerate(gathered.episodes)
    ]


def _behaviour(gathered: Gathered, compared: list[comparing.Comparison]) -> list[dict[str, Any]]:
    """Tables of metrics, all runs side by side: of all tasks, of operations, and of each task of several.

    Each has ``task`` (empty for all), ``what`` and ``rows``.
    """
    overall = [data["overall"]["behaviour"] for data in gathered.summaries]
    counted = [of_run["totals"]["operations"] for of_run in overall]
    tables = [
        {"task": "", "what": "metric", "rows": figures.behaviour_rows(overall, [c.behaviour for c in compared])},
        {"task": "", "what": "operation, part of all", "rows": figures.operation_rows(counted, compared)},
    ]
    tasks = list(dict.fromkeys(task for data in gathered.summaries for task in data["per_task"]))
    for task in tasks if len(tasks) > 1 else ():
        of_task = [data["per_task"].get(task) for data in gathered.summaries]
        values = [row and row["behaviour"] for row in of_task]
        rows = figures.behaviour_rows(values, [c.per_task.get(task, ()) for c in compared])
        tables.append({"task": task, "what": "metric", "rows": rows})
    return [table for table in tables if table["rows"]]


def _memory(gathered: Gathered) -> list[dict[str, Any]]:
    shown = []
    for number, name in enumerate(gathered.names):
        for game in gathered.runs[number].config.scaffolds:
            rows, files = figures.memory_rows(gathered.episodes, number, game)
            if rows:
                title = f"Bytes of memory files over steps, {name}, {game}"
                shown.append(
                    {
                        "run": number,
                        "name": name,
                        "game": game,
                        "files": files,
                        "ends": figures.memory_ends(gathered.episodes, number, game),
                        "chart": _chart(charts.files(rows, title)),
                    }
                )
    return shown


def _replay(gathered: Gathered) -> dict[str, Any]:
    """The data of the replay."""
    episodes: list[dict[str, Any]] = []
    parts: list[tuple[str, str]] = []
    drawn = False
    for number, episode in enumerate(gathered.episodes):
        packed = episode.packed
        if packed is None or not packed.head:
            continue
        episodes.append(
            {
                "id": number,
                "run": gathered.names[episode.run],
                "name": episode.name,
                "task": episode.result.task,
                "steps": packed.steps,
                "progression": episode.result.progression,
                "finished": episode.finished,
                "trouble": episode.trouble,
                "parts": len(packed.parts),
                "scripted": episode.result.model == "scripted",
            }
        )
        parts.append((f"episode-{number}", packed.head))
        parts += [(f"episode-{number}-{part}", data) for part, data in enumerate(packed.parts)]
        drawn = drawn or games.game_of(episode.result.task) == "crafter"
    index = {"episodes": episodes, "sheet": _sheet() if drawn else None}
    return {"index": _json(index), "parts": parts}


def _sheet() -> dict[str, Any] | None:
    try:
        return tiles.sheet()
    except ModuleNotFoundError:
        return None


def _json(value: Any) -> Any:
    """JSON that can stand in a script element: no sign in it can end the element or begin a comment."""
    text = orjson.dumps(value).decode().replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(text)
