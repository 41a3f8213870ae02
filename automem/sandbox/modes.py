"""What can contain code on this machine, found out by trying."""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import threading

from automem.sandbox.failures import CallFailed, SandboxUnavailable
from automem.sandbox.limits import Mode, SandboxConfig
from automem.sandbox.parent import ParentGone, WarmParent, settings
from automem.sandbox.process import forked

CONTAINED: tuple[Mode, ...] = ("bubblewrap", "landlock")
"""From the best."""

_TRIAL = SandboxConfig(call_seconds=10)


def choose_mode(config: SandboxConfig) -> Mode:
    """The best containment that runs here; ``unsafe`` where none does and the configuration says so.

    The first use takes some tenths of a second: it starts what it chooses.

    Raises:
        SandboxUnavailable: none does, or the configuration asks for what cannot be enforced.
    """
    reasons = {}
    for mode in CONTAINED:
        reasons[mode] = trouble(mode)
        if not reasons[mode]:
            settings(config, mode)
            return mode
    if config.unsafe:
        return "unsafe"
    raise SandboxUnavailable(
        "Code of a scaffold cannot be contained on this machine, so it is not run.\n"
        f"  bubblewrap: {reasons['bubblewrap']}\n"
        f"  Landlock: {reasons['landlock']}\n"
        "Install bubblewrap and libseccomp (Debian, Ubuntu: apt-get install bubblewrap libseccomp2) and allow "
        "unprivileged user namespaces, or use a kernel with Landlock (5.13 or newer). "
        "--unsafe-hooks runs the code all the same, with all the rights that you have."
    )


def trouble(mode: Mode) -> str:
    """Why a mode cannot run here, in one line; empty when it can. Tried once a process."""
    return _tried(mode, shutil.which("bwrap"), os.geteuid())


@functools.cache
def _tried(mode: Mode, bwrap: str | None, user: int) -> str:
    if mode == "bubblewrap" and bwrap is None:
        return "it is not installed"
    found: list[str] = []
    # In a thread, because the caller may have an event loop at work.
    thread = threading.Thread(target=lambda: found.append(asyncio.run(_try(mode))))
    thread.start()
    thread.join()
    return found[0] if found else "trying it failed"


async def _try(mode: Mode) -> str:
    """Start it, let it answer once, end it."""
    try:
        parent = WarmParent(_TRIAL, mode)
        try:
            await parent.start()
            await _let_answer(parent)
        finally:
            await parent.close()
    except CallFailed as failure:
        return failure.message.removeprefix("no process for scaffold code: ")
    except (ParentGone, SandboxUnavailable, OSError) as error:
        return str(error)
    return ""


async def _let_answer(parent: WarmParent) -> None:
    process = await forked(_TRIAL, parent)
    try:
        await process.load("class Hooks:\n    pass\n")
        await process.call("reset", ["", ""])
    finally:
        await process.close()
