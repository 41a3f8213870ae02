"""What differs between the hooks of two scaffolds, told from their source without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from automem.hooks.source import METHODS
from automem.hooks.syntax import NotPython, parse
from automem.scaffold import Scaffold
from automem.scaffold_diff.lines import compare
from automem.scaffold_diff.said import Said
from automem.scaffold_diff.templates import shown_names

MEANING = {
    "reset": "sets up its state",
    "observe": "gives texts to the prompts, before LOG and PLAN",
    "maintain": "runs memory operations of its own, after LOG",
    "check_action": "may replace an action or ask to think again",
}
"""What a hook method is for."""


def hook_methods(*scaffolds: Scaffold) -> list[str]:
    """The hook methods that any of them has, in the order in which a step calls them, own operations last."""
    names = frozenset[str]().union(*(loaded.hooks.methods for loaded in scaffolds if loaded.hooks))
    return [name for name in METHODS if name in names] + sorted(names - METHODS.keys())


def hook_changes(a: Scaffold, b: Scaffold) -> Iterator[Said]:
    """Differences in words."""
    old, new = (v.hooks.text if v.hooks else "" for v in (a, b))
    if old != new:
        yield from _code(a, b, old, new)
    yield from _shown(a, b)
    before, after = a.schema.hooks.text_chars, b.schema.hooks.text_chars
    if before != after:
        yield Said("~", f"text_chars: {before} -> {after} (characters of one text)")


def _code(a: Scaffold, b: Scaffold, old: str, new: str) -> Iterator[Said]:
    diff = compare(old, new)
    if not a.hooks:
        yield Said("+", f"hooks.py: new code, {diff.added} lines")
    elif not b.hooks:
        yield Said("-", f"hooks.py: removed, {diff.removed} lines")
    else:
        yield Said("~", f"hooks.py: +{diff.added} -{diff.removed} lines")
    before, after = _methods(old), _methods(new)
    ours = (a.hooks.methods if a.hooks else frozenset[str](), b.hooks.methods if b.hooks else frozenset[str]())
    for name in hook_methods(a, b):
        if name not in ours[0]:
            yield Said("+", f"gained {name}: {_meaning(name)}")
        elif name not in ours[1]:
            yield Said("-", f"lost {name}: {_meaning(name)}")
        elif before.get(name) != after.get(name):
            yield Said("~", f"{name} changed")
    if not (a.hooks and b.hooks):
        return
    rest = [{k: v for k, v in found.items() if k not in ours[0] | ours[1]} for found in (before, after)]
    if rest[0] != rest[1]:
        yield Said("~", f"code around them changed{_names(rest[0], rest[1])}")
    elif before == after:
        yield Said("~", "only comments or layout changed")


def _names(old: dict[str, str], new: dict[str, str]) -> str:
    """Which other functions and classes differ, by name."""
    differing = sorted(name for name in old.keys() | new.keys() if name and old.get(name) != new.get(name))
    return f": {', '.join(differing[:8])}" + (" and more" if len(differing) > 8 else "") if differing else ""


def _meaning(name: str) -> str:
    return MEANING.get(name, f"carries out the operation {name.removeprefix('op_')}")


def _methods(source: str) -> dict[str, str]:
    """Name -> what the code is, whatever its layout: methods of Hooks, other definitions, and "" for the rest."""
    try:
        tree = parse(source)
        found: dict[str, str] = {"": ""}
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name == "Hooks":
                for inner in node.body:
                    name = inner.name if isinstance(inner, ast.FunctionDef) else ""
                    found[name] = found.get(name, "") + ast.dump(inner)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[node.name] = found.get(node.name, "") + ast.dump(node)
            else:
                found[""] += ast.dump(node)
        return found
    except (NotPython, RecursionError, MemoryError):
        return {"": source}


def _shown(a: Scaffold, b: Scaffold) -> Iterator[Said]:
    old, new = a.schema.hooks.shows, b.schema.hooks.shows
    for name in new:
        if name not in old:
            prompts = _prompts_showing(b, name)
            where = f"shown in {', '.join(prompts)}" if prompts else "but no prompt shows it"
            yield Said("+", f"gained the text {name}, {where}")
    for name in old:
        if name not in new:
            yield Said("-", f"lost the text {name}")
    for name in new:
        if name in old and (before := _prompts_showing(a, name)) != (after := _prompts_showing(b, name)):
            here, there = (", ".join(prompts) or "no prompt" for prompts in (before, after))
            yield Said("~", f"the text {name}: shown in {here} -> {there}")


def _prompts_showing(loaded: Scaffold, name: str) -> list[str]:
    return [
        path.removeprefix("prompts/")
        for path, data in sorted(loaded.sources.items())
        if path.startswith("prompts/")
        and shown_names(data.decode("utf-8", errors="replace")) & {"hooks", f"hooks.{name}"}
    ]
