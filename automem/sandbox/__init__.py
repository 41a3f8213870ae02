"""Running code that a model wrote, where it can hurt nobody.

Each episode has a process of its own, forked from a warm parent that bubblewrap, or Landlock where
bubblewrap cannot run, has shut in: no network, no files but Python's own and the system's shared
libraries, no environment, no view of other processes. Before a process takes code in, it also gives
up every system call that computing does not need (`automem.sandbox.syscalls`). The host speaks with
it over a socket, trusts nothing it reads there, and ends the process when a call takes too long or
its answer cannot be used.
"""

from __future__ import annotations

from automem.sandbox.failures import CallFailed, SandboxUnavailable
from automem.sandbox.limits import Mode, SandboxConfig
from automem.sandbox.modes import choose_mode
from automem.sandbox.process import Process
from automem.sandbox.sandbox import Sandbox

__all__ = ["CallFailed", "Mode", "Process", "Sandbox", "SandboxConfig", "SandboxUnavailable", "choose_mode"]
