"""Which files of two scaffolds differ, and how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from automem.scaffold import Scaffold
from automem.scaffold_diff.lines import TextDiff, compare, split

_RENAMED = 0.6
"""Share of lines in common from which a file counts as renamed."""

_ORDER = ("scaffold.toml", "hooks.py", "prompts/", "files/", "", "notes.md")


@dataclass(frozen=True, slots=True)
class FileDiff:
    """A file that differs.

    Attributes:
        path: relative to the scaffold, of the new one; of the old one if it was removed.
        status: what happened to it.
        diff: the lines.
        was: the old path of a renamed file, else empty.
    """

    path: str
    status: Literal["added", "removed", "renamed", "changed"]
    diff: TextDiff
    was: str = ""

    @property
    def title(self) -> str:
        """The path, with the old one where it was renamed."""
        return f"{self.was} -> {self.path}" if self.was else self.path

    @property
    def remark(self) -> str:
        """What a reader has to know besides the lines; empty when there is nothing."""
        if self.path == "notes.md":
            return "not played, and no part of the identity"
        return "" if self.diff.aligned else "too long to align line by line; shown as rewritten"


def changed_files(a: Scaffold, b: Scaffold) -> list[FileDiff]:
    """Every file that differs: schema first, then code, prompts, initial files, and notes last."""
    old, new = _texts(a), _texts(b)
    gone, come = old.keys() - new.keys(), new.keys() - old.keys()
    renamed = _renamed({p: old[p] for p in gone}, {p: new[p] for p in come})
    found = [
        FileDiff(path, "changed", compare(old[path], new[path]))
        for path in old.keys() & new.keys()
        if old[path] != new[path]
    ]
    found += [FileDiff(path, "renamed", compare(old[was], new[path]), was) for path, was in renamed.items()]
    found += [FileDiff(path, "removed", compare(old[path], "")) for path in gone - set(renamed.values())]
    found += [FileDiff(path, "added", compare("", new[path])) for path in come - renamed.keys()]
    return sorted(found, key=lambda file: (_rank(file.path), file.path))


def _texts(loaded: Scaffold) -> dict[str, str]:
    # Only files that nothing reads may be other than UTF-8; they are shown as far as they are text.
    return {path: data.decode("utf-8", errors="replace") for path, data in loaded.sources.items()}


def _rank(path: str) -> int:
    if path == "notes.md":
        return len(_ORDER)
    return next((i for i, start in enumerate(_ORDER) if start and path.startswith(start)), _ORDER.index(""))


def _renamed(gone: Mapping[str, str], come: Mapping[str, str]) -> dict[str, str]:
    """New path -> old path, of files in the same folder that have most of their lines in common."""
    alike = [
        (likeness, path, was)
        for was, before in gone.items()
        for path, after in come.items()
        if path.rpartition("/")[0] == was.rpartition("/")[0] and (likeness := _in_common(before, after)) >= _RENAMED
    ]
    found: dict[str, str] = {}
    for _, path, was in sorted(alike, reverse=True):
        if path not in found and was not in found.values():
            found[path] = was
    return found


def _in_common(a: str, b: str) -> float:
    left, right = (Counter(line for line in split(text) if line.strip()) for text in (a, b))
    total = left.total() + right.total()
    return 2 * (left & right).total() / total if total else 0.0
