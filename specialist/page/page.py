"""The page of a search: one HTML file that needs nothing else, and asks for nothing.

What models wrote gets into it in three ways only: escaped by the template; as Markdown, through `meta.page.markdown`;
in charts, through `automem.report.svg`. The page's policy (`automem.report.frame`) lets nothing else in.
"""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from automem import pages, runs
from automem.report import frame
from specialist.page import criteria, head, outcome, readings, recipes, selection, trainings
from specialist.page.found import Found, read
from specialist.search.players import UNTRAINED
from specialist.search.storage import SearchFolder

MARK = '<meta name="generator" content="AutoMem search">'
"""Stands at the beginning of every such page, so that one can be told from other files."""

_KIND = pages.Kind("page of a search", MARK, "--out")


def render(search: SearchFolder) -> str:
    """The page of a search, over or not. Raises `UserError` when its folder is damaged."""
    found = read(search)
    script = frame.text("meta.page", "loop.js")
    style = frame.style(frame.text("meta.page", "loop.css"), frame.text("specialist.page", "search.css"))
    return _template().render(
        mark=Markup(MARK),
        policy=frame.policy(script, style),
        style=Markup(style),
        script=Markup(script),
        name=search.config.name,
        head=head.head(found),
        start=recipes.whole(search.config.recipe),
        ledger=trainings.table(found),
        comparison=trainings.comparison(found),
        trainings=trainings.shown(found),
        data=selection.shown(found),
        criteria=criteria.criteria(found),
        outcome=outcome.outcome(found),
        sides=outcome.WHO,
        plays=head.plays(found),
        commands=_commands(found),
        longest=readings.LONGEST,
        seen=readings.SEEN,
        versions=runs.versions(),
        created=runs.now(),
    )


def write(search: SearchFolder, path: Path, force: bool = False) -> int:
    """Write the page, whole or not at all. Returns its size in bytes.

    Raises `UserError` when something else than an earlier page of a search is there, unless `force`.
    """
    pages.check(path, _KIND, force)
    return pages.write(render(search), path)


@cache
def _template() -> jinja2.Template:
    return frame.environment("specialist.page").get_template("search.html.j2")


def _commands(found: Found) -> list[tuple[str, str]]:
    """What to do with the specialist that was found, and how."""
    config = found.search.config
    if found.result is None:
        return [("go on with the search: the command that began it, with", f"--run {config.name} --resume")]
    best = found.result["best"]
    if best is None:
        return []
    folder, base = shlex.quote(str(found.search.folder / best["folder"])), shlex.quote(config.base.name)
    merged = " --merged" if config.base.merged else ""
    options = (
        f"--model {shlex.quote(config.gameplay.name)} --scaffold {config.scaffold.ref} --specialist {folder}{merged}"
    )
    pair = [one for who in (UNTRAINED, best["adapter"]) if (one := found.of(who, "held-out")) is not None]
    return [
        ("watch before and after side by side", " ".join(["automem report", *(shlex.quote(one.name) for one in pair)])),
        ("play an episode with it", f"automem play {config.tasks[0].task} {options}"),
        ("evaluate it", f"automem eval {config.game} {options}"),
        ("serve it", f"automem serve --model {base} --specialist {folder}{merged}"),
    ]
