"""One process of a training run: ``python -m specialist.train FOLDER``, alone or by ``accelerate launch``.

``--with-parent`` ends it when its standard input does: however the process that started it may end.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from pathlib import Path

from automem.cache import exclusive
from automem.errors import UserError
from specialist.train import spec

WRONG, DIVERGED = 2, 3
"""Exit statuses: something a person can mend; a run that was stopped for good."""

LOCK = ".lock"


def main(folder: Path) -> int:
    """Train; the exit status."""
    first = int(os.environ.get("RANK", "0")) == 0
    begun = spec.begun(folder)
    if begun is None:
        print(f"{folder}: no training run was begun there", file=sys.stderr)
        return WRONG
    # A run that was just abandoned may need a moment to notice.
    with exclusive(folder / LOCK) if first else contextlib.nullcontext():
        from specialist.train.trainer import train

        try:
            train(folder, begun)
        except spec.Diverged as stopped:
            if first:
                spec.record_failure(folder, str(stopped))
            return DIVERGED
        except UserError as error:
            print(error, file=sys.stderr)
            return WRONG
    return 0


def _end_with_parent() -> None:
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 1):
            pass
    os._exit(1)


if __name__ == "__main__":
    if "--with-parent" in sys.argv:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.exit(main(Path(sys.argv[1])))
