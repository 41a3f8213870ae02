"""Which engines there are. A new one is a file, and a line in `ENGINES`; in another package, an entry point.

Entry points are of the group ``automem.engines``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from automem import choosing
from automem.errors import UserError
from specialist.select.engine import Engine

if TYPE_CHECKING:
    from specialist.search.settings import EngineSettings

Maker = Callable[["EngineSettings", Path], Engine]
"""Takes the settings, and the search's folder, where an engine may keep transcripts and criteria."""


def _rules(settings: EngineSettings, folder: Path) -> Engine:
    from specialist.select.rules import Rules

    if settings.options:
        raise UserError(f"the engine rules takes no {', '.join(settings.options)}")
    return Rules()


def _llm(settings: EngineSettings, folder: Path) -> Engine:
    from specialist.select.llm import make

    return make(settings, folder)


ENGINES: Mapping[str, Maker] = {"rules": _rules, "llm": _llm}
"""By the kinds that settings call them. What an engine needs is imported when it is chosen."""

GROUP = "automem.engines"


def make(settings: EngineSettings, folder: Path) -> Engine:
    """The engine that settings describe; reaches nothing. Raises `UserError` when there is none of this kind."""
    return choosing.chosen(settings.kind, ENGINES, GROUP, "engine")(settings, folder)


def check(settings: EngineSettings) -> None:
    """Whether the settings can make an engine. Raises `UserError`."""
    make(settings, Path())
