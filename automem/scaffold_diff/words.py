"""What differs between two scaffolds, in words: what a reviewer wants to know before reading any line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from automem.lineage import SHORT, Lineage
from automem.lineage_scores import paired, scores
from automem.scaffold import Scaffold
from automem.scaffold_diff.code import hook_changes
from automem.scaffold_diff.lines import compare
from automem.scaffold_diff.memory_files import file_changes
from automem.scaffold_diff.said import Mark, Said, Section
from automem.scaffold_diff.templates import shown_names
from automem.schema import OwnOperation
from automem.vocabulary import OPERATIONS, render

LIMITS: Mapping[str, str] = {
    "log_turns": "replies in one LOG phase",
    "plan_turns": "replies in one PLAN phase",
    "reply_ops": "operations run of one reply",
    "search_results": "lines that a search shows",
    "result_chars": "characters that one result shows",
    "max_files": "files in the memory folder",
    "file_bytes": "bytes of one memory file",
    "total_bytes": "bytes of the memory folder",
}
"""Limits in words."""


def explain(a: Scaffold, b: Scaffold, lineage: Lineage) -> list[Section]:
    """The differences in words, grouped; sections without a difference are left out, the first is always there."""
    parts: dict[str, Callable[[], Iterator[Said]]] = {
        "versions": lambda: _versions(a, b, lineage),
        "memory files": lambda: file_changes(a, b),
        "operations": lambda: _operations(a, b),
        "limits": lambda: _limits(a, b),
        "hooks": lambda: hook_changes(a, b),
        "prompts": lambda: _prompts(a, b),
        "other files": lambda: _others(a, b),
        "measured": lambda: _measured(a, b, lineage),
    }
    sections = [Section(title, tuple(said())) for title, said in parts.items()]
    return [section for section in sections if section.said]


def _versions(a: Scaffold, b: Scaffold, lineage: Lineage) -> Iterator[Said]:
    if a.game != b.game:
        yield Said("~", f"they play different games: {a.game} and {b.game}")
    if a.identity == b.identity:
        same = a.sources.get("notes.md") == b.sources.get("notes.md")
        yield Said(
            " ", "the same version: all files that are played are alike" + ("" if same else "; notes.md differs")
        )
        return
    yield Said(" ", _kinship(a, b, lineage))
    if a.ref == b.ref:
        yield Said("~", f"both call themselves {a.ref}: one of them was changed in place")


def _kinship(a: Scaffold, b: Scaffold, lineage: Lineage) -> str:
    above_a = lineage.ancestors(a.identity, a.schema.scaffold.parent)
    above_b = lineage.ancestors(b.identity, b.schema.scaffold.parent)
    for young, old, above in ((b, a, above_b), (a, b, above_a)):
        if old.identity in above:
            between = above[: above.index(old.identity)]
            if not between:
                return f"{_called(young)} is a child of {_called(old)}"
            path = ", ".join(lineage.name(identity) for identity in reversed(between))
            return f"{_called(young)} descends from {_called(old)}, by way of {path}"
    shared = next((identity for identity in above_b if identity in above_a), None)
    if shared == a.schema.scaffold.parent == b.schema.scaffold.parent:
        return f"{_called(a)} and {_called(b)} are both children of {lineage.name(shared or '')}"
    if shared:
        return f"{_called(a)} and {_called(b)} share the ancestor {lineage.name(shared)}"
    ends = [f"{_called(v)} {_origin(above, lineage)}" for v, above in ((a, above_a), (b, above_b))]
    return f"no ancestor in common is known: {'; '.join(ends)}"


def _origin(above: list[str], lineage: Lineage) -> str:
    if not above:
        return "is a root"
    if above[-1] in lineage.versions:
        return f"goes back to {lineage.name(above[-1])}"
    return f"goes back to {above[-1][:SHORT]}, which is not known here"


def _called(loaded: Scaffold) -> str:
    return f"{loaded.ref} ({loaded.identity[:SHORT]})"


def _operations(a: Scaffold, b: Scaffold) -> Iterator[Said]:
    old, new = a.schema.ops, b.schema.ops
    for name in OPERATIONS:
        if (name in old.enabled) != (name in new.enabled):
            gained = name in new.enabled
            yield Said("+" if gained else "-", f"{'gained' if gained else 'lost'} {name}: {OPERATIONS[name].meaning}")
    before, after = {o.name: o for o in old.own}, {o.name: o for o in new.own}
    for name in sorted(before.keys() - after.keys()):
        yield Said("-", f"lost {_own(before[name])}")
    for name in sorted(after.keys() - before.keys()):
        yield Said("+", f"gained {_own(after[name])}")
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            yield Said("~", f"{_own(before[name])} -> {_own(after[name])}")


def _own(operation: OwnOperation) -> str:
    only = "" if operation.phase == "both" else f", in {operation.phase.upper()} only"
    return f"{render(operation.name, [operation.args.strip()])}, of its own{only}: {operation.meaning.strip()}"


def _limits(a: Scaffold, b: Scaffold) -> Iterator[Said]:
    old, new = a.schema.limits.model_dump(), b.schema.limits.model_dump()
    for name, before in old.items():
        if before != new[name]:
            meaning = f" ({LIMITS[name]})" if name in LIMITS else ""
            yield Said("~", f"{name}: {_number(before)} -> {_number(new[name])}{meaning}")


def _number(value: Any) -> str:
    return "default" if value is None else str(value)


def _prompts(a: Scaffold, b: Scaffold) -> Iterator[Said]:
    old, new = _below(a, "prompts/"), _below(b, "prompts/")
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if before is None or after is None:
            there = after if after is not None else before or ""
            shows = ", ".join(sorted(shown_names(there)))
            words = "new" if before is None else "removed"
            yield Said(
                "+" if before is None else "-", f"{name}: {words}, {_lines(there)}, shows {shows or 'no variable'}"
            )
            continue
        diff = compare(before, after)
        names, names_now = shown_names(before), shown_names(after)
        gained, lost = sorted(names_now - names), sorted(names - names_now)
        words = f"{name}: +{diff.added} -{diff.removed} lines, {len(before)} -> {len(after)} characters"
        words += f"; now shows {', '.join(gained)}" if gained else ""
        words += f"; no longer shows {', '.join(lost)}" if lost else ""
        yield Said("~", words)


def _below(loaded: Scaffold, folder: str) -> dict[str, str]:
    return {
        path.removeprefix(folder): data.decode("utf-8", errors="replace")
        for path, data in loaded.sources.items()
        if path.startswith(folder)
    }


def _lines(text: str) -> str:
    n = len(text.splitlines())
    return "1 line" if n == 1 else f"{n} lines"


def _others(a: Scaffold, b: Scaffold) -> Iterator[Said]:
    """Files that are none of the above, and notes."""
    for path in sorted(a.sources.keys() | b.sources.keys()):
        if path in ("scaffold.toml", "hooks.py") or path.startswith(("prompts/", "files/")):
            continue
        if a.sources.get(path) == b.sources.get(path):
            continue
        what = "not played" if path == "notes.md" else "nothing reads it, but it counts for the identity"
        if path not in a.sources:
            yield Said("+", f"{path}: new ({what})")
        elif path not in b.sources:
            yield Said("-", f"{path}: removed ({what})")
        else:
            yield Said("~", f"{path}: changed ({what})")


def _measured(a: Scaffold, b: Scaffold, lineage: Lineage) -> Iterator[Said]:
    """What runs measured of both, and how they compare on the episodes that both played."""
    if a.identity == b.identity:
        return
    versions = [lineage.versions.get(loaded.identity) for loaded in (a, b)]
    old, new = (scores(version) if version else [] for version in versions)
    for loaded, found in ((a, old), (b, new)):
        for score in found:
            remark = f" ({score.remark})" if score.remark else ""
            yield Said(" ", f"{loaded.ref}, {score.player}, {score.played}: {score.figures}, run {score.run}{remark}")
    for score in new:
        difference = None if score.repeats else paired(score, old)
        if difference is not None:
            mark: Mark = "~" if not difference.clear else "+" if difference.difference > 0 else "-"
            runs = f"runs {difference.run} and {score.run}"
            yield Said(mark, f"{b.ref} against {a.ref}, {score.player}: {difference.figures}, {runs}")
