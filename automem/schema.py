"""The schema of ``scaffold.toml``: what a scaffold may say about limits, operations and memory files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from automem.memory import FileSpec, Limits
from automem.ops import OPERATIONS, RESERVED

ENTRY_FIELDS: Mapping[str, str] = {
    "step": "number of the step",
    "action": "the last action",
    "observation": "the whole observation on one line",
    "message": "the game's message (NetHack, MiniHack)",
    "seen": "what is in view, compactly",
    "status": "vital signs, compactly",
    "inventory": "what is carried, compactly",
    "x": "column: of the player in notes and logs, of the thing in maps",
    "y": "row, likewise",
    "facing": "what the player faces",
    "what": "the thing at x, y (maps)",
    "block": "the block of a map that x, y lie in",
    "level": "the dungeon level (NetHack, MiniHack)",
    "achieved": "achievements reached so far (Crafter)",
    "planted": "saplings, with place and step (Crafter)",
}
"""What `entry` and `key` may name in braces. An LLM reads an entry as an example of how to
write; the `scripted` player fills it in."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Identity(_Strict):
    """Section ``[scaffold]``."""

    game: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
    """The game that it plays: crafter, minihack, nethack or one that a plug-in adds."""
    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    """Its name beside other versions, the folder's name."""
    parent: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    """SHA-256 identity of the version it was made from; empty for a root."""


class ScaffoldLimits(_Strict):
    """Section ``[limits]``."""

    log_turns: Annotated[int, Field(ge=1, le=20)] = 5
    """Replies of the model in one LOG phase."""
    plan_turns: Annotated[int, Field(ge=1, le=20)] = 5
    """Replies of the model in one PLAN phase."""
    reply_ops: Annotated[int, Field(ge=1, le=100)] = 50
    """Operations of one reply that are run; the model is told of the rest."""
    search_results: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Lines that one search returns at most."""
    result_chars: Annotated[int, Field(ge=100, le=20_000)] = 2000
    """Characters that one result shows at most, the newest last."""
    max_files: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Files in the memory folder."""
    file_bytes: Annotated[int, Field(ge=1_000, le=1_000_000_000)] | None = None
    """Bytes of one memory file."""
    total_bytes: Annotated[int, Field(ge=1_000, le=4_000_000_000)] | None = None
    """Bytes of the memory folder."""

    def for_memory(self) -> Limits:
        """The part that the memory folder enforces."""
        names = ("search_results", "result_chars", "max_files", "file_bytes", "total_bytes")
        given = {name: getattr(self, name) for name in names}
        return Limits(**{name: value for name, value in given.items() if value is not None})


class OwnOperation(_Strict):
    """One ``[[ops.own]]`` entry: an operation that the scaffold adds, carried out by ``op_NAME`` of its hooks."""

    name: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,39}$")]
    """As written between the bars."""
    args: Annotated[str, Field(max_length=100, pattern=r"^[^\n<>]*$")] = ""
    """Its arguments for the operation reference, for instance ``thing|n``."""
    meaning: Annotated[str, Field(max_length=300, pattern=r"^[^\n]*$")]
    """What it does, in a few words, for the operation reference."""
    phase: Literal["log", "plan", "both"] = "both"
    """When the model may use it."""

    @field_validator("name")
    @classmethod
    def _not_built_in(cls, name: str) -> str:
        if name in OPERATIONS or name in RESERVED:
            raise ValueError(f"{name} means something else in replies; name an operation of your own otherwise")
        return name

    @property
    def reference(self) -> str:
        """Its line for `automem.ops.reference`: arguments, two spaces, meaning."""
        only = "" if self.phase == "both" else f" ({self.phase.upper()} only)"
        return f"{' '.join(self.args.split())}  {' '.join(self.meaning.split())}{only}"


