"""Which Boxoban levels an episode is played on: the user's, the fetched ones, or generated ones."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path

from games.boxoban.generate import generate
from games.boxoban.levels import LEVEL_SETS, BoxobanError, Level, cache_folder, read

VARIABLE = "AUTOMEM_BOXOBAN_LEVELS"


@dataclass(frozen=True, slots=True)
class Source:
    """Where the levels of a set come from.

    Attributes:
        kind: "official" (files) or "generated"; results carry it, so that the two are never mixed.
        level_set: "hard" or "medium".
        folder: the folder of the set's files; None when generated.
    """

    kind: str
    level_set: str
    folder: Path | None = None

    def level(self, seed: int) -> Level:
        """The level of this seed; the same on every machine that has the same files."""
        if self.folder is None:
            return generate(self.level_set, seed).level
        files = sorted(self.folder.glob("*.txt"))
        if not files:
            raise BoxobanError(f"no level files (*.txt) in {self.folder}; `automem games fetch` gets the official ones")
        choose = random.Random(f"boxoban {self.level_set} {seed}")
        path = choose.choice(files)
        return choose.choice(read(path, f"{LEVEL_SETS[self.level_set].as_posix()}/{path.name}"))


def find_source(level_set: str) -> Source:
    """The folder that `AUTOMEM_BOXOBAN_LEVELS` names, else the user's cache, else the generator.

    Raises:
        BoxobanError: when the variable names a folder that does not hold this set.
    """
    below = LEVEL_SETS[level_set]
    if named := os.environ.get(VARIABLE):
        folder = Path(named) / below
        if not folder.is_dir():
            raise BoxobanError(
                f"{VARIABLE} is {named!r}, but there is no folder {folder}; "
                "point it at a copy of boxoban-levels, or unset it"
            )
        return Source("official", level_set, folder)
    folder = cache_folder() / below
    return Source("official", level_set, folder) if folder.is_dir() else Source("generated", level_set)
