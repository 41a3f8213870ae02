"""Loops, slices and comparisons of templates, as filters that pay (`automem.templates.rewriting` puts them in)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import Undefined, pass_context
from jinja2.runtime import Context

from automem.templates.meter import CannotRender, fail, kind, meter_of, scalar, search_units, sequence


@pass_context
def _rounds(context: Context, value: Any, weight: int) -> Any:
    """What a ``for`` goes through; `weight` is what one round costs."""
    if isinstance(value, Undefined):
        fail(value)
    if isinstance(value, Mapping):
        value = tuple(value)
    elif not isinstance(value, str | list | tuple):
        raise CannotRender(f"for goes through a list, a table or a text, and this is {kind(value)}")
    meter_of(context).charge(weight * len(value))
    return value


@pass_context
def _slice(context: Context, value: Any, start: Any, stop: Any, step: Any) -> Any:
    items = sequence(value, "[:]")
    for bound in (start, stop, step):
        if bound is not None and not isinstance(bound, int):
            raise CannotRender(f"[:] is for whole numbers, and this is {kind(bound)}")
    meter_of(context).charge(1 + len(items) // 16)
    return items[start:stop:step]


@pass_context
def _flat(context: Context, value: Any) -> Any:
    """A list or tuple that a template has written, with items that are not literals."""
    for item in value:
        scalar(item, "a list written in a template")
    return value


def _compared(sign: str, compare: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    @pass_context
    def comparison(context: Context, left: Any, right: Any) -> bool:
        left, right = scalar(left, sign), scalar(right, sign)
        if isinstance(left, str) and isinstance(right, str):
            meter_of(context).charge(1 + min(len(left), len(right)) // 64)
        try:
            return compare(left, right)
        except TypeError:
            raise CannotRender(f"{sign} cannot compare {kind(left)} with {kind(right)}") from None

    return comparison


def _contains(context: Context, part: Any, whole: Any) -> bool:
    part = scalar(part, "in")
    if isinstance(whole, Undefined):
        fail(whole)
    meter = meter_of(context)
    if isinstance(whole, str):
        if not isinstance(part, str):
            raise CannotRender(f"in looks for a text in a text, and this is {kind(part)}")
        meter.charge(search_units(whole, part))
    elif isinstance(whole, list | tuple):
        meter.charge(1 + len(whole) * (1 + (len(part) // 64 if isinstance(part, str) else 0)))
    elif not isinstance(whole, Mapping):
        raise CannotRender(f"in looks into a text, a list or a table, and this is {kind(whole)}")
    return part in whole


@pass_context
def _in(context: Context, part: Any, whole: Any) -> bool:
    return _contains(context, part, whole)


@pass_context
def _not_in(context: Context, part: Any, whole: Any) -> bool:
    return not _contains(context, part, whole)


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "#rounds": _rounds,
    "#slice": _slice,
    "#flat": _flat,
    "#eq": _compared("==", operator.eq),
    "#ne": _compared("!=", operator.ne),
    "#gt": _compared(">", operator.gt),
    "#gteq": _compared(">=", operator.ge),
    "#lt": _compared("<", operator.lt),
    "#lteq": _compared("<=", operator.le),
    "#in": _in,
    "#notin": _not_in,
}
"""Filters that stand for operators; no template can write their names."""
