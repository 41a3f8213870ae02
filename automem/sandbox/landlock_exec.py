"""A program that gives up every right but to read some files, and then becomes another program.

    python landlock_exec.py SETTINGS PROGRAM [ARGUMENT ...]

SETTINGS is JSON: what `automem.sandbox.view.readable` gives, and ``environment``. This runs in our
own Python, where the package `landlock` is installed; the program that follows sees none of it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from landlock import FSAccess, Ruleset, landlock_abi_version  # type: ignore[import-untyped]
from landlock.plumbing import (  # type: ignore[import-untyped]
    RulesetAttr,
    get_create_ruleset,
    get_prctl,
    get_restrict_self,
)

PR_SET_PDEATHSIG = 1
NETWORK = 0b11
"""Binding and connecting TCP sockets; from version 4 of the interface."""
SCOPE = 0b11
"""Abstract Unix sockets and signals to processes outside; from version 6."""


class _Wider(RulesetAttr):
    """The kernel's structure with the fields that the package does not know."""

    _fields_ = (("handled_access_net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


def main() -> None:
    """Restrict this process and execute the program."""
    settings = json.loads(sys.argv[1])
    get_prctl()(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    rules = Ruleset()
    for path in (*map(Path, settings["read"]), *libraries(settings["libraries"])):
        folder = FSAccess.READ_DIR if path.is_dir() else FSAccess(0)
        rules.allow(path, rules=FSAccess.READ_FILE | FSAccess.EXECUTE | folder)
    rules.allow(*settings["list"], rules=FSAccess.READ_DIR)
    rules.apply()
    beyond_files()
    os.execve(sys.argv[2], sys.argv[2:], settings["environment"])


def libraries(folders: list[str]) -> Iterator[Path]:
    """The shared libraries in folders."""
    for entry in (entry for folder in folders for entry in Path(folder).iterdir()):
        if ".so" in entry.name and entry.is_file():
            yield entry


def beyond_files() -> None:
    """A second layer, as far as this kernel has it: no TCP, nothing to processes outside."""
    version = landlock_abi_version()
    if version < 4:
        return
    wider = _Wider(FSAccess(0), NETWORK, SCOPE if version >= 6 else 0)
    size = ctypes.sizeof(wider) if version >= 6 else ctypes.sizeof(RulesetAttr) + 8
    ruleset = get_create_ruleset()(ctypes.byref(wider), size, 0)
    get_restrict_self()(ruleset, 0)
    os.close(ruleset)


if __name__ == "__main__":
    main()
