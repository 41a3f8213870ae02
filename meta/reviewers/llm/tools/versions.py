"""Reading scaffolds: files, differences, the lineage, earlier attempts, and the manual of the format."""

from __future__ import annotations

import difflib

from automem.errors import UserError
from automem.lineage import Lineage
from automem.scaffold import Scaffold, ScaffoldError
from automem.scaffold_diff import compare_scaffolds, terminal
from automem.scaffold_diff.words import explain
from automem.visible import visible_lines
from meta.dialogue.tool import Paged, Tool, page_of, printed
from meta.evidence import Attempt
from meta.reviewers.llm import reference
from meta.reviewers.llm.room import CANDIDATE, PARENT, Room, without_notes

_UNKNOWN = Lineage({})
"""Differences are told without what runs measured: those may be runs on seeds that are held out."""

_MOST_LINES = 4_000
"""Lines of a file that are compared where a version does not load."""


class OfVersion(Paged):
    """A version."""

    version: str = CANDIDATE
    """candidate, parent, an attempt's number, or the first 12 digits of an ancestor's identity."""


class OfFile(OfVersion):
    """A file of a version."""

    path: str
    """As list_files lists it."""


class Differing(Paged):
    """Two versions."""

    old: str = PARENT
    """The one before."""
    new: str = CANDIDATE
    """The one after."""


class OfAttempt(Paged):
    """An attempt."""

    number: str
    """Its number."""


class Topic(Paged):
    """A chapter of the manual."""

    topic: str
    """Its name."""


def list_files(room: Room, asked: OfVersion) -> str:
    """Files of a version."""
    lines = [f"{path}  {len(data)} bytes" for path, data in sorted(room.sources(asked.version).items())]
    return page_of("\n".join(lines), asked.page)


def read_file(room: Room, asked: OfFile) -> str:
    """A file of a version."""
    sources = room.sources(asked.version)
    if asked.path not in sources:
        raise UserError(f"{asked.version} has no file {asked.path!r}; it has: {', '.join(sorted(sources))}")
    text = sources[asked.path].decode("utf-8", "replace")
    return page_of(text or "(the file is empty)", asked.page)


def diff(room: Room, asked: Differing) -> str:
    """What differs between two versions."""
    try:
        old, new = room.version(asked.old), room.version(asked.new)
    except ScaffoldError as error:
        changed = _plain_diff(room, asked)
        return page_of(f"One of them does not load, so only lines are compared: {error}\n{changed}", asked.page)
    found = compare_scaffolds(old, new, _UNKNOWN)
    return page_of(printed(lambda console: terminal.show(console, found)), asked.page)


def _plain_diff(room: Room, asked: Differing) -> str:
    old, new = room.sources(asked.old), room.sources(asked.new)
    lines: list[str] = []
    for path in sorted(old.keys() | new.keys()):
        if old.get(path) == new.get(path):
            continue
        before, after = (files.get(path, b"").decode("utf-8", "replace").splitlines() for files in (old, new))
        if max(len(before), len(after)) > _MOST_LINES:
            lines.append(f"{path}: too long to compare; {len(before)} lines and {len(after)}")
        else:
            lines += difflib.unified_diff(before, after, path, path, lineterm="")
    return visible_lines("\n".join(lines)) or "The files are alike."


def lineage(room: Room, asked: Paged) -> str:
    """The versions that the parent comes from."""
    parts = [f"The parent, {room.evidence.parent.ref} ({room.evidence.parent.identity[:12]})"]
    after: Scaffold | None = room.evidence.parent
    for version in room.ancestors():
        before = version.loaded
        if after is not None and before is not None:
            parts.append(_words(before, after))
        parts.append(f"was made from {version.ref} ({version.short})")
        after = before
    if len(parts) == 1:
        parts.append("is the root: no version that it was made from is known.")
    return page_of("\n".join(parts), asked.page)


def _words(old: Scaffold, new: Scaffold) -> str:
    lines = []
    for section in explain(without_notes(old), without_notes(new), _UNKNOWN):
        if section.title != "versions":
            lines.append(f"  {section.title}")
            lines += [f"    {said.mark} {visible_lines(said.text)}" for said in section.said]
    return "\n".join(lines) or "  nothing that is played differs"


def attempts(room: Room, asked: Paged) -> str:
    """What was tried before."""
    lines = [summary(attempt, room.evidence.parent.identity) for attempt in room.evidence.attempts]
    return page_of("\n".join(lines) or "Nothing was tried before.", asked.page)


def summary(attempt: Attempt, parent: str) -> str:
    """An attempt in a few lines."""
    made_from = "this parent" if attempt.parent == parent else f"another parent, {attempt.parent[:12]}"
    lines = [
        f"{attempt.number}: {attempt.outcome}; by {attempt.reviewer}, from {made_from}",
        f"   {attempt.description or '(no revision was made)'}",
        f"   {attempt.why}",
    ]
    return "\n".join(lines)


def read_attempt(room: Room, asked: OfAttempt) -> str:
    """All about one attempt."""
    attempt = room.attempt(asked.number)
    lines = [summary(attempt, room.evidence.parent.identity)]
    for look in attempt.looks:
        low, high = ("none" if bound is None else f"{100 * bound:+.2f}" for bound in (look.lower, look.upper))
        lines.append(
            f"after {look.seeds} seeds: candidate minus parent {100 * look.mean:+.2f} % progression, bounds {low} to "
            f"{high}: {look.decision}, {look.why}"
        )
    if attempt.findings:
        lines += ["what the checker said:", *(f"  {finding}" for finding in attempt.findings)]
    lines += ["analysis:", attempt.analysis or "(none)"]
    if attempt.identity:
        lines += ["what it changed:", _changed(room, attempt)]
    return page_of("\n".join(lines), asked.page)


def _changed(room: Room, attempt: Attempt) -> str:
    parents = (room.evidence.parent, *(version.loaded for version in room.ancestors()))
    old = next((parent for parent in parents if parent is not None and parent.identity == attempt.parent), None)
    if old is None:
        return "  its parent is not known here"
    try:
        return _words(old, attempt.scaffold())
    except ScaffoldError as error:
        return f"  it does not load: {error}"


def manual(room: Room, asked: Topic) -> str:
    """A chapter of the manual."""
    chapters = reference.chapters()
    if asked.topic not in chapters:
        raise UserError(f"there is no chapter {asked.topic!r}; there are: {', '.join(chapters)}")
    return page_of(chapters[asked.topic], asked.page)


TOOLS = (
    Tool("list_files", "The files of a version of the scaffold.", OfVersion, list_files),
    Tool("read_file", "A file of a version, to the character.", OfFile, read_file),
    Tool("diff", "What differs between two versions, in words and line by line.", Differing, diff),
    Tool("lineage", "Which versions the parent was made from, and what each of them changed.", Paged, lineage),
    Tool("attempts", "What was tried before in this search, and how each attempt ended.", Paged, attempts),
    Tool(
        "read_attempt",
        "One earlier attempt: its analysis, what it changed, what the checker and the gate said.",
        OfAttempt,
        read_attempt,
    ),
    Tool("manual", f"How scaffolds are written. Chapters: {', '.join(reference.chapters())}.", Topic, manual),
)
