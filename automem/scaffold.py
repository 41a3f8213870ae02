"""Scaffolds: everything about the agent that may be revised, as files a person can review.

A scaffold is a folder ``scaffolds/<game>/<version>/``::

    scaffold.toml     identity, parent, limits, enabled operations, memory files and their kinds
    prompts/          Jinja2 templates, one a phase (`automem.prompts`)
    files/            initial contents of memory files
    notes.md          what changed from the parent, why, and what was measured

Loading checks all of it, so that a mistake is told before anything is played or paid for.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from automem.errors import UserError
from automem.memory import FileSpec, Limits, Memory
from automem.ops import OPERATIONS
from automem.prompts import Prompts, TemplateProblem

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

LARGEST_FILE = 256 * 1024
"""Bytes of one scaffold file. Scaffolds are meant to be read by people."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_REFERENCE = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")


class ScaffoldError(UserError):
    """A scaffold that is not there or not right; names the file and what to do."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


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

    log_turns: Annotated[int, Field(ge=1, le=50)] = 5
    """Replies of the model in one LOG phase."""
    plan_turns: Annotated[int, Field(ge=1, le=50)] = 5
    """Replies of the model in one PLAN phase."""
    reply_ops: Annotated[int, Field(ge=1, le=1000)] = 50
    """Operations of one reply that are run; the model is told of the rest."""
    search_results: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Lines that one search returns at most."""
    result_chars: Annotated[int, Field(ge=100, le=100_000)] = 2000
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


class Operations(_Strict):
    """Section ``[ops]``."""

    enabled: Annotated[tuple[str, ...], Field(min_length=1)]
    """Memory operations that the model may use. DONE and ACTION are always there."""

    @field_validator("enabled")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in OPERATIONS or name in ("ACTION", "DONE"):
                known = ", ".join(n for n in OPERATIONS if n not in ("ACTION", "DONE"))
                raise ValueError(f"unknown operation {name!r}; known are {known}")
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

    @model_validator(mode="after")
    def _fits_together(self) -> MemoryFile:
        if self.key and self.kind != "map":
            raise ValueError(f'{self.name}: only a map has a key; set kind = "map" or remove key')
        if ("{block}" in self.name) != (self.block > 0):
            raise ValueError(f"{self.name}: a name with {{block}} needs block = cells per side, and only such a name")
        if self.max_lines is not None and self.kind != "log":
            raise ValueError(f"{self.name}: max_lines is for logs")
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
        )


class Schema(_Strict):
    """All of ``scaffold.toml``."""

    scaffold: Identity
    limits: ScaffoldLimits = ScaffoldLimits()
    ops: Operations
    files: tuple[MemoryFile, ...] = ()

    @field_validator("files")
    @classmethod
    def _names_differ(cls, files: tuple[MemoryFile, ...]) -> tuple[MemoryFile, ...]:
        names = [file.name for file in files]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name} is listed twice")
        return files


@dataclass(frozen=True)
class Scaffold:
    """A loaded scaffold. Nothing in it changes during a run.

    Attributes:
        folder: where it was loaded from.
        identity: SHA-256 of its files (`identity_of`), 64 hex digits.
        schema: the checked ``scaffold.toml``.
        prompts: the compiled templates.
        initial: memory file name -> contents at the start of an episode.
        sources: relative path -> bytes, as they were when it was loaded.
    """

    folder: Path
    identity: str
    schema: Schema
    prompts: Prompts
    initial: Mapping[str, str]
    sources: Mapping[str, bytes]

    @property
    def game(self) -> str:
        """The game that it plays."""
        return self.schema.scaffold.game

    @property
    def ref(self) -> str:
        """``game/version``."""
        return f"{self.game}/{self.schema.scaffold.version}"

    def save(self, folder: Path) -> None:
        """Write the files, byte for byte as they were loaded, to a new folder."""
        for path, content in self.sources.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


