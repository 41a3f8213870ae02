"""NetHack's terminal as rows of coloured spans."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from games.protocol import Screen, Span

_STYLES = (
    "bright_black",
    "red",
    "green",
    "yellow",
    "blue",
    "magenta",
    "cyan",
    "white",
    "bright_black",
    "bold red",
    "bold green",
    "bold yellow",
    "bold blue",
    "bold magenta",
    "bold cyan",
    "bold white",
)
_CURSOR = "reverse"


def coloured(chars: np.ndarray, colors: np.ndarray, cursor: np.ndarray) -> Screen:
    """Rows of (text, style) spans.

    Args:
        chars: NLE's `tty_chars`, shape (24, 80).
        colors: NLE's `tty_colors`, shape (24, 80), 0 to 15.
        cursor: NLE's `tty_cursor`, row and column; the cell there is shown reversed.
    """
    row, column = (int(v) for v in cursor)
    return tuple(
        _row(line, shades, column if i == row else -1)
        for i, (line, shades) in enumerate(zip(chars, colors & 15, strict=True))
    )


def _row(line: np.ndarray, shades: np.ndarray, cursor: int) -> tuple[Span, ...]:
    text = "".join(chr(c) if c >= 32 and c != 127 else " " for c in line.tolist())
    breaks = set((np.flatnonzero(np.diff(shades)) + 1).tolist()) | {0, len(text)}
    if 0 <= cursor < len(text):
        breaks |= {cursor, cursor + 1}
    edges = sorted(breaks)
    spans = []
    for start, end in pairwise(edges):
        style = _STYLES[shades[start]]
        spans.append((text[start:end], f"{style} {_CURSOR}" if start == cursor else style))
    return tuple(spans)
