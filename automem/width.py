"""How wide output is: as the terminal, or as what it holds."""

from __future__ import annotations

from rich.console import Console

ENDLESS = 4_000
"""Columns where nothing has to fit: in a pipe or a file, a line is as long as it is."""


def wide(console: Console) -> Console:
    """The console where it is a terminal, else one as wide as it takes."""
    return console if console.is_terminal else endless()


def endless() -> Console:
    """A console as wide as it takes, whatever the terminal's width."""
    return Console(width=ENDLESS)
