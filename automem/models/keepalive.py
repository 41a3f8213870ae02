"""Keep one server running for as long as somebody holds its pipe, then end all of it.

Run as a program of its own, between the processes that use a server and the server:

    python keepalive.py PIPE_FD FOLDER LINGER_SECONDS COMMAND...

Every user holds the writing end of a named pipe in FOLDER. The system closes it when a user
ends, however it ends, SIGKILL included; when the last one is gone, the server and all of its
children are ended. The program is two processes, each of which ends everything when the other
is killed: vLLM's engine would outlive both its parent and ours.
Standard library only, and no imports from this project: it must start in milliseconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

PIPE, LOCK, STATE = "users", "lock", "state.json"
"""Names in a server's folder: the pipe, the lock that guards starting and stopping, what runs."""

POLL_SECONDS = 0.2
GRACE_SECONDS = 5.0
"""How long the server may take to end on SIGTERM before it is killed."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_with_parent() -> None:
    """In the new process, before it becomes the server."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _held(pipe: int, wait_seconds: float) -> bool:
    """Whether somebody holds the writing end; waits up to `wait_seconds` while they do."""
    poller = select.poll()
    poller.register(pipe, select.POLLIN)
    for _, event in poller.poll(wait_seconds * 1000):
        if event & select.POLLHUP:
            return False
        os.read(pipe, 4096)
    return True


def _parents() -> dict[int, int]:
    """Every living process and its parent, from /proc."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in brackets, may hold spaces: fields are counted after it.
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    return parents


def descendants(root: int) -> list[int]:
    """Every living process below `root`, nearest first."""
    parents = _parents()
    found = [root]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found[1:]


def _signal(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def _end_all(server: int | None = None) -> None:
    """End every process below this one: the server politely, then by force whatever is left.

    Orphans of the server become children of this process, so none is missed.
    """
    if server is not None:
        _signal(server, signal.SIGTERM)
    until = time.monotonic() + GRACE_SECONDS
    while left := descendants(os.getpid()):
        if server not in left or time.monotonic() >= until:
            for process in left:
                _signal(process, signal.SIGKILL)
        time.sleep(0.01)
        _reap()


def _reap() -> None:
    """Collect children that ended, so that they are not taken for living ones."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _retire(pipe: int, folder: Path, linger_seconds: float) -> bool:
    """Nobody holds the pipe: True once it is certain that nobody will, False when somebody came back."""
    until = time.monotonic() + linger_seconds
    while True:
        if _held(pipe, 0):
            return False
        if time.monotonic() >= until:
            with (folder / LOCK).open("a") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    pass  # somebody is just attaching or starting: look again
                else:
                    if _held(pipe, 0):
                        return False
                    (folder / STATE).unlink(missing_ok=True)
                    os.close(pipe)  # from here on nobody can attach
                    return True
        time.sleep(POLL_SECONDS / 4)


def _guard(keeper: int, stopping: list[int]) -> int:
    """The outer process: pass signals on to the keeper, and should it be killed, end what it left."""
    while True:
        ended, status = os.waitpid(keeper, os.WNOHANG)
        if ended:
            _end_all()
            return os.waitstatus_to_exitcode(status) & 0xFF
        if stopping:
            _signal(keeper, stopping.pop())
        time.sleep(POLL_SECONDS / 4)


def _keep(pipe: int, folder: Path, linger_seconds: float, command: list[str], stopping: list[int]) -> int:
    """The inner process: run the server while somebody needs it."""
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_die_with_parent)
    status: int | None = 0
    try:
        while not stopping and (status := server.poll()) is None:
            if not _held(pipe, POLL_SECONDS) and _retire(pipe, folder, linger_seconds):
                return 0
        return (status or 0) & 0xFF
    finally:
        _end_all(server.pid if server.poll() is None else None)


def main(arguments: list[str]) -> int:
    """Run the command until nobody needs it. Returns its exit status, or 0 when it was ended."""
    pipe, folder, linger_seconds, command = int(arguments[0]), Path(arguments[1]), float(arguments[2]), arguments[3:]
    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _: stopping.append(received))
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    outer = os.getpid()
    keeper = os.fork()
    if keeper:
        os.close(pipe)  # only the keeper reads: the pipe breaks when it ends
        return _guard(keeper, stopping)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != outer:  # killed before we asked to be told
        return 1
    return _keep(pipe, folder, linger_seconds, command, stopping)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
