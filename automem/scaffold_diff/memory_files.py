"""What differs between the memory files that two scaffolds plan, in words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from automem.scaffold import Scaffold
from automem.scaffold_diff.lines import compare
from automem.scaffold_diff.said import Said
from automem.schema import MemoryFile


def file_changes(a: Scaffold, b: Scaffold) -> Iterator[Said]:
    """Differences in words."""
    old, new = {f.name: f for f in a.schema.files}, {f.name: f for f in b.schema.files}
    renamed = _renamed(a, b)
    for name, file in old.items():
        if name not in new and name not in renamed.values():
            yield Said("-", f"{name}: removed; it was a {rules(file)}{_about(file)}")
    for name, file in new.items():
        was = old.get(renamed.get(name, name))
        if was is None:
            yield Said("+", f"{name}: new, a {rules(file)}{_about(file)}")
            continue
        if was.name != name:
            yield Said("~", f"{was.name} is now called {name}")
        yield from (Said("~", f"{name}: {change}") for change in _changes(was, file))
    yield from _initial(a, b, renamed)


def rules(file: MemoryFile) -> str:
    """Kind and rules of a file: ``map, keyed x,y, pinned``."""
    words = [file.kind, *_rules(file)]
    return ", ".join(words + (["pinned: shown in every prompt"] if file.pin else []))


def _rules(file: MemoryFile) -> Iterator[str]:
    if file.key:
        yield f"keyed {_bare(file.key)}"
    if file.block:
        yield f"one for each block of {file.block} x {file.block} cells"
    if file.max_lines is not None:
        yield f"at most {file.max_lines} lines"
    if file.changes:
        yield "only what changed"


def _about(file: MemoryFile) -> str:
    return f" ({file.describe})" if file.describe else ""


def _bare(template: str) -> str:
    """``x,y`` for ``{x},{y}``."""
    return template.replace("{", "").replace("}", "")


def _changes(old: MemoryFile, new: MemoryFile) -> Iterator[str]:
    if old.kind != new.kind:
        yield ", ".join([f"{old.kind} -> {new.kind}", *_rules(new)])
    else:
        if old.key != new.key:
            yield f"keyed {_bare(old.key) or 'as the model likes'} -> keyed {_bare(new.key) or 'as the model likes'}"
        if old.block != new.block:
            yield f"cells per side of a block: {old.block or 'no blocks'} -> {new.block or 'no blocks'}"
        if old.max_lines != new.max_lines:
            yield f"{_most(old)} -> {_most(new)}"
        if old.changes != new.changes:
            yield "now takes only what changed" if new.changes else "takes what did not change, too"
    if old.pin != new.pin:
        yield "now pinned: shown in every prompt" if new.pin else "no longer pinned: only its name is shown"
    if old.entry != new.entry:
        yield f"an entry: {_quoted(old.entry)} -> {_quoted(new.entry)}"
    if old.describe != new.describe:
        yield f"described as {_quoted(old.describe)} -> {_quoted(new.describe)}"


def _most(file: MemoryFile) -> str:
    return "any number of lines" if file.max_lines is None else f"at most {file.max_lines} lines"


def _quoted(text: str) -> str:
    return f'"{text}"' if text else "none"


def _renamed(a: Scaffold, b: Scaffold) -> dict[str, str]:
    """New name -> old name, where a file that is gone and one that has come are obviously the same."""
    old = {f.name: f for f in a.schema.files}
    new = {f.name: f for f in b.schema.files}
    gone = [f for name, f in old.items() if name not in new]
    come = [f for name, f in new.items() if name not in old]
    found: dict[str, str] = {}
    for file in come:
        fitting = [was for was in gone if _same_thing(was, file, a, b)]
        rivals = [other for other in come if fitting and _same_thing(fitting[0], other, a, b)]
        if len(fitting) == 1 and len(rivals) == 1:
            found[file.name] = fitting[0].name
    return found


def _same_thing(old: MemoryFile, new: MemoryFile, a: Scaffold, b: Scaffold) -> bool:
    """Said to be the same, begins the same, is written the same, or has a name that begins with the same word."""
    before, after = a.initial.get(old.name, ""), b.initial.get(new.name, "")
    return (
        (old.describe != "" and old.describe == new.describe)
        or (before.strip() != "" and before == after)
        or (old.entry != "" and (old.kind, old.entry, old.key) == (new.kind, new.entry, new.key))
        or _first_word(old.name) == _first_word(new.name) != ""
    )


def _first_word(name: str) -> str:
    """``map`` for ``map_notes.txt``; empty when the name begins with none."""
    found = re.match(r"[A-Za-z]{3,}(?![A-Za-z])", name)
    return found[0].lower() if found else ""


def _initial(a: Scaffold, b: Scaffold, renamed: dict[str, str]) -> Iterator[Said]:
    """How the memory folder differs at the start of an episode."""
    old, new = a.initial, b.initial
    kept = set()
    for name in sorted(new):
        was = name if name in old else renamed.get(name, name)
        kept.add(was)
        if was not in old:
            yield Said("+", f"{name}: begins with a text, {len(new[name])} characters")
        elif old[was] != new[name]:
            diff = compare(old[was], new[name])
            yield Said("~", f"{name}: begins with another text, +{diff.added} -{diff.removed} lines")
    for name in sorted(old.keys() - kept):
        yield Said("-", f"{name}: no longer begins with a text")
