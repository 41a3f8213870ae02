"""The trace of an episode: how it is written, how it is read, and what it can be asked."""

from __future__ import annotations

from automem.trace.frames import LEVEL, Damage, Frames, TraceWriteFailed, TraceWriter, read, truncate

__all__ = ["LEVEL", "Damage", "Frames", "TraceWriteFailed", "TraceWriter", "read", "truncate"]
