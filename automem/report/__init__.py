"""A report of runs: one HTML file with figures, charts and a replay of every episode."""

from __future__ import annotations

from automem.report.gather import Gathered, Missing, gather
from automem.report.write import page, write

__all__ = ["Gathered", "Missing", "gather", "page", "write"]