def identity_of(sources: Mapping[str, bytes]) -> str:
    """SHA-256 over path, length and content of every file that is played, in path order.

    ``notes.md`` is left out: it tells what was measured, which is known only after the
    version has been evaluated, and nothing in it reaches the agent.
    """
    digest = hashlib.sha256()
    for path in sorted(sources):
        if path == "notes.md":
            continue
        digest.update(f"{path}\0{len(sources[path])}\0".encode())
        digest.update(sources[path])
    return digest.hexdigest()


def roots() -> tuple[Path, ...]:
    """Folders that hold scaffolds: the working folder's own first, then the project's."""
    here = Path.cwd() / "scaffolds"
    package = Path(__file__).resolve().parent
    shipped = (package.parent / "scaffolds", package / "_scaffolds")
    return tuple(dict.fromkeys(p for p in (here, *shipped) if p.is_dir()))


def available() -> tuple[str, ...]:
    """Every scaffold that can be named, as ``game/version``."""
    found = {
        f"{toml.parent.parent.name}/{toml.parent.name}" for root in roots() for toml in root.glob("*/*/scaffold.toml")
    }
    return tuple(sorted(found))


def find(ref: str) -> Path:
    """The folder of ``game/version``, or of a path to a folder. Raises `ScaffoldError`."""
    if _REFERENCE.fullmatch(ref):
        for root in roots():
            if (root / ref / "scaffold.toml").is_file():
                return root / ref
    if (Path(ref) / "scaffold.toml").is_file():
        return Path(ref)
    known = ", ".join(available()) or "none"
    raise ScaffoldError(f"no scaffold {ref!r}: neither a version nor a folder with a scaffold.toml. Known: {known}")


def load(ref: str) -> Scaffold:
    """Load and check a scaffold by ``game/version`` or path. Raises `ScaffoldError`."""
    folder = find(ref)
    sources = _read(folder)
    schema = _schema(folder / "scaffold.toml", sources["scaffold.toml"])
    if "hooks.py" in sources:
        raise ScaffoldError(
            f"{folder / 'hooks.py'}: scaffold code cannot be run yet. Remove hooks.py, or express the change in "
            "scaffold.toml and prompts/"
        )
    templates = {
        path[len("prompts/") :]: _text(folder, path, data)
        for path, data in sources.items()
        if path.startswith("prompts/")
    }
    try:
        prompts = Prompts(templates, schema.limits.model_dump())
    except TemplateProblem as problem:
        raise ScaffoldError(f"{folder / 'prompts'}/{problem}") from problem
    initial = {
        path[len("files/") :]: _text(folder, path, data) for path, data in sources.items() if path.startswith("files/")
    }
    try:
        Memory(None, [file.spec() for file in schema.files], schema.limits.for_memory(), initial=initial)
    except ValueError as error:
        raise ScaffoldError(f"{folder / 'files'}: {error}") from error
    return Scaffold(folder, identity_of(sources), schema, prompts, initial, sources)


def _read(folder: Path) -> dict[str, bytes]:
    sources = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if any(part.startswith(".") or part == "__pycache__" for part in relative.parts) or path.is_dir():
            continue
        if path.is_symlink() or not path.is_file():
            raise ScaffoldError(f"{path}: a scaffold holds plain files only; replace the link by the file itself")
        if path.stat().st_size > LARGEST_FILE:
            raise ScaffoldError(f"{path}: larger than {LARGEST_FILE} bytes; a scaffold is meant to be read by people")
        sources[relative.as_posix()] = path.read_bytes()
    return sources


def _text(folder: Path, path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ScaffoldError(f"{folder / path}: not UTF-8 text (byte {error.start}); save it as UTF-8") from error


def _schema(path: Path, data: bytes) -> Schema:
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ScaffoldError(f"{path}: not valid TOML: {error}") from error
    try:
        return Schema.model_validate(document)
    except ValidationError as error:
        problems = "\n".join(
            f"  {'.'.join(map(str, e['loc'])) or 'file'}: {e['msg'].removeprefix('Value error, ')}"
            for e in error.errors()
        )
        raise ScaffoldError(f"{path}: {error.error_count()} problem(s):\n{problems}") from error
