"""Where AutoMem keeps what is made once and used again: converted models, running servers' logs."""

from __future__ import annotations

import fcntl
import os
import threading
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


class Stopped(Exception):
    """Waiting for a lock was given up because the caller asked for that."""


@contextmanager
def exclusive(path: Path, stop: threading.Event | None = None) -> Iterator[None]:
    """Hold the lock file `path`; waits while another process holds it. The system frees it if we die.

    Raises `Stopped` when `stop` is set while waiting.
    """
    stop = stop or threading.Event()
    with path.open("a") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if stop.wait(0.05):
                    raise Stopped(f"stopped while waiting for {path}") from None
        yield
