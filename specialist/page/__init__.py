"""The page of a search: what was trained on what, why that was selected, and what it was worth; one HTML file.

Import it where it is used: a search that is running needs no charts.
"""

from specialist.page.page import render, write

__all__ = ["render", "write"]
