"""Model folders that are made once, in a process of their own, and kept in the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from automem.cache import exclusive

ROOT = Path(__file__).resolve().parents[2]
TAIL = 8
"""Lines of what the process said that an error ends with."""


def made_once(target: Path, command: Sequence[str], failed: Callable[[str], Exception]) -> Path:
    """The folder `target`; made the first time by `command`, which is given the folder to write as its last argument.

    Two processes that ask at once make it once; what was cut short leaves nothing that looks finished.

    Args:
        target: where it is or will be.
        command: run from the folder that holds our packages. In a process of its own, torch stays out of the one that
            plays, and its memory is given back.
        failed: takes the end of what the command said, and returns what is raised.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(target.with_name(f"{target.name}.lock")):
        if target.is_dir():
            return target
        draft = target.with_name(f"{target.name}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        done = subprocess.run(
            [*command, str(draft)],
            env=os.environ | {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "TRANSFORMERS_VERBOSITY": "error"},
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            shutil.rmtree(draft, ignore_errors=True)
            raise failed("\n".join(done.stderr.strip().splitlines()[-TAIL:]))
        draft.rename(target)
    return target
