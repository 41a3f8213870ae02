"""Scaffolds: everything about the agent that may be revised, as files a person can review.

A scaffold is a folder ``scaffolds/<game>/<version>/``::

    scaffold.toml     identity, parent, limits, enabled operations, memory files and their kinds
    prompts/          Jinja2 templates, one a phase (`automem.prompts`)
    files/            initial contents of memory files
    hooks.py          optional code (`automem.hooks`)
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

from pydantic import ValidationError

from automem.errors import UserError
from automem.hooks import source
from automem.hooks.source import HookSource
from automem.memory import Memory
from automem.prompts import Prompts, TemplateProblem
from automem.schema import Schema

LARGEST_FILE = 256 * 1024
"""Bytes of one scaffold file. Scaffolds are meant to be read by people."""

LONGEST_LINE = 2000
"""Characters of a line of ``scaffold.toml``: a parser takes the square of the time for a key of so many parts."""

_REFERENCE = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")


class ScaffoldError(UserError):
    """A scaffold that is not there or not right; names the file and what to do."""


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
        hooks: its ``hooks.py``, read but not run; None when it has none.
    """

    folder: Path
    identity: str
    schema: Schema
    prompts: Prompts
    initial: Mapping[str, str]
    sources: Mapping[str, bytes]
    hooks: HookSource | None = None

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
        write_files(folder, self.sources)


def write_files(folder: Path, sources: Mapping[str, bytes]) -> None:
    """Write a scaffold's files, relative path -> bytes."""
    for path, content in sources.items():
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
    hooks = _hooks(folder, schema, sources)
    templates = {
        path[len("prompts/") :]: _text(folder, path, data)
        for path, data in sources.items()
        if path.startswith("prompts/")
    }
    try:
        prompts = Prompts(templates, schema.limits.model_dump(), schema.hooks.shows)
    except TemplateProblem as problem:
        raise ScaffoldError(f"{folder / 'prompts'}/{problem}") from problem
    initial = {
        path[len("files/") :]: _text(folder, path, data) for path, data in sources.items() if path.startswith("files/")
    }
    try:
        Memory(None, [file.spec() for file in schema.files], schema.limits.for_memory(), initial=initial)
    except ValueError as error:
        raise ScaffoldError(f"{folder / 'files'}: {error}") from error
    return Scaffold(folder, identity_of(sources), schema, prompts, initial, sources, hooks)


def _read(folder: Path) -> dict[str, bytes]:
    sources = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if any(part.startswith(".") or part == "__pycache__" for part in relative.parts):
            continue
        if path.is_dir() and not path.is_symlink():
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


def _hooks(folder: Path, schema: Schema, sources: Mapping[str, bytes]) -> HookSource | None:
    own = [operation.name for operation in schema.ops.own]
    if "hooks.py" not in sources:
        if own or schema.hooks.shows:
            needs = f"operation {own[0]}" if own else f"text {schema.hooks.shows[0]}"
            raise ScaffoldError(f"{folder / 'scaffold.toml'}: the {needs} needs a hooks.py, and there is none")
        return None
    hooks = source.read(_text(folder, "hooks.py", sources["hooks.py"]), own)
    if hooks.problems:
        raise ScaffoldError("\n".join(f"{folder / 'hooks.py'}:{p.line}: {p.message}" for p in hooks.problems))
    return hooks


def too_long(text: str) -> int | None:
    """The first line of a ``scaffold.toml``, from 1, that has more than `LONGEST_LINE` characters.

    Only a newline ends a line of TOML; U+2028 and its like do not.
    """
    return next((number for number, line in enumerate(text.split("\n"), 1) if len(line) > LONGEST_LINE), None)


def _schema(path: Path, data: bytes) -> Schema:
    text = _text(path.parent, path.name, data)
    number = too_long(text)
    if number is not None:
        raise ScaffoldError(f"{path}:{number}: longer than {LONGEST_LINE} characters; break it up")
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ScaffoldError(f"{path}: not valid TOML: {error}") from error
    try:
        return Schema.model_validate(document)
    except ValidationError as error:
        problems = "\n".join(
            f"  {'.'.join(map(str, e['loc'])) or 'file'}: {e['msg'].removeprefix('Value error, ')}"
            for e in error.errors()
        )
        raise ScaffoldError(f"{path}: {error.error_count()} problem(s):\n{problems}") from error
