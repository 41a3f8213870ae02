"""The curve of a training run: one line of JSON a step, written as it comes, so that anybody can watch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

CURVE = "curve.jsonl"


@dataclass(frozen=True, slots=True)
class Row:
    """How far a run is.

    Attributes:
        step: steps done; 0 before the first.
        steps: how many there will be.
        seconds: since training began, all tries together, loading not counted.
        tokens: of the examples trained so far, prompts and targets.
        loss: mean negative log-likelihood of the step's target tokens, in nats, before the step; None in a row that
            has a held-out loss.
        held_out: the same of examples that are never trained on, after the step.
        each: held-out loss of each example, in an order that is the same in every row; None in other rows.
        learning_rate: of the step.
        tokens_per_second: of the last steps, evaluation not counted.
        left: seconds until the end, as far as can be told.
    """

    step: int
    steps: int
    seconds: float
    tokens: int = 0
    loss: float | None = None
    held_out: float | None = None
    each: tuple[float, ...] | None = None
    learning_rate: float | None = None
    tokens_per_second: float | None = None
    left: float | None = None


class CurveReader:
    """Reads the rows of a curve that is being written."""

    def __init__(self, folder: Path) -> None:
        """Args: folder: of the run."""
        self._path = folder / CURVE
        self._read = 0

    def new(self) -> list[Row]:
        """Rows that came since the last call; all of them when the curve was cut back meanwhile."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return []
        if len(data) < self._read:
            self._read = 0
        lines = data[self._read :].split(b"\n")
        # What stands after the last line break is being written.
        self._read = len(data) - len(lines[-1])
        return [Row(**orjson.loads(line)) for line in lines[:-1] if line]


def rows(folder: Path) -> list[Row]:
    """All rows of a run's curve; none when it has not begun."""
    return CurveReader(folder).new()


def append(folder: Path, row: Row) -> None:
    """Add a row."""
    with (folder / CURVE).open("ab") as file:
        file.write(orjson.dumps(asdict(row), option=orjson.OPT_APPEND_NEWLINE))


def cut_back(folder: Path, step: int | None) -> list[Row]:
    """Forget what came after a step that is done again, all of it for None; returns what remains."""
    kept = [row for row in rows(folder) if step is not None and row.step <= step]
    scratch = folder / f".{CURVE}.part"
    scratch.write_bytes(b"".join(orjson.dumps(asdict(row), option=orjson.OPT_APPEND_NEWLINE) for row in kept))
    scratch.replace(folder / CURVE)
    return kept
