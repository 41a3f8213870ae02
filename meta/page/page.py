"""The page of a loop: one HTML file that needs nothing else, and asks for nothing.

What models wrote gets into it in four ways only: escaped by the template; as Markdown, through `meta.page.markdown`;
in charts, through `automem.report.svg`; in differences, through `automem.scaffold_diff`. The page's policy lets no
script but its own run, no style but its own apply, and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from automem import pages, runs
from automem.metric_names import metric, unit
from automem.report import charts, figures
from automem.visible import visible_lines
from meta.page import attempts, curve, files, head, history, tree
from meta.page.history import History
from meta.storage import LoopFolder

MARK = '<meta name="generator" content="AutoMem loop">'
"""Stands at the beginning of every such page, so that one can be told from other files."""

_KIND = pages.Kind("page of a loop", MARK, "--out")

LONGEST = 600
"""Characters of a sentence that a reviewer or a checker wrote."""


def render(loop: LoopFolder) -> str:
    """The page of a loop, over or not. Raises `UserError` when its folder is damaged."""
    found = history.read(loop)
    script, style = _text("meta.page", "loop.js"), _style()
    return _template().render(
        mark=Markup(MARK),
        policy=_policy(script, style),
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
        runs=charts.RUNS,
        shape=charts.shape,
    )


def write(loop: LoopFolder, path: Path, force: bool = False) -> int:
    """Write the page, whole or not at all. Returns its size in bytes.

    Raises `UserError` when something else than an earlier page of a loop is there, unless `force`.
    """
    pages.check(path, _KIND, force)
    return pages.write(render(loop), path)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=jinja2.FunctionLoader(lambda name: _text("meta.page", name)),
    )  # fmt: skip
    environment.filters |= {
        "percent": figures.percent, "interval": figures.interval, "signed": figures.signed, "said": said,
    }  # fmt: skip
    return environment.get_template("loop.html.j2")


def said(text: str, most: int = LONGEST) -> str:
    """What somebody wrote, cut and made visible."""
    more = len(text) - most
    return visible_lines(text[:most]) + (f"… {more} more characters" if more > 0 else "")


def _text(package: str, name: str) -> str:
    return resources.files(package).joinpath(name).read_text("utf-8")


def _style() -> str:
    """The style sheet of reports, the colours of charts, and what only this page has."""
    names = [*(f"run-{i}" for i in range(charts.RUNS)), "text", "grid", "axis"]
    colours = "".join(f".fill-{name}{{fill:var(--{name})}}.stroke-{name}{{stroke:var(--{name})}}" for name in names)
    return (
        resources.files("automem.report").joinpath("page", "report.css").read_text("utf-8")
        + colours
        + _text("meta.page", "loop.css")
    )


def _policy(script: str, style: str) -> str:
    own = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    return (
        f"default-src 'none'; script-src 'sha256-{own[0]}'; style-src 'sha256-{own[1]}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )


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
