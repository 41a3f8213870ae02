"""The rules work from evidence: nothing in their source or data is taken from the reference revisions."""

from __future__ import annotations

import re
from pathlib import Path

import meta.reviewers.rules
from automem import scaffold

ROOT = Path(meta.reviewers.rules.__file__).parent
GAMES = ("crafter", "minihack", "nethack")


def names(version: str) -> set[str]:
    """What a version of each game calls its files, operations and texts."""
    found: set[str] = set()
    for game in GAMES:
        schema = scaffold.load(f"{game}/{version}").schema
        found |= {file.name for file in schema.files} | {operation.name for operation in schema.ops.own}
        found |= {f"hooks.{name}" for name in schema.hooks.shows}
    return found


def test_no_name_of_the_reference_revisions_is_known() -> None:
    theirs = names("v1") - names("v0")
    assert len(theirs) > 6
    text = "\n".join(path.read_text() for path in ROOT.rglob("*") if path.suffix in (".py", ".toml"))
    assert len(text) > 10_000
    assert [name for name in sorted(theirs) if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text)] == []
    assert not re.search(r"\bv1\b", text)


def test_no_game_is_known_by_name() -> None:
    """What is particular to a game is found in its traces; the rules name none."""
    for path in ROOT.rglob("*"):
        if path.suffix in (".py", ".toml"):
            assert not re.search(r"crafter|minihack|nethack|scripted", path.read_text(), re.IGNORECASE), path
