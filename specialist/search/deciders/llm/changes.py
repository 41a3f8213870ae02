"""Recipes as a model writes them: a recipe that is there, and what is to be changed in it, by dotted names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from automem.errors import UserError
from automem.vocabulary import one_line
from specialist.recipe import GROUPS, Recipe

LARGEST: Mapping[str, float] = {
    "data.examples": 20_000,
    "data.minimum": 20_000,
    "data.per_episode": 20_000,
    "lora.rank": 512,
    "lora.alpha": 4096,
    "train.epochs": 20,
    "train.batch": 256,
    "train.accumulation": 1024,
    "train.cutoff": 131_072,
    "train.weight_decay": 1,
}
"""What a proposal may ask for at most; beyond that the mistake of a model would cost days, or what servers cannot
serve. A recipe that a person wrote may have more, and keeps it."""


def flat(recipe: Recipe) -> dict[str, Any]:
    """A recipe by dotted names, without its own name: ``{"lora.rank": 16, ...}``."""
    parts = recipe.model_dump(mode="json", exclude={"name"})
    return {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}


def differences(recipe: Recipe, other: Recipe) -> dict[str, Any]:
    """What the recipe has otherwise than the other one."""
    theirs = flat(other)
    return {name: value for name, value in flat(recipe).items() if value != theirs[name]}


def changed(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """The recipe with other values. Raises `UserError` that says everything that is wrong with them."""
    known = flat(recipe)
    given = dict(_flattened(changes))
    wrong = [problem for name, value in given.items() if (problem := _problem(name, value, known))]
    if wrong:
        raise UserError("; ".join(wrong[:8]))
    parts: dict[str, dict[str, Any]] = {}
    for name, value in {**known, **given}.items():
        part, _, field = name.partition(".")
        parts.setdefault(part, {})[field] = value
    try:
        return Recipe.model_validate(parts)
    except ValidationError as error:
        listed = [f"{'.'.join(map(str, e['loc'])) or 'recipe'}: {one_line(e['msg'], 200)}" for e in error.errors()]
        raise UserError("; ".join(listed[:8])) from None


def _flattened(changes: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Sections that a model wrote as objects are understood, too."""
    found: list[tuple[str, Any]] = []
    for name, value in changes.items():
        if isinstance(value, dict) and "." not in name:
            found += [(f"{name}.{inner}", one) for inner, one in value.items()]
        else:
            found.append((name, value))
    return found


def _problem(name: str, value: Any, known: Mapping[str, Any]) -> str:
    """What is wrong with a change; empty when nothing is, as far as can be told without the rest."""
    if name not in known:
        return f"a recipe has no {one_line(name, 60)!r}; it has {', '.join(known)}"
    if name == "lora.targets":
        return "" if value in tuple(GROUPS) else f"lora.targets: one of {', '.join(GROUPS)}"
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return f"{name}: has to be a plain value, not {one_line(str(value), 40)}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{name}: has to be finite"
    if name in LARGEST and not isinstance(value, str) and value > max(LARGEST[name], known[name]):
        return f"{name}: at most {LARGEST[name]:g}"
    if isinstance(value, str) and name != "train.schedule":
        return f"{name}: has to be a number"
    return ""
