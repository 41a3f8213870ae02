"""The trace of an episode: how it is written, how it is read, and what it can be asked.

Writing and reading need little and are here at once; questions (`EpisodeTrace`, `RunTrace`, `sql`) are
imported when they are first used, so that playing does not wait for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from automem.trace.frames import Damage, read, truncate
from automem.trace.writer import TraceWriteFailed, TraceWriter

if TYPE_CHECKING:
    from automem.trace.episode import EpisodeTrace
    from automem.trace.query import sql
    from automem.trace.run import RunTrace

__all__ = [
    "Damage",
    "EpisodeTrace",
    "RunTrace",
    "TraceWriteFailed",
    "TraceWriter",
    "read",
    "sql",
    "truncate",
]

_QUESTIONS = {"EpisodeTrace": "automem.trace.episode", "RunTrace": "automem.trace.run", "sql": "automem.trace.query"}


def __getattr__(name: str) -> Any:
    if name in _QUESTIONS:
        import importlib

        return getattr(importlib.import_module(_QUESTIONS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
