"""The candidate of an attempt: the files a reviewer edits, and what must hold of them before they are played."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping

import tomlkit
from tomlkit.exceptions import TOMLKitError

from automem.child import renamed
from automem.scaffold import Scaffold, ScaffoldError, identity_of
from meta.evidence import Attempt

LONGEST_NAME = 48
"""Characters of what stands for the loop in a candidate's version; a version has at most 64."""

LONGEST_PATH = 200
"""Characters of a file's path in a scaffold. It is copied to where folders lie deeper, and must fit there, too."""


def version_name(loop: str, number: str) -> str:
    """The version of an attempt's candidate: unlike any other, so that adopting it changes no file."""
    if len(loop) > LONGEST_NAME:  # names that are made up end with the time, which is what tells them apart
        digest = hashlib.sha256(loop.encode()).hexdigest()[:8]
        loop = f"{loop[: LONGEST_NAME - 9]}-{digest}"
    return f"{loop}-{number}"


def sources(parent: Scaffold, files: Scaffold, version: str) -> dict[str, bytes]:
    """The files that a candidate begins with: those of `files`, with its own name and its parent's identity."""
    found = {path: data for path, data in files.sources.items() if path != "notes.md"}
    found["scaffold.toml"] = renamed(files, version, parent.identity)
    return found


def content_of(files: Mapping[str, bytes]) -> str:
    """SHA-256 of what is played, whatever the version and its parent are called."""
    rest = dict(files)
    try:
        document = tomlkit.parse(rest["scaffold.toml"].decode("utf-8"))
        document["scaffold"]["version"] = ""
        document["scaffold"]["parent"] = ""
        rest["scaffold.toml"] = tomlkit.dumps(document).encode()
    except (TOMLKitError, KeyError, TypeError, UnicodeDecodeError, RecursionError):
        return hashlib.sha256(rest.get("scaffold.toml", b"")).hexdigest()
    return identity_of(rest)


def unfit(version: Scaffold) -> str:
    """Why no revision could be made from a version, or none of its files copied; empty when all can."""
    longest = max(version.sources, key=len)
    if len(longest) > LONGEST_PATH:
        return f"the path of {longest[:60]}… has {len(longest)} characters; at most {LONGEST_PATH} can be copied"
    try:
        again = tomllib.loads(renamed(version, "another", version.identity).decode("utf-8"))["scaffold"]
    except Exception as error:  # two parsers read the file, and a model wrote it
        return str(error) if isinstance(error, ScaffoldError) else f"scaffold.toml cannot be edited: {error}"
    if (again["version"], again["parent"]) != ("another", version.identity):
        return "scaffold.toml cannot be edited: write [scaffold] as a plain table"
    return ""


def problem(candidate: Scaffold, parent: Scaffold, version: str, earlier: Iterable[Attempt]) -> str:
    """Why a candidate that loads is not to be played; empty when it is.

    Args:
        candidate: as the reviewer left it.
        parent: what it was made from.
        version: the name it was given.
        earlier: attempts that are over.
    """
    named = candidate.schema.scaffold
    if (named.game, named.version, named.parent) != (parent.game, version, parent.identity):
        return (
            f"the reviewer changed [scaffold] of scaffold.toml: it says {named.game}/{named.version}, parent "
            f"{named.parent[:12] or 'none'}, and must say {parent.game}/{version}, parent {parent.identity[:12]}"
        )
    wrong = unfit(candidate)
    if wrong:
        return wrong
    content = content_of(candidate.sources)
    if content == content_of(parent.sources):
        return "the candidate is the same as its parent"
    for attempt in earlier:
        played = attempt.parent == parent.identity and attempt.played is not None
        if played and content_of(attempt.scaffold().sources) == content:
            return f"the same files were played as attempt {attempt.number}: {attempt.outcome}"
    return ""
