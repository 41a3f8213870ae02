"""The memory files of a scaffold, sorted by what they hold for this player.

A scaffold says how an entry looks. From the fields that it names follows what a file is:

- a *trail* gets one entry a step (a log; or a map whose key has fields);
- a *state* holds one entry, kept current (a note; or a map with a fixed key);
- *things* hold one entry for each thing in the world (`{what}` is among the fields).

A file without an entry, or with a field that cannot be filled here, is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from automem.models.scripted.entries import Form, form
from automem.models.scripted.reading import Briefing, PlannedFile

SHAPES: tuple[tuple[str, str], ...] = (
    ("step", r"\d+"),
    ("action", r"[A-Za-z]+(?: [A-Za-z]+)*?"),
    ("x", r"-?\d+"),
    ("y", r"-?\d+"),
    ("block", r"-?\d+_-?\d+"),
    ("facing", r"(?:north|south|west|east|unknown)"),
    ("status", r"h\d+ f\d+ d\d+ e\d+(?: asleep)?"),
    ("inventory", r"(?:\w+ \d+(?:, \w+ \d+)*|nothing)"),
    ("seen", r"(?:\w+ [NS]?[WE]?\d+, )*ahead \w+"),
    ("achieved", r"(?:\w+(?: \w+)*)"),
    ("planted", r"(?:-?\d+,-?\d+@\d+(?: -?\d+,-?\d+@\d+)*|none)"),
)
"""How the value of each field looks, as regular expressions."""

_OF_STEPS = frozenset(
    {"step", "action", "observation", "seen", "status", "inventory", "x", "y", "facing", "achieved", "planted"}
)
_OF_THINGS = frozenset({"what", "x", "y", "step", "block"})
_RECKONED = frozenset({"x", "y", "facing", "what", "block", "achieved", "planted"})


@dataclass(frozen=True, slots=True)
class Shelf:
    """A planned file and its role: "trail", "state" or "things".

    Attributes:
        line: an entry as it stands in the file (for maps ``key: value``).
    """

    file: PlannedFile
    role: str
    name: Form
    key: Form | None
    entry: Form
    line: Form

    @property
    def fields(self) -> tuple[str, ...]:
        return self.line.fields

    @property
    def reckoned(self) -> bool:
        """Whether writing it takes more than the observation at hand."""
        return not _RECKONED.isdisjoint(self.fields) or not _RECKONED.isdisjoint(self.name.fields)

    @property
    def placed(self) -> bool:
        """Whether its entries say where the player was."""
        return self.role != "things" and {"x", "y"} <= set(self.fields)

    @property
    def in_blocks(self) -> bool:
        return self.file.block > 0

    def block_file(self, x: int, y: int) -> str:
        """Name of the file that holds a cell."""
        side = self.file.block
        return self.file.name.replace("{block}", f"{x // side}_{y // side}")


@lru_cache(maxsize=64)
def shelves(briefing: Briefing) -> tuple[Shelf, ...]:
    """The files that this player can write and read."""
    return tuple(shelf for file in briefing.files if (shelf := _shelf(file)) is not None)


def _shelf(file: PlannedFile) -> Shelf | None:
    if not file.entry:
        return None
    if file.kind == "map" and not file.key:
        return None
    key = form(file.key, SHAPES) if file.kind == "map" else None
    entry = form(file.entry, SHAPES)
    line = form(f"{file.key}: {file.entry}", SHAPES) if key else entry
    fields = set(line.fields)
    if "what" in fields:
        if not {"x", "y"} <= fields or not fields <= _OF_THINGS or file.kind == "note":
            return None
        role = "things"
    elif fields <= _OF_STEPS and fields:
        role = "trail" if file.kind == "log" or (key and key.fields) else "state"
        if file.block:
            return None
    else:
        return None
    return Shelf(file, role, form(file.name, SHAPES), key, entry, line)
