"""Deciders, one file or folder each, behind `specialist.search.decider.Decider`.

A new one is a function from settings to a decider and a line in `DECIDERS`; in another package, an entry point of
the group ``automem.deciders``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from automem import choosing
from automem.errors import UserError
from specialist.search.decider import Decider
from specialist.search.settings import DeciderSettings

Maker = Callable[[DeciderSettings, Path], Decider]
"""Takes the settings, and the search's folder, whose records a decider may read and where it keeps its transcripts."""


def _halving(settings: DeciderSettings, folder: Path) -> Decider:
    from specialist.search.deciders.halving import Halving

    if settings.options:
        raise UserError(f"the decider halving takes no {', '.join(settings.options)}")
    return Halving(settings.width, settings.seed)


def _llm(settings: DeciderSettings, folder: Path) -> Decider:
    from specialist.search.deciders.llm import make

    return make(settings, folder)


DECIDERS: Mapping[str, Maker] = {"halving": _halving, "llm": _llm}
"""By the kinds that settings call them. What a decider needs is imported when it is chosen."""

GROUP = "automem.deciders"


def make(settings: DeciderSettings, folder: Path) -> Decider:
    """The decider that settings describe; reaches nothing. Raises `UserError` when there is none of this kind."""
    return choosing.chosen(settings.kind, DECIDERS, GROUP, "decider")(settings, folder)
