"""Text of a scaffold made safe to show: what does not print is shown as a sign that does.

A model may have written these files. An escape sequence could repaint the terminal, a sign that turns
the reading direction could make code look like other code; both must be seen by whoever reviews it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def visible(text: str, column: int = 0) -> str:
    """One line, with every character that does not print replaced by one that does.

    It is written as Python writes it in a string: ESC as ``\\x1b``, a right-to-left override as ``\\u202e``. A tab
    becomes an arrow and spaces to the next fourth column.

    Args:
        text: a line, or a piece of one.
        column: where the piece begins.
    """
    if text.isprintable():
        return text
    shown: list[str] = []
    for char in text:
        sign = _sign(char, column)
        shown.append(sign)
        column += len(sign)
    return "".join(shown)


def visible_lines(text: str) -> str:
    """Text of several lines, each of them made `visible`; only a newline ends one."""
    return text if text.isprintable() else "\n".join(visible(line) for line in text.split("\n"))


def visible_parts(parts: Sequence[tuple[str, bool]], most: int) -> Iterator[tuple[str, bool]]:
    """One line in pieces, each made `visible`, cut to `most` characters with a word on how many more there are.

    Args:
        parts: pieces, each with whether it stands out.
        most: characters of the line, as it was written.
    """
    left, column = most, 0
    for part, strong in parts:
        text = visible(part[:left], column)
        yield text, strong
        left, column = left - len(part), column + len(text)
        if left < 0:
            yield f"… {sum(len(part) for part, _ in parts) - most} more characters", False
            return


def _sign(char: str, column: int) -> str:
    if char.isprintable():
        return char
    if char == "\t":
        return "→" + " " * (3 - column % 4)
    return char.encode("unicode_escape").decode("ascii")
