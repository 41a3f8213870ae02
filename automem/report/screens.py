"""A game's screen, kept as what changed since the step before."""

from __future__ import annotations

from typing import Any

from rich.color import Color, ColorType
from rich.errors import StyleSyntaxError
from rich.style import Style

from games.protocol import Screen

# The sixteen colours of terminals, chosen to be read on near-black: the usual blue cannot be.
_SIXTEEN = (
    "#1b1d23", "#e06c75", "#8fc670", "#cf9a4e", "#6f9df5", "#d07ee0", "#4fc1cf", "#c8ccd4",
    "#858c9a", "#ff8b92", "#b4e88d", "#f0dd6c", "#93bbff", "#f0a5ff", "#7fe5ee", "#ffffff",
)  # fmt: skip


class Screens:
    """Packs the screens of an episode, one after the other.

    Attributes:
        styles: how text can look, as ``[foreground, background, bold, dim]``; a screen names them by number.
            Colours are ``#rrggbb``, or "" for the terminal's own.
    """

    def __init__(self) -> None:
        self.styles: list[tuple[str, str, bool, bool]] = []
        self._numbers: dict[str, int] = {}
        self._before: list[Any] = []

    def restart(self) -> None:
        """The next screen is kept whole."""
        self._before = []

    def add(self, screen: Screen) -> dict[str, Any]:
        """``rows``: number, text and runs (length, style, …) of rows that changed; ``of``: how many rows there are."""
        rows = [self._row(row) for row in screen]
        changed = [
            [number, *row]
            for number, row in enumerate(rows)
            if number >= len(self._before) or row != self._before[number]
        ]
        self._before = rows
        return {"rows": changed, "of": len(rows)}

    def _row(self, spans: tuple[tuple[str, str], ...]) -> tuple[str, list[int]]:
        text = "".join(characters for characters, _ in spans)
        runs: list[int] = []
        for characters, style in spans:
            number = self._number(style)
            if not characters:
                continue
            if runs and runs[-1] == number:
                runs[-2] += len(characters)
            else:
                runs += (len(characters), number)
        return text, runs

    def _number(self, style: str) -> int:
        if style not in self._numbers:
            look = _look(style)
            if look not in self.styles:
                self.styles.append(look)
            self._numbers[style] = self.styles.index(look)
        return self._numbers[style]


def _look(style: str) -> tuple[str, str, bool, bool]:
    try:
        parsed = Style.parse(style) if style else Style()
    except StyleSyntaxError:
        parsed = Style()
    front, back = _hex(parsed.color), _hex(parsed.bgcolor)
    if parsed.reverse:
        front, back = back or _SIXTEEN[0], front or _SIXTEEN[7]
    return front, back, bool(parsed.bold), bool(parsed.dim)


def _hex(color: Color | None) -> str:
    if color is None or color.type is ColorType.DEFAULT:
        return ""
    if color.number is not None and color.number < len(_SIXTEEN):
        return _SIXTEEN[color.number]
    return color.get_truecolor().hex
