"""The fixed blocks of text that templates place in a prompt.

A scaffold decides which blocks a prompt shows, where, and with what words around
them; the inside of a block is the same in every scaffold, so that a reader (a
model, a person, the `scripted` player) always finds the observation, the files and
the results of operations in the same shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

OBSERVATION_START = "=== STEP {step} | last action: {action} ==="
OBSERVATION_END = "=== END OF OBSERVATION ==="
NO_ACTION = "none"
CONSULTED = "=== MEMORY HAS BEEN CONSULTED ==="
"""Where a memory specialist is done and the base model is to act."""
MADE_BY_THE_AGENT = re.compile(
    r"--- [0-9]{1,4}\. [A-Z][A-Z0-9_]*\b|--- end of results ---|--- contents of \S|--- end of \S+ ---|=== STEP [0-9]|"
    + "|".join(map(re.escape, (OBSERVATION_END, CONSULTED)))
)
"""Marks of these blocks. A model that writes one makes up an answer or an observation."""
CHANGES: Mapping[str, str] = {
    "log": "write no line that says what the newest one says, but for its step; steps without a line changed nothing",
    "note": "write it when it would say something else, but for step numbers; until then it holds",
}
"""What ``changes = true`` asks of the model, by kind of file."""


def observation(step: int, last_action: str | None, text: str) -> str:
    """The observation of `step`, and the action whose outcome it shows."""
    start = OBSERVATION_START.format(step=step, action=last_action or NO_ACTION)
    return f"{start}\n{text}\n{OBSERVATION_END}"


def actions(available: Mapping[str, str]) -> str:
    """One line an action: ``- name: what it does``."""
    return "\n".join(f"- {name}: {meaning}" for name, meaning in available.items())


def file_reference(files: Iterable) -> str:
    """The files that the scaffold plans for, one item each.

    ``- map_notes.txt [log] where things are`` and below it, where the scaffold says how an
    entry looks, ``  entry: Step {step}, {action}: {observation}``. Maps name their key, block
    files the side of a block in cells: ``- map_{block}.txt [map, key {x},{y}, block 8] …``. A file
    that takes only what changed says so, and what that means: ``- recent.txt [log, changes only] …``.
    """
    lines = []
    for file in files:
        facts = [str(file.kind)]
        if file.key:
            facts.append(f"key {file.key}")
        if file.block:
            facts.append(f"block {file.block}")
        if file.changes:
            facts.append("changes only")
        if file.pin:
            facts.append("pinned")
        lines.append(f"- {file.name} [{', '.join(facts)}] {file.describe}".rstrip())
        if file.entry:
            lines.append(f"  entry: {file.entry}")
        if file.changes:
            lines.append(f"  changes only: {CHANGES[file.kind]}")
    return "\n".join(lines)


def memory_listing(files: Iterable[tuple[str, int, int]]) -> str:
    """The files that exist now: ``- name: lines, bytes``."""
    lines = [f"- {name}: {lines} lines, {size} bytes" for name, lines, size in files]
    return "\n".join(lines) or "(no files yet)"


def pinned(contents: Iterable[tuple[str, str]]) -> str:
    """The contents of pinned files, each between two marker lines."""
    return "\n".join(f"--- contents of {name} ---\n{text}\n--- end of {name} ---" for name, text in contents)


def results(executed: Sequence[tuple[str, str]]) -> str:
    """What operations answered, in the order in which they were written.

    Each is ``--- 1. TAIL map_notes.txt | 3 ---`` (see `automem.ops.Op.label`), then the answer.
    """
    answers = "\n".join(f"--- {i}. {label} ---\n{text}" for i, (label, text) in enumerate(executed, 1))
    return f"{answers}\n--- end of results ---" if answers else ""


def handed_over(results: str, told: str) -> str:
    """What the base model is told after a specialist has consulted memory: what was found, and the scaffold's words."""
    return "\n".join(filter(None, [results, CONSULTED, told]))
