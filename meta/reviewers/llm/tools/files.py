"""Editing the candidate: only files that a scaffold can have, and nothing outside its folder."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from automem.check.folder import FILES, HOOKS, MOST_FILES, NOTES, PROMPTS, TOML
from automem.errors import UserError
from automem.scaffold import LARGEST_FILE, too_long
from automem.vocabulary import file_name_problem, one_line
from meta.dialogue.tool import Arguments, Tool
from meta.reviewers.llm.room import Room

_TEMPLATE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,60}\.j2")

_PLACES = f"{TOML}, {HOOKS}, {PROMPTS}NAME.j2 and {FILES}NAME"


class OfPath(Arguments):
    """A file."""

    path: str
    """scaffold.toml, hooks.py, prompts/NAME.j2 or files/NAME."""


class Write(OfPath):
    """A whole file."""

    text: Annotated[str, Field(max_length=LARGEST_FILE)]
    """All of its new contents."""


class Replace(OfPath):
    """A place in a file."""

    old: Annotated[str, Field(min_length=1, max_length=LARGEST_FILE)]
    """Text that stands in the file exactly once, white space included."""
    new: Annotated[str, Field(max_length=LARGEST_FILE)]
    """What takes its place."""


def write_file(room: Room, asked: Write) -> str:
    """Write a whole file."""
    path = _place(room, asked.path)
    if not path.exists() and sum(1 for _ in room.desk.candidate.rglob("*")) >= MOST_FILES:
        raise UserError(f"not written: a scaffold has at most {MOST_FILES} files")
    was = "written" if path.exists() else "created"
    _write(room, asked.path, path, asked.text)
    return f"{asked.path}: {was}, {len(asked.text.splitlines())} lines."


def replace_in_file(room: Room, asked: Replace) -> str:
    """Replace a text that stands in a file once."""
    path = _place(room, asked.path)
    text = _text(asked.path, path)
    count = text.count(asked.old)
    if count != 1:
        found = "does not stand in it" if count == 0 else f"stands in it {count} times"
        do = "read_file shows it to the character" if count == 0 else "give more of the text around it"
        raise UserError(f"{asked.path}: nothing was replaced: the old text {found}; {do}")
    _write(room, asked.path, path, text.replace(asked.old, asked.new))
    line = text[: text.index(asked.old)].count("\n") + 1
    return f"{asked.path}: replaced at line {line}."


def delete_file(room: Room, asked: OfPath) -> str:
    """Delete a file."""
    path = _place(room, asked.path)
    _text(asked.path, path)
    if asked.path == TOML:
        raise UserError(f"{TOML} cannot be deleted: there is no scaffold without it")
    path.unlink()
    room.edited()
    return f"{asked.path}: deleted."


def restore_file(room: Room, asked: OfPath) -> str:
    """Make a file what it is in the parent."""
    path = _place(room, asked.path)
    data = room.evidence.parent.sources.get(asked.path)
    if data is None:
        raise UserError(f"the parent has no {asked.path}; delete_file removes it from the candidate")
    text = data.decode("utf-8", "replace")
    if asked.path == TOML:
        text = _with_identity(text, _identity(_text(TOML, path)))
    _write(room, asked.path, path, text)
    return f"{asked.path}: as in the parent again."


def _place(room: Room, given: str) -> Path:
    """Where a file of the candidate is. Raises `UserError` for anything that no scaffold has."""
    if given == NOTES:
        raise UserError(f"{NOTES} is not edited: it is written from the analysis that you give to finish")
    name = given.partition("/")[2]
    allowed = (
        given in (TOML, HOOKS)
        or (given.startswith(PROMPTS) and _TEMPLATE.fullmatch(name) is not None)
        or (given.startswith(FILES) and not name.startswith(".") and file_name_problem(name) is None)
    )
    if not allowed:
        raise UserError(f"{one_line(given, 80)!r} is no file of a scaffold; there can be {_PLACES}")
    path = room.desk.candidate / given
    for place in (path, *path.parents):
        if place == room.desk.candidate:
            break
        if place.is_symlink():
            raise UserError(f"{given}: there is a link in its place, which is not followed")
    if path.exists() and not path.is_file():
        raise UserError(f"{given}: is no plain file")
    return path


def _text(given: str, path: Path) -> str:
    if not path.is_file():
        raise UserError(f"the candidate has no {given}; list_files shows what it has")
    return path.read_bytes().decode("utf-8", "replace")


def _write(room: Room, given: str, path: Path, text: str) -> None:
    data = text.encode("utf-8")  # arguments with half characters were refused before
    if len(data) > LARGEST_FILE:
        raise UserError(f"{given}: not written: {len(data)} bytes, and a file has at most {LARGEST_FILE}")
    if given == TOML:
        _keeps_identity(_text(TOML, path), text)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    room.edited()


def _keeps_identity(old: str, new: str) -> None:
    """Raise `UserError` when a new ``scaffold.toml`` is another version than the old one."""
    number = too_long(new)
    if number is not None:
        raise UserError(f"{TOML}: not written: line {number} is too long")
    if _identity(new) != _identity(old):
        raise UserError(f"{TOML}: not written: [scaffold] (game, version, parent) has to stay as it is")


def _identity(text: str) -> dict[str, Any]:
    try:
        section = tomllib.loads(text).get("scaffold")
    except (ValueError, RecursionError) as error:
        raise UserError(f"{TOML}: not written: not valid TOML: {error}") from error
    return section if isinstance(section, dict) else {}


def _with_identity(text: str, identity: dict[str, Any]) -> str:
    """A ``scaffold.toml`` with another game, version and parent, its comments kept."""
    import tomlkit

    document = tomlkit.parse(text)
    for name, value in identity.items():
        document["scaffold"][name] = value
    return tomlkit.dumps(document)


TOOLS = (
    Tool("write_file", "Write a whole file of the candidate, a new one or over an old one.", Write, write_file, True),
    Tool(
        "replace_in_file",
        "Replace a text in a file of the candidate; it must stand there exactly once.",
        Replace,
        replace_in_file,
        True,
    ),
    Tool("delete_file", "Delete a file of the candidate.", OfPath, delete_file, True),
    Tool("restore_file", "Make a file of the candidate what it is in the parent.", OfPath, restore_file, True),
)
