"""The ``hooks.py`` of a revision: parts that do one thing each, put together into one class."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from automem.hooks.syntax import parse

PARTS: Mapping[str, str] = {"notice": "Notice", "words": "Words", "prune": "Prune", "repair": "Repair"}
"""Name of a part -> its class in ``parts/<name>.py``, in the order in which parts are called."""

_FOLDER = Path(__file__).with_name("parts")
_MARK = "# parts: "


class NotOurs(Exception):
    """The ``hooks.py`` was written, or changed, by someone else."""


def with_part(source: str | None, part: str, options: Mapping[str, Any]) -> str:
    """The ``hooks.py`` that does this as well.

    Args:
        source: the present one; None where there is none.
        part: one of `PARTS`.
        options: arguments of its class; they replace those that it had.

    Raises `NotOurs` when the present one is not what `assembled` made.
    """
    return assembled({**parts_of(source), part: dict(options)})


def parts_of(source: str | None) -> dict[str, dict[str, Any]]:
    """Which parts a ``hooks.py`` is made of: name -> options. Raises `NotOurs`."""
    if source is None:
        return {}
    line = next((line for line in source.splitlines() if line.startswith(_MARK)), None)
    try:
        parts = json.loads(line.removeprefix(_MARK)) if line else None
        if isinstance(parts, dict) and parts.keys() <= PARTS.keys() and assembled(parts) == source:
            return parts
    except (ValueError, TypeError):
        pass
    raise NotOurs("its hooks.py was written by someone else, and is left as it is")


def assembled(parts: Mapping[str, Mapping[str, Any]]) -> str:
    """The source: imports, the classes of the parts as they stand in their files, and ``Hooks`` that calls them."""
    chosen = [_read(name) for name in PARTS if name in parts]
    wanted = {line for part in chosen for line in part.imports}
    used = {method for part in chosen for method in part.methods}
    wanted |= {f"from automem.hooks import {name}" for method in used for name in _CALLS[method].needs}
    blocks = [
        '"""Assists the model\'s memory; put together from parts that do one thing each."""',
        _MARK + json.dumps({part.name: dict(parts[part.name]) for part in chosen}, sort_keys=True),
        "from __future__ import annotations",
        "\n".join(_in_order(wanted)),
        *(f"\n{part.body}" for part in chosen),
        "\nclass Hooks:\n" + '    """Calls the parts, in the order of this file."""',
        "    def reset(self, game: str, task: str) -> None:\n"
        + "\n".join(f"        self.{p.name} = {PARTS[p.name]}({_arguments(parts[p.name])})" for p in chosen),
    ]
    for method, call in _CALLS.items():
        calls = [f"self.{part.name}.{method}{call.arguments}" for part in chosen if method in part.methods]
        if calls:
            blocks.append(f"    def {method}{call.signature}:\n        return {call.join(calls)}")
    return "\n\n".join(blocks) + "\n"


@dataclass(frozen=True)
class _Part:
    """A part as its file has it."""

    name: str
    imports: tuple[str, ...]
    body: str
    methods: frozenset[str]


@dataclass(frozen=True)
class _Call:
    """How a method of ``Hooks`` looks, and how the answers of several parts become one."""

    signature: str
    arguments: str
    needs: tuple[str, ...]
    join: Callable[[list[str]], str]


_CALLS: Mapping[str, _Call] = {
    "observe": _Call(
        "(self, step: Step) -> dict[str, str]", "(step)", ("Step",), lambda calls: f"{{{_spread('**', calls)}}}"
    ),
    "maintain": _Call(
        "(self, step: Step, memory: Memory) -> list[Operation]",
        "(step, memory)",
        ("Memory", "Operation", "Step"),
        lambda calls: f"[{_spread('*', calls)}]",
    ),
    "check_action": _Call(
        "(self, step: Step, action: str) -> str | None", "(step, action)", ("Step",), lambda calls: " or ".join(calls)
    ),
}


def _spread(stars: str, calls: list[str]) -> str:
    return ", ".join(f"{stars}{call}" for call in calls)


def _arguments(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in sorted(options.items()))


def _read(name: str) -> _Part:
    """A part's file: its imports, and everything after them."""
    source = (_FOLDER / f"{name}.py").read_text(encoding="utf-8")
    tree = parse(source)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    last = max(node.end_lineno or 0 for node in imports)
    made = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == PARTS[name])
    methods = frozenset(node.name for node in made.body if isinstance(node, ast.FunctionDef))
    body = "\n".join(source.splitlines()[last:]).strip()
    return _Part(name, tuple(ast.unparse(node) for node in imports), body, methods & _CALLS.keys())


def _in_order(imports: set[str]) -> list[str]:
    """Those of the standard library first; names that come from one module in one line."""
    imports.discard("from __future__ import annotations")
    names: dict[str, set[str]] = {}
    plain = set()
    for line in imports:
        module, _, found = line.removeprefix("from ").partition(" import ")
        if line.startswith("from "):
            names.setdefault(module, set()).update(found.split(", "))
        else:
            plain.add(line)
    ours = names.pop("automem.hooks", set())
    lines = [*sorted(plain), *(f"from {module} import {', '.join(sorted(names[module]))}" for module in sorted(names))]
    return [*lines, *([""] if lines else []), f"from automem.hooks import {', '.join(sorted(ours))}"]
