"""The scoreboard's page.

Names of agents and models may be anybody's, and errors may hold what a model wrote. They get into the page escaped by
the template, and in charts through `automem.report.svg`. The page's policy lets no script but its own run, no style
but its own apply, and nothing be fetched; links lead only to the sources of published figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from automem import pages
from automem.bench import references as published
from automem.bench import standing
from automem.bench.references import GAMES, Figure, References
from automem.bench.scoreboard import charts
from automem.bench.standing import Results
from automem.report import frame
from automem.visible import visible

MARK = '<meta name="generator" content="AutoMem scoreboard">'
"""Stands at the beginning of every such page, so that one can be told from other files."""

_KIND = pages.Kind("scoreboard", MARK, "--out")

_PACKAGE = "automem.bench.scoreboard"


def write(results: Results, path: Path, force: bool = False) -> int:
    """Write the page of a bench, whole or not at all. Returns its size in bytes.

    Args:
        results: of ``results.json``.
        path: the file.
        force: any file may be replaced, not only an earlier scoreboard.

    Raises:
        UserError: the page cannot be written there.
    """
    pages.check(path, _KIND, force)
    return pages.write(render(results), path)


def render(results: Results, references: References | None = None) -> str:
    """The whole page; the same results and times give the same text.

    Args:
        results: of ``results.json``.
        references: published figures to stand beside ours; those that come with AutoMem when None.
    """
    theirs = published.load() if references is None else references
    script, style = frame.text(_PACKAGE, "scoreboard.js"), frame.style(frame.text(_PACKAGE, "scoreboard.css"))
    games = standing.shown_games(results)
    columns = [*games, "overall"] if len(games) > 1 else games
    numbers = {agent["label"]: number for number, agent in enumerate(results["agents"])}
    return _template().render(
        mark=Markup(MARK),
        policy=frame.policy(script, style),
        style=Markup(style),
        script=Markup(script),
        bench=results["bench"],
        suite=results["suite"],
        complete=results["complete"],
        cautions=standing.cautions(results),
        played=standing.played(results),
        columns=[(column, standing.game_name(column)) for column in columns],
        scored=[(column, standing.game_name(column)) for column in _scored(columns)],
        scoring=standing.MINIHACK_SCORING,
        agents=[_agent(results, agent, numbers[agent["label"]], columns) for agent in standing.ranked(results)],
        charts=[chart for column in columns if (chart := _chart(results, theirs, column, numbers))],
        tasks=[_task(results, task, numbers) for task in standing.played(results)],
        behaviour=standing.behaviour(standing.ranked(results)),
        failed=standing.failed(results),
        sources=[_source(theirs, key, columns) for key in theirs.sources],
        apart=standing.apart(results),
        comparable=standing.COMPARABLE,
        commands=standing.commands(results),
        report=f"automem report {results['bench']}",
        versions=sorted(results["versions"].items()),
        created=str(results.get("times", {}).get("created", "")),
    )


@cache
def _template() -> jinja2.Template:
    return frame.environment(_PACKAGE).get_template("scoreboard.html.j2")


def _scored(columns: list[str]) -> list[str]:
    """The columns in which BALROG's scoring makes a difference."""
    return [column for column in columns if column in ("minihack", "overall")] if "minihack" in columns else []


def _agent(results: Results, agent: Mapping[str, Any], number: int, columns: list[str]) -> dict[str, Any]:
    """A line of the scoreboard."""
    return {
        "number": number,
        "label": agent["label"],
        "who": standing.who(agent),
        "labels": standing.labels(agent),
        "scaffolds": [(game, one["ref"], one["identity"]) for game, one in sorted(agent["scaffolds"].items())],
        "cells": [_cell(standing.row(agent, column)) for column in columns],
        "balrog": {column: standing.row(agent, column)["balrog"] for column in columns},
        "tokens": standing.tokens_per_step(agent),
        "cost": agent["usage"]["cost"],
        "cost_told": standing.cost(agent),
        "seconds": results.get("times", {}).get("seconds", {}).get(agent["label"]),
    }


def _cell(row: Mapping[str, Any]) -> dict[str, Any]:
    """Progression as a cell shows it."""
    return {
        "value": row["progression"],
        "told": standing.uncertain(row),
        "span": standing.span(row),
        "episodes": row["episodes"],
        "incomplete": standing.incomplete(row),
    }


