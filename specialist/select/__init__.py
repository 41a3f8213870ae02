"""Selecting good memory decisions from traces: an engine judges, the recipe's quotas choose, everything is recorded.

`select` makes a `Selection` out of finished runs; `load` finds one on disk again.
"""

from specialist.select.engine import Engine, Reason, Verdict
from specialist.select.selection import Selection, load, select

__all__ = ["Engine", "Reason", "Selection", "Verdict", "load", "select"]
