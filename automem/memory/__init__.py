"""The memory folder: what it holds, what operations do to it, and how it stands on disk."""

from automem.memory.disk import MemoryWriteFailed
from automem.memory.execute import Result
from automem.memory.memory import Memory
from automem.memory.store import FileSpec, Limits

__all__ = ["FileSpec", "Limits", "Memory", "MemoryWriteFailed", "Result"]
