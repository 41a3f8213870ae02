"""Recipes in words: all of one, and how one differs from another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specialist.recipe import Recipe


def whole(recipe: Recipe) -> list[tuple[str, str]]:
    """Section and setting, and its value, of everything that a recipe says."""
    return [(name, _value(value)) for name, value in _settings(recipe)]


def differences(start: Recipe, other: Recipe) -> list[tuple[str, str, str]]:
    """Settings that differ: which, and both values."""
    before, after = dict(_settings(start)), dict(_settings(other))
    return [(name, _value(before[name]), _value(after[name])) for name in before if before[name] != after[name]]


def _settings(recipe: Recipe) -> Iterator[tuple[str, Any]]:
    for section in ("data", "lora", "train"):
        for name, value in getattr(recipe, section).model_dump().items():
            yield f"{section}.{name}", value


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(value) if isinstance(value, tuple | list) else str(value)
