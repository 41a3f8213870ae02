"""The ledger: one row for each training run, in the order in which they were made.

``ledger.jsonl`` is read by people, deciders and pages; DuckDB reads it as it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from automem.errors import UserError
from specialist.recipe import Recipe

LEDGER = "ledger.jsonl"

Outcome = Literal[
    "trained", "short", "refused", "diverged", "promoted", "dropped", "accepted", "rejected", "inconclusive", "unjudged"
]  # fmt: skip
"""``trained``: under way; ``short``: it selects too few examples to be trained; ``refused``: it
cannot be trained here; ``promoted``: halving trains it longer;
``dropped``: it goes on without it; ``unjudged``: the search has no gate; the rest is what stopped it, or what the gate
said."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Seen(_Strict):
    """One look of the gate (`meta.gate.Look`), progressions in [0, 1]."""

    seeds: int
    mean: float
    lower: float | None
    upper: float | None
    why: str


class Row(_Strict):
    """A training run."""

    number: str
    """round.proposal.rung, each from 1."""
    recipe: Recipe
    """As it was trained: a rung of halving trains fewer epochs than its proposal asks for."""
    why: str
    """Why it was proposed."""
    data: str
    """Identity of the dataset."""
    examples: int
    criteria: str = ""
    """Version of the written criteria by which was selected; empty where the engine has none."""
    training: str
    """Name of its folder under ``trainings/``."""
    adapter: str = ""
    """Identity of the adapter; empty when there is none."""
    losses: dict[str, float] = {}
    """As `specialist.adapter.Manifest.losses`."""
    seconds: float = 0.0
    """Of training."""
    tokens: int = 0
    """That were trained on, epochs counted."""
    outcome: Outcome
    told: str = ""
    """Why it ended so, for people."""
    looks: tuple[Seen, ...] = ()
    before: dict[str, float | None] = {}
    after: dict[str, float | None] = {}
    """Progression and behaviour metrics (`automem.metrics.rates`) on gate seeds: of what it was held against, and of
    itself."""
    cost: float = 0.0
    """USD of the episodes that it played, as far as prices are known."""

    @property
    def is_whole(self) -> bool:
        """Whether it was trained in full, and is there."""
        return bool(self.adapter) and self.outcome not in ("trained", "promoted", "dropped")

    @property
    def held_out_loss(self) -> float:
        """Nats per target token; infinite when nothing was measured."""
        return self.losses.get("held_out_after", float("inf"))

    @property
    def rank_loss(self) -> float:
        """By which training runs are ranked: the held-out loss; where no example is held out, that of training."""
        return self.losses.get("held_out_after", self.losses.get("train", float("inf")))


def read(folder: Path) -> list[Row]:
    """The rows of a search; empty while there are none. Raises `UserError` when the file is damaged."""
    path = folder / LEDGER
    try:
        return [Row.model_validate_json(line) for line in path.read_bytes().splitlines()]
    except FileNotFoundError:
        return []
    except (OSError, ValidationError) as error:
        raise UserError(f"{path}: cannot be read ({error}); remove it and resume: it is made again") from error


def write(folder: Path, rows: list[Row]) -> None:
    """Write all rows, whole or not at all. Raises `UserError`."""
    scratch = folder / f".{LEDGER}.part"
    try:
        scratch.write_text("".join(f"{row.model_dump_json()}\n" for row in rows), encoding="utf-8")
        scratch.replace(folder / LEDGER)
    except OSError as error:
        raise UserError(f"{folder / LEDGER}: {error.strerror}; free some space and resume") from error
