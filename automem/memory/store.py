"""The memory files of one episode: which there are, which there may be, and how much they may hold."""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

from automem.memory.files import MapFile, TextFile

Kind = Literal["note", "log", "map"]

_FILES_NAMED = 20
"""File names listed in one message to the model."""


@dataclass(frozen=True, slots=True)
class FileSpec:
    """A file, or a family of files, that the scaffold plans for.

    Attributes:
        name: file name; with ``{block}`` it stands for every file whose name fits.
        kind: note (free text), log (lines are added) or map (one ``key: value`` line a key).
        describe: what belongs in it.
        entry: how an entry looks.
        key: maps: how a key looks. ``{x},{y}`` makes it the map that UPSERT_MAP writes to.
        block: side of a block in cells, for a name with ``{block}``.
        pin: its contents are shown in the prompt.
        max_lines: logs: how many lines are kept, the oldest are dropped; None for all.
        changes: notes and logs: what says no more than the newest line, but for its step number, is not written.
    """

    name: str
    kind: Kind = "note"
    describe: str = ""
    entry: str = ""
    key: str = ""
    block: int = 0
    pin: bool = False
    max_lines: int | None = None
    changes: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """Fits the names that this is for, as a whole."""
        return re.compile(".+".join(re.escape(part) for part in self.name.split("{block}")))

    @property
    def by_coordinate(self) -> bool:
        """A map whose key a coordinate alone fills in."""
        rest = self.key.replace("{x}", "").replace("{y}", "")
        return self.kind == "map" and "{x}" in self.key and "{y}" in self.key and "{" not in rest


@dataclass(frozen=True, slots=True)
class Limits:
    """What a memory folder may hold and show. Each is at least 1, else ValueError."""

    search_results: int = 100
    """Lines that one search shows at most."""
    result_chars: int = 2000
    """Characters that one result shows at most, the line that says what was left out included."""
    max_files: int = 256
    """Files in the folder."""
    file_bytes: int = 64 * 2**20
    """Bytes of one file: verbatim notes of 470 characters at each of 100,000 steps fit."""
    total_bytes: int = 128 * 2**20
    """Bytes of all files together."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            if getattr(self, limit.name) < 1:
                raise ValueError(f"memory limit {limit.name} must be at least 1, not {getattr(self, limit.name)}")


class Refused(Exception):
    """An operation cannot be run and changed nothing; the text is for the model."""


class Store:
    """The files, by name.

    Attributes:
        files: name -> file.
        names: their names, sorted.
        removed: names that were removed since the folder was last brought level.
        clock: counts operations, to order lines across files.
    """

    def __init__(self, specs: Sequence[FileSpec], limits: Limits) -> None:
        self.specs = tuple(specs)
        self.limits = limits
        self.files: dict[str, TextFile | MapFile] = {}
        self.names: list[str] = []
        self.removed: set[str] = set()
        self.clock = 0
        self.coordinates = next((spec for spec in self.specs if spec.by_coordinate), None)
        self._families = tuple((spec, spec.pattern) for spec in self.specs)
        self._total = 0

    def spec(self, name: str) -> FileSpec | None:
        """What the scaffold plans for a file of this name; of several specs the first."""
        return next((spec for spec, pattern in self._families if pattern.fullmatch(name)), None)

    def is_map(self, name: str) -> bool:
        """Whether the file of this name is a map, or would be once it is made."""
        file = self.files.get(name)
        if file is not None:
            return isinstance(file, MapFile)
        spec = self.spec(name)
        return spec is not None and spec.kind == "map"

    def existing(self, name: str) -> TextFile | MapFile:
        """The file to read; an empty one where the scaffold plans for a file that is not there yet."""
        file = self.files.get(name)
        if file is not None:
            return file
        if self.spec(name) is not None:
            return TextFile()
        named = ", ".join(self.names[:_FILES_NAMED]) or "none"
        more = len(self.names) - _FILES_NAMED
        raise Refused(f"there is no file {name}. Files: {named}{f' and {more} more' if more > 0 else ''}")

    def text_file(self, name: str, growth: int) -> TextFile:
        """The note or log to write `growth` bytes to, made if it is not there."""
        if self.is_map(name):
            raise Refused(f"{name} is a map. Write <|UPSERT|>{name}|key|value<|END|>")
        file = self.writable(name, growth)
        assert isinstance(file, TextFile)
        return file

    def map_file(self, name: str, growth: int) -> MapFile:
        """The map to write `growth` bytes to, made if it is not there."""
        self.require_map(name)
        file = self.writable(name, growth)
        assert isinstance(file, MapFile)
        return file

    def require_map(self, name: str) -> None:
        """Refuse a file that is no map."""
        if not self.is_map(name):
            maps = ", ".join(spec.name for spec in self.specs if spec.kind == "map") or "none"
            raise Refused(f"{name} is not a map; maps: {maps}")

    def writable(self, name: str, growth: int) -> TextFile | MapFile:
        """The file to write `growth` bytes to (negative: it shrinks), made if it is not there.

        What does not grow is never refused for want of room.
        """
        file = self.files.get(name)
        limits = self.limits
        if file is None and len(self.files) >= limits.max_files:
            raise Refused(f"there are {len(self.files)} files already and no more are allowed; nothing was changed")
        size = file.size if file is not None else 0
        if growth > 0 and size + growth > limits.file_bytes:
            raise Refused(f"{name} holds {size} of {limits.file_bytes} bytes, this needs {growth}; nothing was changed")
        if growth > 0 and self._total + growth > limits.total_bytes:
            raise Refused(
                f"memory holds {self._total} of {limits.total_bytes} bytes, this needs {growth}; nothing was changed"
            )
        if file is None:
            file = self._make(name)
        return file

    def _make(self, name: str) -> TextFile | MapFile:
        spec = self.spec(name)
        file: TextFile | MapFile
        if spec is not None and spec.kind == "map":
            file = MapFile()
        else:
            file = TextFile(spec.max_lines if spec is not None and spec.kind == "log" else None)
        self.files[name] = file
        insort(self.names, name)
        self.removed.discard(name)
        return file

    def grew(self, growth: int) -> None:
        """Count bytes that a file grew by, negative if it shrank."""
        self._total += growth

    def remove(self, name: str) -> int:
        """Remove a file that is there; how many bytes it held."""
        size = self.files.pop(name).size
        self.names.remove(name)
        self.removed.add(name)
        self._total -= size
        return size
