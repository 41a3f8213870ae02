"""What of a revision is structure and what only wording.

Loop 1 rewrites how memory is organised; a prompt that says the same in other words is no revision. Structure is
what ``scaffold.toml`` sets apart from texts that describe, code apart from comments, what templates show and under
which conditions, and which files memory begins with.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, nodes

from automem.hooks.syntax import NotPython, parse
from automem.scaffold import Scaffold
from automem.schema import Schema

_ENVIRONMENT = Environment(autoescape=False)  # parses only; nothing is rendered with it

_WORDING = ("describe", "meaning")
"""Fields of ``scaffold.toml`` that only describe."""


@dataclass(frozen=True, slots=True)
class Changes:
    """How a scaffold differs from its parent.

    Attributes:
        any: something that is played differs.
        structural: the structural differences, in a few words each.
    """

    any: bool
    structural: tuple[str, ...]


def changes(parent: Scaffold, candidate: Scaffold) -> Changes:
    """What differs, apart from the version's name and ``notes.md``."""
    old, new = _played(parent), _played(candidate)
    same = old == new and _settings(parent.schema, ()) == _settings(candidate.schema, ())
    return Changes(not same, tuple(_structural(parent, candidate)))


def _played(loaded: Scaffold) -> dict[str, bytes]:
    return {path: data for path, data in loaded.sources.items() if path not in ("notes.md", "scaffold.toml")}


def _structural(parent: Scaffold, candidate: Scaffold) -> list[str]:
    old, new = (_settings(loaded.schema, _WORDING) for loaded in (parent, candidate))
    found = [f"[{section}] of scaffold.toml" for section in old if old[section] != new[section]]
    if _code(parent) != _code(candidate):
        found.append("hooks.py")
    before, after = _templates(parent), _templates(candidate)
    found += [name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)]
    if parent.initial.keys() != candidate.initial.keys():
        found.append("which files memory begins with")
    return found


def _settings(schema: Schema, without: tuple[str, ...]) -> dict[str, Any]:
    return {name: _stripped(value, without) for name, value in schema.model_dump(exclude={"scaffold"}).items()}


def _stripped(value: Any, without: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {key: _stripped(inner, without) for key, inner in value.items() if key not in without}
    if isinstance(value, list | tuple):
        return [_stripped(inner, without) for inner in value]
    return value


def _code(loaded: Scaffold) -> str:
    """The code whatever its layout and comments; empty when there is none."""
    if loaded.hooks is None:
        return ""
    try:
        return ast.dump(parse(loaded.hooks.text))
    except (NotPython, RecursionError, MemoryError):
        return loaded.hooks.text


def _templates(loaded: Scaffold) -> dict[str, Any]:
    """Each template without its texts: what it shows, in which order and under which conditions."""
    return {
        path: _skeleton(data.decode("utf-8", "replace"))
        for path, data in loaded.sources.items()
        if path.startswith("prompts/")
    }


def _skeleton(source: str) -> Any:
    try:
        return _shape(_ENVIRONMENT.parse(source))
    except (TemplateSyntaxError, RecursionError):
        return source


def _shape(node: nodes.Node) -> Any:
    """A node as plain values, texts left out."""
    shape: list[Any] = [type(node).__name__]
    for name, value in node.iter_fields():
        if isinstance(value, nodes.Node):
            shape.append((name, _shape(value)))
        elif isinstance(value, list):
            shape.append(
                (name, [_shape(one) if isinstance(one, nodes.Node) else one for one in value if not _said(one)])
            )
        else:
            shape.append((name, value))
    return shape


def _said(value: Any) -> bool:
    """It is nothing but text."""
    return isinstance(value, nodes.TemplateData) or (isinstance(value, nodes.Output) and all(map(_said, value.nodes)))
