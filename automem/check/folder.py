"""Reading a scaffold's folder without trusting it: what is not a plain small text file is a finding, never followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from automem.check.report import Finding, error, warning
from automem.scaffold import LARGEST_FILE, identity_of

TOML = "scaffold.toml"
HOOKS = "hooks.py"
PROMPTS = "prompts/"
FILES = "files/"
NOTES = "notes.md"

MOST_FILES = 500
"""Files that a scaffold may have. A person could not review more, and a check would not end."""

_LARGE = 64 * 1024
"""Bytes of one file beyond which nobody reads it."""


@dataclass
class Contents:
    """The files of a scaffold's folder, as far as they can be used.

    Attributes:
        sources: relative path -> bytes.
        texts: relative path -> text, of those that are text.
        findings: what is wrong with files as such.
    """

    sources: dict[str, bytes] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def identity(self) -> str | None:
        """SHA-256 of the files; None where not all of them could be read."""
        unreadable = any(f.severity == "error" and f.code != "not-utf8" for f in self.findings)
        return None if unreadable else identity_of(self.sources)

    def below(self, folder: str) -> dict[str, str]:
        """Name -> text of the files in a folder (``prompts/``), without the folder."""
        return {path.removeprefix(folder): text for path, text in self.texts.items() if path.startswith(folder)}


def contents(folder: Path) -> Contents:
    """Read every file of the folder. Never raises for what is in it."""
    found = Contents()
    try:
        paths = list(islice(_walk(folder, found), MOST_FILES + 1))
    except OSError as problem:
        found.findings.append(_unreadable("", problem))
        return found
    if len(paths) > MOST_FILES:
        do = "keep what the agent needs; remove the rest"
        found.findings.append(error("", None, "too-many-files", f"more than {MOST_FILES} files", do))
    for path in sorted(paths[:MOST_FILES]):
        _read(folder, path, found)
    found.findings += _unused(found)
    return found


def _walk(folder: Path, found: Contents) -> Iterator[str]:
    """Paths of plain files, hidden ones left out and links not followed."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(folder / below) as entries:
            for entry in entries:
                path = f"{below}/{entry.name}" if below else entry.name
                if entry.name.startswith(".") or entry.name == "__pycache__":
                    continue
                if entry.is_symlink():
                    found.findings.append(_not_plain(path, "a link", "put the file itself in its place"))
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif entry.is_file(follow_symlinks=False):
                    yield path
                else:
                    found.findings.append(_not_plain(path, "neither file nor folder", "remove it"))


def _not_plain(path: str, what: str, do: str) -> Finding:
    return error(path, None, "not-a-file", f"{what}; a scaffold holds plain files only", do)


def _unreadable(path: str, problem: OSError) -> Finding:
    return error(path, None, "unreadable", f"cannot be read: {problem.strerror}", "make it readable")


def _read(folder: Path, path: str, found: Contents) -> None:
    try:
        descriptor = os.open(folder / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                found.findings.append(_not_plain(path, "not a plain file", "remove it"))
                return
            data = file.read(LARGEST_FILE + 1)
    except OSError as problem:
        found.findings.append(_unreadable(path, problem))
        return
    if len(data) > LARGEST_FILE:
        do = "shorten it: a scaffold is read by people"
        found.findings.append(error(path, None, "file-too-large", f"larger than {LARGEST_FILE} bytes", do))
        return
    if len(data) > _LARGE:
        do = "shorten it, or split it: a revision is reviewed as a diff"
        found.findings.append(warning(path, None, "file-large", f"{len(data)} bytes in one file", do))
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        do = "rename it"
        found.findings.append(error(path, None, "file-name", "the file's name is not UTF-8", do))
        return
    found.sources[path] = data
    try:
        found.texts[path] = data.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        message = f"not UTF-8 text (byte {problem.start})"
        found.findings.append(error(path, line, "not-utf8", message, "save it as UTF-8"))


def _unused(found: Contents) -> Iterator[Finding]:
    """Files that nothing reads. Templates that no template includes are `automem.check.templates`' to say."""
    for path in found.sources:
        if path in (TOML, HOOKS, NOTES) or path.startswith((PROMPTS, FILES)):
            continue
        message = "no part of a scaffold: nothing reads it, yet it makes this another version"
        if path.endswith(".py"):
            do = f"put its code into {HOOKS}, which cannot import other files, or remove it"
        else:
            do = f"remove it, or move it into {PROMPTS} or {FILES}"
        yield warning(path, None, "unused-file", message, do)
    if NOTES not in found.sources:
        do = "write what changed from the parent, why, and what was measured"
        yield warning(NOTES, None, "no-notes", "there is no notes.md", do)