class Operations(_Strict):
    """Section ``[ops]``."""

    enabled: Annotated[tuple[str, ...], Field(min_length=1)]
    """Built-in memory operations that the model may use. DONE and ACTION are always there."""
    own: Annotated[tuple[OwnOperation, ...], Field(max_length=32)] = ()
    """Operations that the scaffold adds."""

    @field_validator("enabled")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in OPERATIONS or name in ("ACTION", "DONE"):
                known = ", ".join(n for n in OPERATIONS if n not in ("ACTION", "DONE"))
                raise ValueError(f"unknown operation {name!r}; known are {known}, and those under [[ops.own]]")
        return names

    @field_validator("own")
    @classmethod
    def _names_differ(cls, own: tuple[OwnOperation, ...]) -> tuple[OwnOperation, ...]:
        names = [operation.name for operation in own]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name} is listed twice")
        return own

    @property
    def names(self) -> tuple[str, ...]:
        """Every operation that the model may use, built-in ones first."""
        return (*self.enabled, *(operation.name for operation in self.own))


class HooksSection(_Strict):
    """Section ``[hooks]``: what ``hooks.py`` gives to the prompts."""

    shows: Annotated[tuple[str, ...], Field(max_length=64)] = ()
    """Names of the texts that `observe` returns; templates show them as ``{{ hooks.NAME }}``."""
    text_chars: Annotated[int, Field(ge=100, le=20_000)] = 4000
    """Characters of one such text; the rest is cut off."""

    @field_validator("shows")
    @classmethod
    def _names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name):
                raise ValueError(f'{name!r} cannot name a text: use a-z, 0-9 and "_", a letter first')
            if names.count(name) > 1:
                raise ValueError(f"{name} is listed twice")
        return names


class MemoryFile(_Strict):
    """One ``[[files]]`` entry."""

    name: Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9._-]*(\{block\})?[A-Za-z0-9._-]*$")]
    """File name; may hold ``{block}``, which makes it a family of files, one a block of the map."""
    kind: Literal["note", "log", "map"]
    """note: free text; log: lines are added; map: one ``key: value`` line a key."""
    describe: str = ""
    """What belongs in it, for the model."""
    entry: str = ""
    """How an entry looks, with fields in braces (`ENTRY_FIELDS`)."""
    key: str = ""
    """Maps: how a key looks, for instance ``{x},{y}``."""
    block: Annotated[int, Field(ge=0, le=1000)] = 0
    """Side of a block in cells, for a name with ``{block}``."""
    pin: bool = False
    """Show the contents in the prompt, not only the name."""
    max_lines: Annotated[int, Field(ge=1)] | None = None
    """Logs: keep this many lines, dropping the oldest."""
    changes: bool = False
    """Notes and logs: take only what changed. A line that says what the newest says, but for its step number, is not
    added; a text that says what the file holds is not written."""

    @model_validator(mode="after")
    def _fits_together(self) -> MemoryFile:
        if self.key and self.kind != "map":
            raise ValueError(f'{self.name}: only a map has a key; set kind = "map" or remove key')
        if ("{block}" in self.name) != (self.block > 0):
            raise ValueError(f"{self.name}: a name with {{block}} needs block = cells per side, and only such a name")
        if self.max_lines is not None and self.kind != "log":
            raise ValueError(f"{self.name}: max_lines is for logs")
        if self.changes and self.kind == "map":
            raise ValueError(f"{self.name}: changes is for notes and logs; a map keeps one line a key anyway")
        for where, text in (("entry", self.entry), ("key", self.key)):
            for placeholder in _PLACEHOLDER.findall(text):
                if placeholder not in ENTRY_FIELDS:
                    raise ValueError(
                        f"{self.name}: {where} names {{{placeholder}}}; known fields are {', '.join(ENTRY_FIELDS)}"
                    )
        return self

    def spec(self) -> FileSpec:
        """The same, as the memory folder takes it."""
        return FileSpec(
            name=self.name,
            kind=self.kind,
            describe=self.describe,
            entry=self.entry,
            key=self.key,
            block=self.block,
            pin=self.pin,
            max_lines=self.max_lines,
            changes=self.changes,
        )


class Schema(_Strict):
    """All of ``scaffold.toml``."""

    scaffold: Identity
    limits: ScaffoldLimits = ScaffoldLimits()
    ops: Operations
    hooks: HooksSection = HooksSection()
    files: Annotated[tuple[MemoryFile, ...], Field(max_length=64)] = ()

    @field_validator("files")
    @classmethod
    def _names_differ(cls, files: tuple[MemoryFile, ...]) -> tuple[MemoryFile, ...]:
        names = [file.name for file in files]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name} is listed twice")
        return files
