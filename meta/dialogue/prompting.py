"""Templates of what a meta-LLM is told."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

SHARED = Path(__file__).resolve().parents[1] / "prompts"
"""Holds what every dialogue may include, such as how tools are called in text."""


def render(folder: Path, name: str, **values: Any) -> str:
    """What a template says, with one line break at its end.

    Args:
        folder: of templates; those of `SHARED` can be included.
        name: the template's file name.
        values: for the names in it; one that is missing raises `jinja2.UndefinedError`.
    """
    return _environment(folder).get_template(name).render(**values).strip() + "\n"


@functools.cache
def _environment(folder: Path) -> Environment:
    return Environment(
        loader=FileSystemLoader([folder, SHARED]),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
