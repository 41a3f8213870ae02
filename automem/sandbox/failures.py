"""What can go wrong between an episode and the process that runs its scaffold's code."""

from __future__ import annotations

import signal

from automem.errors import UserError

_SIGNALS = {
    signal.SIGKILL: "killed: out of memory, or past its CPU time",
    signal.SIGXCPU: "out of CPU time",
    signal.SIGSEGV: "crashed in C code",
    signal.SIGABRT: "C code gave up",
    signal.SIGBUS: "crashed in C code",
    signal.SIGSYS: "a system call that nothing may make here",
}


class SandboxUnavailable(UserError):
    """Scaffold code cannot be contained on this machine, or not with this configuration."""


class CallFailed(Exception):
    """A call to scaffold code that gave no usable answer.

    Attributes:
        message: what happened, in one line for people.
        lost: whether the process is gone, and with it the state of the object.
    """

    def __init__(self, message: str, lost: bool) -> None:
        super().__init__(message)
        self.message = message
        self.lost = lost


def ending(status: int | None) -> str:
    """How a process ended, in words, from its wait status; None when nobody can say."""
    if status is None:
        return "ended; how is not known"
    if (number := status & 0x7F) == 0:
        return f"ended by itself with exit code {status >> 8}"
    try:
        known = signal.Signals(number)
    except ValueError:
        return f"ended by signal {number}"
    return f"ended by signal {number} ({_SIGNALS.get(known, known.name)})"
