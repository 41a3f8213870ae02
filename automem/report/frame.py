"""What pages of ours are made of: a template, one style sheet, one script, and a policy that lets nothing else in.

The policy lets no script but the page's own run, no style but its own apply, and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

import jinja2

from automem.report import charts, figures
from automem.tables import chance
from automem.visible import visible_lines

LONGEST = 600
"""Characters of a sentence that somebody wrote."""

_OURS = ("automem.report", "page")


def environment(package: str, folder: str = "") -> jinja2.Environment:
    """Templates of a package; those of reports, such as ``marks.html.j2``, can be imported by them.

    Args:
        package: that has them.
        folder: inside it.
    """

    def load(name: str) -> str | None:
        for place in ((package, folder), _OURS):
            file = resources.files(place[0]).joinpath(*filter(None, (place[1], name)))
            if file.is_file():
                return file.read_text("utf-8")
        return None

    made = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=jinja2.FunctionLoader(load),
    )  # fmt: skip
    made.filters |= {
        "percent": figures.percent, "interval": figures.interval, "signed": figures.signed, "chance": chance,
        "said": said,
    }  # fmt: skip
    made.globals |= {"colours_of_runs": charts.RUNS, "shape_of_run": charts.shape}
    return made


def text(package: str, name: str) -> str:
    """A file of a package; parts of its path are divided by ``/``."""
    return resources.files(package).joinpath(*name.split("/")).read_text("utf-8")


def style(*more: str) -> str:
    """The style sheet of reports with the colours of charts, and what only one page has."""
    return "".join((text("automem.report", "page/report.css"), _colours(), *more))


def policy(script: str, sheet: str) -> str:
    """Content-Security-Policy: this script and this style sheet, pictures that the page holds itself, nothing else."""
    own = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (script, sheet)]
    return (
        f"default-src 'none'; script-src 'sha256-{own[0]}'; style-src 'sha256-{own[1]}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )


def said(words: str, most: int = LONGEST) -> str:
    """What somebody wrote, cut and made visible."""
    more = len(words) - most
    return visible_lines(words[:most]) + (f"… {more} more characters" if more > 0 else "")


def _colours() -> str:
    """Classes of charts' colours (`automem.report.svg`)."""
    names = [f"run-{i}" for i in range(charts.RUNS)] + [f"file-{i}" for i in range(charts.FILES)]
    return "".join(
        f".fill-{name}{{fill:var(--{name})}}.stroke-{name}{{stroke:var(--{name})}}"
        for name in (*names, "text", "grid", "axis")
    )
