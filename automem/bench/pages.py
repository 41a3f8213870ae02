"""What people read of a bench: ``results.md`` and ``scoreboard.html``, from its ``results.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from automem.bench import markdown, scoreboard
from automem.bench.storage import SCOREBOARD, TABLES, Bench
from automem.errors import UserError


def write(bench: Bench, results: Mapping[str, Any]) -> None:
    """Write both, over older ones. Raises `UserError` when the disk refuses."""
    path = bench.folder / TABLES
    try:
        path.write_text(markdown.render(results), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
    scoreboard.write(results, bench.folder / SCOREBOARD, force=True)
