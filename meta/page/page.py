"""The page of a loop: one HTML file that needs nothing else, and asks for nothing.

What models wrote gets into it in four ways only: escaped by the template; as Markdown, through `meta.page.markdown`;
in charts, through `automem.report.svg`; in differences, through `automem.scaffold_diff`. The page's policy lets no
script but its own run, no style but its own apply, and nothing be fetched.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from automem import pages, runs
from automem.metric_names import metric, unit
from automem.report import frame
from meta.page import attempts, curve, files, head, history, tree
from meta.page.history import History
from meta.storage import LoopFolder

MARK = '<meta name="generator" content="AutoMem loop">'
"""Stands at the beginning of every such page, so that one can be told from other files."""

_KIND = pages.Kind("page of a loop", MARK, "--out")


def render(loop: LoopFolder) -> str:
    """The page of a loop, over or not. Raises `UserError` when its folder is damaged."""
    found = history.read(loop)
    script, style = frame.text("meta.page", "loop.js"), frame.style(frame.text("meta.page", "loop.css"))
    return _template().render(
        mark=Markup(MARK),
        policy=frame.policy(script, style),
        style=Markup(style),
        script=Markup(script),
        name=loop.config.name,
        head=head.head(found),
        tree=tree.tree(found),
        root=found.versions[0],
        begun=found.begun,
        curve=curve.curve(found),
        whole=_whole(found),
        attempts=[attempts.shown(found, attempt) for attempt in found.attempts],
        evolution=files.evolution(found),
        versions=runs.versions(),
        created=runs.now(),
    )


def write(loop: LoopFolder, path: Path, force: bool = False) -> int:
    """Write the page, whole or not at all. Returns its size in bytes.

    Raises `UserError` when something else than an earlier page of a loop is there, unless `force`.
    """
    pages.check(path, _KIND, force)
    return pages.write(render(loop), path)


@cache
def _template() -> jinja2.Template:
    return frame.environment("meta.page").get_template("loop.html.j2")


def _whole(found: History) -> list[dict[str, Any]]:
    """Behaviour of the first version and the best, on gate seeds and on held-out ones."""
    result = found.result
    if result is None or result["held_out"] is None:
        return []
    sides = [{one["name"]: one for one in result[series]["behaviour"]} for series in ("gate", "held_out")]
    return [
        {
            "name": metric(name).label,
            "unit": unit(name),
            "meaning": metric(name).meaning,
            "cells": [
                (attempts.value(name, one["a"]), attempts.value(name, one["b"]), attempts.change(one["change"]))
                if (one := side.get(name)) is not None
                else ("–", "–", "–")
                for side in sides
            ],
        }
        for name in dict.fromkeys(name for side in sides for name in side)
    ]
