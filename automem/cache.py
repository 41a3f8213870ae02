"""Where AutoMem keeps what is made once and used again: converted models, running servers' logs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_dir() -> Path:
    """The user's cache folder of AutoMem, made if it is not there.

    ``$AUTOMEM_CACHE``, else ``$XDG_CACHE_HOME/automem``, else ``~/.cache/automem``.
    """
    named = os.environ.get("AUTOMEM_CACHE")
    folder = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "automem"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file `path`; waits while another process holds it. The system frees it if we die."""
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
