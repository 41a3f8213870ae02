"""Folders of one kind under ``runs/``: those that hold a file of a certain name, which says what they are."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import tomli_w
from pydantic import BaseModel, ValidationError

from automem import runs
from automem.errors import UserError


class Named(Protocol):
    """What every such file says."""

    @property
    def name(self) -> str: ...

    @property
    def created(self) -> str: ...


class Folder(Protocol):
    """A folder of a kind."""

    @property
    def config(self) -> Named: ...


Kept = TypeVar("Kept", bound=Folder)
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Shelf(Generic[Kept]):
    """All folders of a kind.

    Attributes:
        file: the name of the file that makes a folder one of them.
        what, plural: what people call one of them, and several.
        read: from a folder to what is in it; raises `UserError`.
    """

    file: str
    what: str
    plural: str
    read: Callable[[Path], Kept]

    def exists(self, name: str) -> bool:
        """Whether there is one of this name."""
        return (runs.runs_folder() / name / self.file).is_file()

    def is_one(self, name: str) -> bool:
        """Whether a name, or the path of a folder, is one's."""
        return self.exists(name) or (Path(name) / self.file).is_file()

    def load(self, name: str) -> Kept:
        """One by name, or by the path of its folder. Raises `UserError`."""
        for folder in (runs.runs_folder() / name, Path(name)):
            if (folder / self.file).is_file():
                return self.read(folder)
        known = ", ".join(one.config.name for one in self.all()[:8]) or "none yet"
        raise UserError(f"no {self.what} {name!r} in {runs.runs_folder()}/. The latest {self.plural}: {known}")

    def all(self) -> list[Kept]:
        """All readable ones, the latest first."""
        found = []
        for path in runs.runs_folder().glob(f"*/{self.file}"):
            try:
                found.append(self.read(path.parent))
            except UserError:
                continue
        return sorted(found, key=lambda one: one.config.created, reverse=True)


def read_toml(path: Path, kind: type[Model], what: str, missing: dict[str, Any] | None = None) -> Model:
    """What a TOML file says, checked.

    Args:
        path: of the file.
        kind: what it has to be.
        what: how people call it.
        missing: values of what is not there: TOML has no None.

    Raises `UserError`.
    """
    try:
        return kind.model_validate((missing or {}) | tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise UserError(f"{path}: not a {what} of this version of AutoMem: {error}") from error


def write_toml(path: Path, settings: BaseModel) -> None:
    """Write settings, over older ones, so that they are there whole or as they were. Raises `UserError`."""
    scratch = path.with_name(f".{path.name}.part")
    try:
        scratch.write_text(tomli_w.dumps(settings.model_dump(mode="json", exclude_none=True)), encoding="utf-8")
        scratch.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
