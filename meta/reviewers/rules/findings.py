"""What was measured: plain figures of memory files and of play, on which every rule decides.

All shares are in [0, 1]; sizes are characters, or bytes where that is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from automem.metrics import Counts, rates
from automem.schema import MemoryFile

WHOLE = "observation"
"""The field of entries that holds everything at once."""


@dataclass(frozen=True, slots=True)
class FieldFigures:
    """A field of a file's entry, as its lines fill it in.

    Attributes:
        chars: characters of its value, on average.
        repeated: share of these that stand in pieces which the file had been told before, word for word.
    """

    chars: float
    repeated: float


@dataclass(frozen=True, slots=True)
class FileFigures:
    """How a memory file, or a family of files, was used.

    Attributes:
        name: as the scaffold plans it; of a file that the model made itself, its own name.
        planned: its entry in ``scaffold.toml``; None when the model made it.
        writes: operations that put something into it.
        duplicates: those that told it the same again (`automem.duplicates`).
        added_bytes: bytes that it grew by, hooks' operations included.
        lines: lines that were written.
        chars: characters of them.
        repeated: share of these that stand in pieces (between punctuation) which it had been told before.
        placed: share of the lines that name a place: coordinates, or directions.
        with_key: share of the lines that have a key: coordinates anywhere, or words before a colon at the start.
        by_place: share of those whose key is coordinates.
        same_key: share of all lines whose key an earlier line had already.
        topics: topic -> share of the lines that speak of it.
        reads: READs and TAILs of it; `truncated` of them, searches included, were cut.
        searches: SEARCHes and COUNTs; `nothing` of them found no line, `empty` of these are SEARCHes; `misses` says
            with which words.
        read_steps: share of the steps at which it was read or searched, in the episodes in which it was at all.
        fields: of its entry, those lines that follow it.
        follows: share of the lines that follow its entry.
        short_again: share of the lines whose short fields alone say what those of an earlier line said; None where the
            entry has no place, or its fields are not apart.
        end_bytes, end_lines: size at the end of an episode, on average.
    """

    name: str
    planned: MemoryFile | None = None
    writes: int = 0
    duplicates: int = 0
    added_bytes: int = 0
    lines: int = 0
    chars: int = 0
    repeated: float = 0.0
    placed: float = 0.0
    with_key: float = 0.0
    by_place: float = 0.0
    same_key: float = 0.0
    topics: Mapping[str, float] = field(default_factory=dict)
    reads: int = 0
    truncated: int = 0
    searches: int = 0
    empty: int = 0
    nothing: int = 0
    misses: Mapping[str, int] = field(default_factory=dict)
    read_steps: float = 0.0
    fields: Mapping[str, FieldFigures] = field(default_factory=dict)
    follows: float = 0.0
    short_again: float | None = None
    end_bytes: float = 0.0
    end_lines: float = 0.0

    @property
    def line_chars(self) -> float:
        """Characters of a line, on average; 0 when nothing was written."""
        return self.chars / self.lines if self.lines else 0.0

    @property
    def duplicate_share(self) -> float:
        """Of its writes."""
        return self.duplicates / self.writes if self.writes else 0.0

    @property
    def consulted(self) -> int:
        """Results of it that the model was shown."""
        return self.reads + self.searches


@dataclass(frozen=True, slots=True)
class Measured:
    """All figures of a run, as far as it was looked at.

    Attributes:
        game: that was played.
        episodes, steps: that were looked at.
        counts: sums of behaviour over them (`automem.metrics`).
        progression: BALROG's score at the end, on average.
        files: name -> figures.
        invalid: action that the game does not have -> how often it was written.
        meant: such an action -> the action of the game that was played in its place, where it is clear.
        full_log, full_plan: share of the phases that used up their turns.
        first_prompt: characters of the first prompt of PLAN, system message and observation included, on average.
        shows: name of a field of entries -> whether the observations or actions have what it is about.
    """

    game: str
    episodes: int = 0
    steps: int = 0
    counts: Counts = field(default_factory=Counts)
    progression: float = 0.0
    files: Mapping[str, FileFigures] = field(default_factory=dict)
    invalid: Mapping[str, int] = field(default_factory=dict)
    meant: Mapping[str, str] = field(default_factory=dict)
    full_log: float = 0.0
    full_plan: float = 0.0
    first_prompt: float = 0.0
    shows: Mapping[str, bool] = field(default_factory=dict)

    @property
    def rates(self) -> dict[str, float]:
        """Behaviour as shares and means per step (`automem.metrics.rates`); 0 where there is nothing to divide by."""
        return {name: value or 0.0 for name, value in rates(self.counts).items()}

    def per_step(self, number: float) -> float:
        """A sum as a mean per step."""
        return number / self.steps if self.steps else 0.0
