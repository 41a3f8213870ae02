"""What the tools of a decider work on: the search so far, the criteria, and the proposals of this round."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from automem.errors import UserError
from automem.trace import RunTrace
from automem.vocabulary import one_line
from meta.evidence import only
from meta.storage import read_json
from specialist.example import FACTS
from specialist.recipe import Recipe
from specialist.search.decider import Proposal
from specialist.search.ledger import Row
from specialist.search.storage import SearchFolder
from specialist.select.llm.criteria import Criteria

START = "start"
BASE = "base"
COLLECTED = "collect-"


@dataclass
class Room:
    """A round that is being decided on.

    Attributes:
        search: the search, and its settings.
        number: of the round.
        rows: the ledger.
        start: the recipe that the search began with.
        criteria: by which `llm` selects; None where the engine has no written criteria.
        shown: gate seeds whose episodes may be read.
        proposals: so far.
        closing: why the model came to an end; None until then.
    """

    search: SearchFolder
    number: int
    rows: tuple[Row, ...]
    start: Recipe
    criteria: Criteria | None
    shown: tuple[int, ...]
    proposals: list[Proposal] = field(default_factory=list)
    closing: str | None = None
    _traces: dict[str, RunTrace] = field(default_factory=dict)

    @property
    def finished(self) -> str | None:
        """Why the model came to an end; None until then."""
        return self.closing

    @property
    def width(self) -> int:
        """Proposals of the round at most."""
        return self.search.config.decider.width

    @property
    def author(self) -> str:
        """Who decides, in the record of versions of the criteria."""
        return f"the decider, round {self.number}"

    def row(self, number: str) -> Row:
        """A row of the ledger. Raises `UserError` that lists them."""
        for row in self.rows:
            if row.number == number.strip():
                return row
        there = ", ".join(row.number for row in self.rows[-40:]) or "none yet"
        raise UserError(f"there is no training run {one_line(number, 40)!r}; there are: {there}")

    def recipe(self, name: str) -> Recipe:
        """``start``, or the recipe of a row. Raises `UserError`."""
        return self.start if name.strip() == START else self.row(name).recipe

    def selection(self, row: Row) -> Path:
        """Where it is recorded what a row learnt from. Raises `UserError`."""
        if not row.data:
            raise UserError(f"{row.number} selected too few examples: {row.told}")
        for folder in sorted((self.search.folder / "data").glob("*")):
            facts = read_json(folder / "dataset" / FACTS)
            if isinstance(facts, dict) and facts.get("identity") == row.data:
                return folder / "selection"
        raise UserError(f"what {row.number} learnt from is no longer there")

    def written(self) -> Criteria:
        """The criteria. Raises `UserError` when there are none."""
        if self.criteria is None:
            raise UserError(f"the engine {self.search.config.engine.kind} has no written criteria")
        return self.criteria

    def trace(self, name: str) -> RunTrace:
        """A run that may be read: what was collected, or some gate seeds of a player. Raises `UserError`."""
        name = name.strip()
        if name not in self._traces:
            self._traces[name] = self._opened(name)
        return self._traces[name]

    def names(self) -> list[str]:
        """The runs that may be read now."""
        collected = self._collected()
        played = [BASE, *(row.number for row in self.rows if row.adapter)] if self.shown else []
        return [*collected, *(name for name in played if self._played(name).is_dir())]

    def _collected(self) -> dict[str, str]:
        """Name of a run to learn from -> where it is."""
        settings = self.search.config.collect
        if settings.traces:
            return {f"{COLLECTED}{i}": name for i, name in enumerate(settings.traces, start=1)}
        there = [path for path in (self.search.folder / "collect").glob("*") if path.name.isdigit()]
        return {f"{COLLECTED}{path.name}": str(path) for path in sorted(there, key=lambda path: int(path.name))}

    def _played(self, name: str) -> Path:
        return self.search.play(BASE if name == BASE else self.row(name).adapter, "gate")

    def _opened(self, name: str) -> RunTrace:
        collected = self._collected()
        if name in collected:
            return RunTrace(collected[name])
        if name not in self.names():
            there = ", ".join(self.names()) or "none yet"
            raise UserError(f"there is no run {one_line(name, 40)!r} to read; there are: {there}")
        return only(RunTrace(self._played(name)), self.shown)
