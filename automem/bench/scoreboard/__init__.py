"""The page of a bench: its scoreboard, as one HTML file that needs nothing else."""

from automem.bench.scoreboard.page import MARK, render, write

__all__ = ["MARK", "render", "write"]
