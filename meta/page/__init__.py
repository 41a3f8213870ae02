"""The page of a loop: what was tried, what was kept and why, and what it was worth; one HTML file.

Import it where it is used: a loop that is being searched needs no charts.
"""

from meta.page.page import render, write

__all__ = ["render", "write"]
