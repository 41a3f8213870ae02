"""Keep one server running for as long as somebody holds its pipe, then end all of it.

Run as a program of its own, between the processes that use a server and the server:

    python keepalive.py PIPE_FD FOLDER LINGER_SECONDS COMMAND...

Every user holds the writing end of a named pipe in FOLDER. The system closes it when a user
ends, however it ends, SIGKILL included; when the last one is gone, the server and all of its
children are ended. Should this program itself be killed, the system ends the server.
Standard library only, and no imports from this project: it must start in milliseconds.
"""

from __future__ import annotations

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
    """In the new process, before the server: end when the keeper ends."""
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


def _descendants(root: int) -> list[int]:
    """Every process below `root`, from /proc."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in brackets, may hold spaces: fields are counted after it.
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    found = [root]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found[1:]


def _signal(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def _end(server: subprocess.Popen[bytes]) -> None:
    """End the server, gently first, and then whatever of it is left.

    Orphans of the server become children of this process, so none is missed.
    """
    if server.poll() is None:
        server.terminate()
        try:
            server.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            pass
    while left := _descendants(os.getpid()):
        for process in left:
            _signal(process, signal.SIGKILL)
        server.poll()
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            break
        time.sleep(0.01)


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


def main(arguments: list[str]) -> int:
    """Run the command until nobody needs it. Returns its exit status, or 0 when it was ended."""
    pipe, folder, linger_seconds, command = int(arguments[0]), Path(arguments[1]), float(arguments[2]), arguments[3:]
    os.set_inheritable(pipe, False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _: stopping.append(received))
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_die_with_parent)
    try:
        while server.poll() is None and not stopping:
            if not _held(pipe, POLL_SECONDS) and _retire(pipe, folder, linger_seconds):
                return 0
        return server.returncode or 0
    finally:
        _end(server)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
