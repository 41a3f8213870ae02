"""The filters and tests of templates. Each pays for the characters that it touches, and makes nothing too long."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import Undefined, pass_context
from jinja2 import filters as jinja_filters
from jinja2.runtime import Context

from automem.templates.meter import (
    LARGEST_NUMBER,
    LARGEST_TEXT,
    CannotRender,
    fail,
    fits,
    kind,
    meter_of,
    number,
    scalar,
    search_units,
    sequence,
    text_of,
    whole,
)

# Filters: pass_context also keeps Jinja2 from computing them when it compiles.


@pass_context
def _upper(context: Context, value: Any) -> str:
    return text_of(context, value, "upper").upper()


@pass_context
def _lower(context: Context, value: Any) -> str:
    return text_of(context, value, "lower").lower()


@pass_context
def _capitalize(context: Context, value: Any) -> str:
    return text_of(context, value, "capitalize").capitalize()


@pass_context
def _title(context: Context, value: Any) -> str:
    text = text_of(context, value, "title")
    meter_of(context).charge(len(text) // 2)  # goes word by word
    return jinja_filters.do_title(text)


@pass_context
def _trim(context: Context, value: Any) -> str:
    return text_of(context, value, "trim").strip()


@pass_context
def _replace(context: Context, value: Any, old: str, new: str, count: int | None = None) -> str:
    text, old, new = (text_of(context, part, "replace") for part in (value, old, new))
    meter_of(context).charge(2 * search_units(text, old))
    times = text.count(old)
    if count is not None:
        times = min(times, whole(count, "the count of replace", LARGEST_TEXT))
    size = len(text) + times * (len(new) - len(old))
    fits(size, "replace")
    meter_of(context).charge(max(0, size) // 16 + times)
    return text.replace(old, new, times)


@pass_context
def _indent(context: Context, value: Any, width: int = 4, first: bool = False, blank: bool = False) -> str:
    text = text_of(context, value, "indent")
    width = whole(width, "the width of indent", 100)
    lines = len(text.splitlines()) + 1
    fits(len(text) + width * lines, "indent")
    meter_of(context).charge(lines + width * lines // 16)
    return jinja_filters.do_indent(text, width, bool(first), bool(blank))


@pass_context
def _truncate(context: Context, value: Any, length: int = 255, killwords: bool = False, end: str = "...") -> str:
    length = whole(length, "the length of truncate", LARGEST_TEXT)
    end = text_of(context, end, "truncate")
    if len(end) > length:
        raise CannotRender(f"truncate: a length of {length} leaves no room for {end[:20]!r}")
    if isinstance(value, str):
        value = value[: length + 16]  # more than truncate looks at
    text = text_of(context, value, "truncate")
    return jinja_filters.do_truncate(context.environment, text, length, bool(killwords), end)


@pass_context
def _join(context: Context, value: Any, d: str = "") -> str:
    between = text_of(context, d, "join")
    items = sequence(value, "join")
    meter_of(context).charge(len(items))
    texts = [str(scalar(item, "join")) for item in items]
    size = sum(map(len, texts)) + len(between) * len(texts)
    fits(size, "join")
    meter_of(context).charge(size // 16)
    return between.join(texts)


@pass_context
def _length(context: Context, value: Any) -> int:
    return len(value if isinstance(value, Mapping) else sequence(value, "length"))


@pass_context
def _wordcount(context: Context, value: Any) -> int:
    text = text_of(context, value, "wordcount")
    meter_of(context).charge(len(text) // 8)
    return len(text.split())


@pass_context
def _first(context: Context, value: Any) -> Any:
    items = sequence(value, "first")
    return items[0] if items else context.environment.undefined("there is no first item: it is empty")


@pass_context
def _last(context: Context, value: Any) -> Any:
    items = sequence(value, "last")
    return items[-1] if items else context.environment.undefined("there is no last item: it is empty")


@pass_context
def _reverse(context: Context, value: Any) -> Any:
    items = sequence(value, "reverse")
    meter_of(context).charge(1 + len(items) // 16)
    return items[::-1]


@pass_context
def _items(context: Context, value: Any) -> tuple[tuple[Any, Any], ...]:
    if isinstance(value, Undefined):
        fail(value)
    if not isinstance(value, Mapping):
        raise CannotRender(f"items works on a table, and this is {kind(value)}")
    meter_of(context).charge(len(value))
    return tuple(value.items())


@pass_context
def _default(context: Context, value: Any, default_value: Any = "", boolean: bool = False) -> Any:
    return default_value if isinstance(value, Undefined) or (boolean and not value) else value


@pass_context
def _int(context: Context, value: Any, default: int = 0) -> Any:
    return _converted(int, value, default)


@pass_context
def _float(context: Context, value: Any, default: float = 0.0) -> Any:
    return _converted(float, value, default)


def _converted(to: Callable[[Any], Any], value: Any, default: Any) -> Any:
    if isinstance(value, Undefined):
        fail(value)
    if isinstance(value, str) and len(value) > 40:
        return default
    try:
        found = to(value)
    except (TypeError, ValueError, OverflowError):
        return default
    return found if abs(found) <= LARGEST_NUMBER else default


@pass_context
def _round(context: Context, value: Any, precision: int = 0) -> Any:
    return round(number(value, "round"), whole(precision, "the precision of round", 15))


@pass_context
def _abs(context: Context, value: Any) -> Any:
    return abs(number(value, "abs"))


FILTERS: Mapping[str, Callable[..., Any]] = {
    "abs": _abs,
    "capitalize": _capitalize,
    "count": _length,
    "d": _default,
    "default": _default,
    "first": _first,
    "float": _float,
    "indent": _indent,
    "int": _int,
    "items": _items,
    "join": _join,
    "last": _last,
    "length": _length,
    "lower": _lower,
    "replace": _replace,
    "reverse": _reverse,
    "round": _round,
    "title": _title,
    "trim": _trim,
    "truncate": _truncate,
    "upper": _upper,
    "wordcount": _wordcount,
}
"""Filters that templates may use, by name."""


# Tests. All take the same time whatever they are given.


def _odd(value: Any) -> bool:
    return number(value, "odd") % 2 == 1


def _even(value: Any) -> bool:
    return number(value, "even") % 2 == 0


def _divisible_by(value: Any, num: Any) -> bool:
    return number(value, "divisibleby") % number(num, "divisibleby") == 0


TESTS: Mapping[str, Callable[..., bool]] = {
    "boolean": lambda value: isinstance(value, bool),
    "defined": lambda value: not isinstance(value, Undefined),
    "divisibleby": _divisible_by,
    "even": _even,
    "false": lambda value: value is False,
    "mapping": lambda value: isinstance(value, Mapping),
    "none": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float),
    "odd": _odd,
    "sequence": lambda value: isinstance(value, list | tuple),
    "string": lambda value: isinstance(value, str),
    "true": lambda value: value is True,
    "undefined": lambda value: isinstance(value, Undefined),
}
"""Tests (``x is NAME``) that templates may use, by name."""


def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of what a filter or test takes besides its value."""
    names = tuple(inspect.signature(function).parameters)
    return names[2:] if names[0] == "context" else names[1:]
