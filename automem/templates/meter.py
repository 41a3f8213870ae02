"""What one rendering may do, and what its values must be: the meter that work is paid from, and checks of values."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NoReturn

from jinja2 import Undefined
from jinja2.runtime import Context

WORK = 200_000
"""Units of work of one rendering. A round of a loop costs `ROUND` and one unit for each node of its body;
a filter, a comparison or a slice costs one and something for the characters that it touches."""

ROUND = 10
"""Units of one round of a loop, its body not counted: 20,000 rounds at most, in all loops of a rendering."""

SECONDS = 1.0
"""CPU seconds of one rendering. The work runs out long before."""

LARGEST_NUMBER = 10**15
"""Numbers in templates are at most this far from zero."""

LARGEST_TEXT = 400_000
"""Characters of a text that a filter takes or makes."""

METER = "#meter"
"""Where a rendering's `Meter` is among its values: no template can write this name."""

_LOOK = 10_000
"""Units between two looks at the clock."""


class CannotRender(Exception):
    """A template asks for something that is not possible: what, and what to write instead."""


class Meter:
    """The work that one rendering may still do."""

    __slots__ = ("_left", "_look", "_started")

    def __init__(self, work: int = WORK) -> None:
        self._left = work
        self._look = work - _LOOK
        self._started: float | None = None

    def charge(self, units: int) -> None:
        """Pay for work before it is done. Raises `CannotRender` when there is not enough left."""
        self._left -= units
        if self._left < self._look:
            self._check()

    def _check(self) -> None:
        if self._left < 0:
            raise CannotRender(
                "more work than a template may do: it goes through too much text or too many rounds of loops;"
                " compute in hooks.py, and show the text that it returns"
            )
        now = time.thread_time()
        if self._started is None:
            self._started = now
        elif now - self._started > SECONDS:
            raise CannotRender(f"rendering takes more than {SECONDS} s; compute in hooks.py")
        self._look = self._left - _LOOK


def meter_of(context: Context) -> Meter:
    """The meter of the rendering that a filter or an operator is part of."""
    return context.parent[METER]


def kind(value: Any) -> str:
    """What a value is, in words for messages."""
    if value is None:
        return "nothing (None)"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, list | tuple):
        return "a list"
    return "a table" if isinstance(value, Mapping) else f"a {type(value).__name__}"


def shown(value: Any) -> Any:
    """A value as ``{{ value }}`` may show it: a text, a number or None. Anything else could be of any size."""
    if value is None or isinstance(value, str | int | float | Undefined):
        return value
    raise CannotRender(f"{kind(value)} cannot be shown as it is; go through it with for, or write | join(', ')")


def number(value: Any, what: str) -> int | float:
    """`value`, if it is a number that is not too large."""
    if isinstance(value, Undefined):
        fail(value)
    if not isinstance(value, int | float):
        raise CannotRender(f"{what} is for numbers, and this is {kind(value)}")
    if not abs(value) <= LARGEST_NUMBER:  # also true of NaN
        raise CannotRender(f"{what}: a number larger than {LARGEST_NUMBER}; templates have no use for it")
    return value


def fail(value: Undefined) -> NoReturn:
    value._fail_with_undefined_error()


def whole(value: Any, what: str, most: int) -> int:
    if not isinstance(value, int) or not 0 <= value <= most:
        raise CannotRender(f"{what} is a whole number from 0 to {most}")
    return value


def scalar(value: Any, what: str) -> str | int | float | None:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Undefined):
        fail(value)
    raise CannotRender(f"{what} is for texts and numbers, and this is {kind(value)}")


def text_of(context: Context, value: Any, what: str) -> str:
    """`value` as text, paid for. Raises `CannotRender` when it is none, or too long."""
    if not isinstance(value, str):
        if isinstance(value, Undefined):
            fail(value)
        if value is None:
            raise CannotRender(f"{what} works on text, and this is nothing (None); write | default('none', true) first")
        if not isinstance(value, int | float):
            raise CannotRender(f"{what} works on text, and this is {kind(value)}")
        value = str(value)
    fits(len(value), what)
    meter_of(context).charge(1 + len(value) // 16)
    return value


def fits(characters: int, what: str) -> None:
    if characters > LARGEST_TEXT:
        raise CannotRender(f"{what}: a text of more than {LARGEST_TEXT} characters; cut it first, for instance [:1000]")


def sequence(value: Any, what: str) -> str | list | tuple:
    if isinstance(value, Undefined):
        fail(value)
    if not isinstance(value, str | list | tuple):
        raise CannotRender(f"{what} works on a list or a text, and this is {kind(value)}")
    return value


def search_units(text: str, part: str) -> int:
    """Units of looking for `part` in `text`: its worst case is the product of short lengths."""
    return 1 + len(text) * max(1, min(len(part), 100)) // 200