def _chart(results: Results, theirs: References, column: str, numbers: Mapping[str, int]) -> dict[str, Any] | None:
    """A game's chart, or that of all games; None where no agent has a mean."""
    ours = []
    for agent in standing.ranked(results):
        row = standing.row(agent, column)
        if row["progression"] is None:
            continue
        remarks = ["no LLM"] if agent["language_model"] is False else []
        remarks += [] if row["complete"] else ["incomplete"]
        told = [f"{agent['label']}: {standing.uncertain(row)} %", standing.span(row), f"{row['episodes']} episodes"]
        low, high = (None, None) if row["interval"] is None else (100 * end for end in row["interval"])
        ours.append(
            charts.Ours(
                visible(agent["label"]) + (f" ({', '.join(remarks)})" if remarks else ""),
                numbers[agent["label"]],
                100 * row["progression"],
                low,
                high,
                visible(", ".join(filter(None, [*told, *remarks]))),
            )
        )
    if not ours:
        return None
    others = []
    for reference in theirs.references:
        figure = reference.overall if column == "overall" else reference.figure(column)
        if figure is not None:
            source = theirs.sources[reference.source].title
            value = f"{figure.progression:.2f}" + ("" if figure.error is None else f" ± {figure.error:.2f}")
            others.append(charts.Published(source, figure.progression, f"{source}, {reference.name}: {value} %"))
    name = standing.game_name(column)
    return {
        "name": name,
        "published": bool(others),
        "svg": Markup(charts.progression(ours, others, f"Progression by agent, {name}")),
    }


def _task(results: Results, task: standing.Played, numbers: Mapping[str, int]) -> dict[str, Any]:
    """What every agent made of a task."""
    rows: list[dict[str, Any]] = []
    seeds: dict[str, None] = {}
    for agent in standing.ranked(results):
        found = agent["per_task"].get(task.task, {**standing.NOTHING, "by_seed": {}})
        seeds |= dict.fromkeys(found["by_seed"])
        rows.append(
            {
                "label": agent["label"],
                "number": numbers[agent["label"]],
                **_cell(found),
                "balrog": found["balrog"],
                "steps": found.get("mean_steps"),
                "reward": found.get("mean_return"),
                "by_seed": found["by_seed"],
            }
        )
    ordered = sorted(seeds, key=lambda seed: (len(seed), seed))
    return {
        "name": task.task,
        "steps": task.steps,
        "facts": task.facts,
        "minihack": task.game == "minihack",
        "rows": rows,
        "seeds": ordered,
    }


def _source(theirs: References, key: str, columns: list[str]) -> dict[str, Any]:
    """A source, and its figures as lines of the scoreboard; those by BALROG's scoring stand in its own columns."""
    source = theirs.sources[key]
    rows = []
    for reference in theirs.of(key):
        figures = {game: reference.figure(game) for game in GAMES} | {"overall": reference.overall}
        if all(figures.get(column) is None for column in columns):
            continue
        scored = _scored(columns)
        shown = [None if column in scored else figures.get(column) for column in columns]
        shown += [figures.get(column) for column in scored]
        remarks = [] if reference.verified else ["not verified"]
        remarks += [
            f"{standing.game_name(g)}: 0.0 unconfirmed, left out" for g in reference.unconfirmed if g in columns
        ]
        rows.append(
            {
                "name": reference.name,
                "link": theirs.link(reference),
                "who": ", ".join(filter(None, [reference.agent, reference.date, reference.note])),
                "remarks": remarks,
                "cells": [_published(figure) for figure in shown],
            }
        )
    return {"key": key, "rows": rows, **source.model_dump(exclude={"entries"})}


def _published(figure: Figure | None) -> dict[str, Any]:
    """A published figure as a cell shows it."""
    if figure is None:
        return _cell(standing.NOTHING)
    error = "" if figure.error is None else f" ± {figure.error:.2f}"
    return {
        "value": figure.progression / 100,
        "told": f"{figure.progression:.2f}{error}",
        "span": "",
        "episodes": figure.episodes,
        "incomplete": "",
    }
