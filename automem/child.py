"""Making a version from another one: its files, its own name, and its parent's identity."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tomlkit
from pydantic import ValidationError
from tomlkit.exceptions import TOMLKitError

from automem import lineage, runs, scaffold
from automem.errors import UserError
from automem.scaffold import Scaffold, ScaffoldError
from automem.schema import Identity

NOTES = """\
# {ref}

Made from {parent}, identity `{identity}`.

## What changed

## Why

## Measured
"""
"""A new version's ``notes.md``: the questions that whoever reviews it will ask."""


@dataclass(frozen=True)
class Child:
    """A version that has just been made.

    Attributes:
        scaffold: it, loaded.
        parent: ref of its parent.
        parent_identity: as its ``scaffold.toml`` now says.
        restore: the files come from a folder that was changed in place after its version was evaluated, and
            the parent is the version as it was evaluated; the command that puts its files back. Else empty.
    """

    scaffold: Scaffold
    parent: str
    parent_identity: str
    restore: str


def make_child(ref: str, source: str) -> Child:
    """Copy a version's files to ``scaffolds/<game>/<version>`` in the working folder, as a child of it.

    Args:
        ref: ``game/version`` of the new one.
        source: the parent, as `lineage.resolve` takes it.

    Raises `UserError` when the name cannot be used or is taken; then nothing is left behind.
    """
    game, version = _names(ref)
    parent = lineage.resolve(source)
    if parent.game != game:
        raise UserError(
            f"{parent.ref} plays {parent.game}, so it cannot have a child {ref}; write {parent.game}/{version}"
        )
    found = runs.all_runs()
    _check_free(ref, game, version, found)
    identity, restore = parent.identity, ""
    changed = lineage.changed_since_evaluated(parent, found)
    if changed:
        evaluated = lineage.played_under(parent.ref, found)
        if parent.identity not in evaluated:
            # The changed files were never evaluated, and go back to what they were: they are nobody's parent.
            identity, restore = next(iter(evaluated)), lineage.how_to_restore(parent, changed)
    files = {path: data for path, data in parent.sources.items() if path != "notes.md"}
    files["scaffold.toml"] = renamed(parent, version, identity)
    files["notes.md"] = NOTES.format(ref=ref, parent=parent.ref, identity=identity).encode()
    target = Path("scaffolds") / game / version
    try:
        with _new_folder(target) as folder:
            scaffold.write_files(folder, files)
            made = scaffold.load(str(folder))
            if made.ref != ref or made.schema.scaffold.parent != identity:
                raise UserError(f"{parent.folder / 'scaffold.toml'}: [scaffold] cannot be edited; write it as a table")
    except OSError as error:
        raise UserError(f"{target}: cannot be made: {error.strerror or error}") from error
    return Child(scaffold.load(str(target)), parent.ref, identity, restore)


def _names(ref: str) -> tuple[str, str]:
    game, slash, version = ref.partition("/")
    if not slash:
        raise UserError(f"{ref!r}: write the new version as GAME/VERSION, for instance crafter/{ref or 'v1'}")
    try:
        Identity(game=game, version=version)
    except ValidationError as error:
        raise UserError(
            f"{ref!r} cannot name a version: use letters, digits, '_' and '-' (in the version also '.'), "
            "at most 64 in each part, a letter or digit first"
        ) from error
    return game, version


def _check_free(ref: str, game: str, version: str, found: list[runs.Run]) -> None:
    target = Path("scaffolds") / game / version
    taken = [target, *(root / game / version for root in scaffold.roots())]
    for folder in taken:
        if folder.exists() or folder.is_symlink():
            raise UserError(f"{folder} is there already; choose another version for the child")
    played = lineage.played_under(ref, found)
    if played:
        run = next(iter(played.values()))[0].config.name
        raise UserError(f"run {run} has played another {ref}, so the name is taken; choose another version")


def renamed(parent: Scaffold, version: str, identity: str) -> bytes:
    """The parent's ``scaffold.toml`` for a child of another name; comments and layout stay. Raises `ScaffoldError`.

    Args:
        parent: the version whose files are taken.
        version: the child's name.
        identity: the identity of the child's parent, 64 hex digits.
    """
    path = parent.folder / "scaffold.toml"
    # Decoded from bytes: text mode would turn CRLF into LF, and the whole file into a change.
    text = parent.sources["scaffold.toml"].decode("utf-8")
    try:
        document = tomlkit.parse(text)
        section = document["scaffold"]
        section["version"] = version
        section["parent"] = identity
        return tomlkit.dumps(document).encode("utf-8")
    except (TOMLKitError, KeyError, TypeError, RecursionError) as error:
        raise ScaffoldError(f"{path}: cannot be edited ({error}); write [scaffold] as a plain table") from error


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `target` when all went well, and is gone otherwise."""
    made = [folder for folder in (target.parent, target.parent.parent) if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    # One level deeper than scaffolds lie, so that nobody finds it half made.
    scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
    folder = scratch / target.name
    try:
        folder.mkdir()
        yield folder
        folder.rename(target)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        for empty in made:
            with contextlib.suppress(OSError):
                empty.rmdir()
        raise
    scratch.rmdir()
