"""What differs between two versions of a scaffold: first in words, then file by file.

`compare_scaffolds` finds the differences; `automem.scaffold_diff.terminal` and
`automem.scaffold_diff.page` show them.
"""

from __future__ import annotations

from dataclasses import dataclass

from automem.lineage import Lineage
from automem.scaffold import Scaffold
from automem.scaffold_diff.files import FileDiff, changed_files
from automem.scaffold_diff.said import Said, Section
from automem.scaffold_diff.words import explain

__all__ = ["FileDiff", "Said", "ScaffoldDiff", "Section", "compare_scaffolds"]


@dataclass(frozen=True, slots=True)
class ScaffoldDiff:
    """Two versions and what differs between them.

    Attributes:
        old, new: the versions.
        words: the differences in words, grouped.
        files: the files that differ, line by line.
    """

    old: Scaffold
    new: Scaffold
    words: tuple[Section, ...]
    files: tuple[FileDiff, ...]


def compare_scaffolds(old: Scaffold, new: Scaffold, lineage: Lineage) -> ScaffoldDiff:
    """What differs between two versions.

    Args:
        old, new: the versions.
        lineage: what is known, to say how they are related (`automem.lineage.read`).
    """
    return ScaffoldDiff(old, new, tuple(explain(old, new, lineage)), tuple(changed_files(old, new)))
