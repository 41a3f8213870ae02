"""The warm parent: runs inside the containment and forks one locked-down process an episode.

Standard library only; the host sends it in as text. It takes requests on descriptor 0, a Unix
socket: ``{"fork": key}`` with a descriptor, for a process that speaks on it, and ``{"end": key}``.
It never sees a scaffold's code: that goes to the process, after the process has given up
everything it does not need.
"""

from __future__ import annotations

import base64
import codecs
import contextlib
import ctypes
import gc
import importlib
import json
import os
import random
import resource
import signal
import socket
import sys
from typing import Any

from automem.hooks import inside

CONTROL, NULL = 0, 1
CONNECTION = 3
"""Where a process has its connection; 0, 1 and 2 are ``/dev/null``."""

STACK_BYTES = 8 * 2**20
OPEN_FILES = 16
NICENESS = 5
"""Games, agents and models go first, whatever scaffold code does between calls."""

CODECS = (
    *("ascii", "latin-1", "cp437", "cp1252", "utf-8", "utf-8-sig", "utf-16", "utf-32"),
    *("unicode_escape", "idna", "punycode"),
)
"""What text may be encoded in: no other codec can be loaded later."""

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 36, 38
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION_3 = 0x20080522
CLONE_NEWUSER = 0x10000000

libc = ctypes.CDLL(None, use_errno=True)


def main(settings: dict[str, Any]) -> None:
    """Load what hooks use, then fork on request until the host hangs up."""
    for name in settings["allowed"]:
        importlib.import_module(name)
    for name in CODECS:
        codecs.lookup(name)
    if sys.platform == "linux":
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
    control = socket.socket(fileno=CONTROL)
    os.dup2(NULL, 2)
    os.environ.clear()
    sys.path.clear()
    gc.collect()
    gc.freeze()
    _send(control, {"ready": os.getpid()})
    running: dict[int, int] = {}
    while (received := _receive(control)) is not None:
        request, descriptors = received
        if "fork" in request:
            try:
                pid = os.fork()
            except OSError as error:  # too many processes; there may be fewer soon
                _send(control, {"failed": str(error)})
            else:
                if pid == 0:
                    _become_episode(descriptors[0], settings)
                running[request["fork"]] = pid
                _send(control, {})
        else:
            _send(control, {"status": _end(running.pop(request["end"], None))})
        for descriptor in descriptors:
            os.close(descriptor)
    for pid in running.values():
        _end(pid)
    os._exit(0)


def _send(control: socket.socket, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode()
    control.sendall(len(data).to_bytes(4, "big") + data)


def _receive(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    header, descriptors, _, _ = socket.recv_fds(control, 4, 1)
    if not header:
        return None
    data = control.recv(int.from_bytes(header, "big"), socket.MSG_WAITALL)
    return json.loads(data), descriptors


def _end(pid: int | None) -> int | None:
    """Kill a process with all that it started, and give its wait status."""
    if pid is None:
        return None
    for kill in (os.killpg, os.kill):  # it may not have its own group yet
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-pid, 0)
    return status


def _become_episode(connection: int, settings: dict[str, Any]) -> None:
    """The forked process: leave everything behind, then serve. Never returns."""
    code = 1
    try:
        random.seed(0)  # forking seeds it by chance
        os.setsid()
        os.dup2(NULL, 0)
        os.dup2(NULL, 2)
        os.dup2(connection, CONNECTION)
        os.closerange(CONNECTION + 1, 2**16)
        os.nice(NICENESS)
        try:
            _lock_down(settings)
        except OSError as error:
            text = f"the process could not be contained: {error}"
            inside.write_frame(CONNECTION, inside.encode({"id": 1, "error": text}))
        else:
            inside.serve(CONNECTION, settings["reply_bytes"], settings["allowed"])
            code = 0
    finally:
        os._exit(code)


def _lock_down(settings: dict[str, Any]) -> None:
    """Take limits, give up rights, and last load the filter of system calls. `OSError` if any of it fails."""
    if sys.platform == "linux":
        parent = os.getppid()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    if settings["own_users"]:  # processes are counted by user and user namespace
        _checked(libc.unshare(CLONE_NEWUSER), "unshare")
    for name, (soft, hard) in _limits(settings).items():
        if (number := getattr(resource, name, None)) is not None:
            _, most = resource.getrlimit(number)
            soft, hard = (min(value, most) if most != resource.RLIM_INFINITY else value for value in (soft, hard))
            resource.setrlimit(number, (soft, hard))
    if settings["filter"] is None:
        return
    _drop_capabilities()
    if settings["undumpable"]:
        _prctl(PR_SET_DUMPABLE, 0)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _load_filter(base64.b64decode(settings["filter"]))


def _limits(settings: dict[str, Any]) -> dict[str, tuple[int, int]]:
    cpu, memory, size = settings["cpu_seconds"], settings["memory_bytes"], settings["file_bytes"]
    limits = {
        "RLIMIT_CPU": (cpu, cpu + 1),  # SIGXCPU says why; it can be ignored, SIGKILL cannot
        "RLIMIT_AS": (memory, memory),
        "RLIMIT_FSIZE": (size, size),
        "RLIMIT_STACK": (STACK_BYTES, STACK_BYTES),
        "RLIMIT_NOFILE": (OPEN_FILES, OPEN_FILES),
        "RLIMIT_CORE": (0, 0),
        "RLIMIT_MEMLOCK": (0, 0),
        "RLIMIT_MSGQUEUE": (0, 0),
    }
    if settings["processes"] is not None:
        limits["RLIMIT_NPROC"] = (settings["processes"], settings["processes"])
    return limits


def _drop_capabilities() -> None:
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    _checked(libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


class _Program(ctypes.Structure):
    """`struct sock_fprog`: a filter's length in instructions, and where it is."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def _load_filter(code: bytes) -> None:
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    _checked(
        libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), ctypes.byref(program)), "loading the filter"
    )


def _prctl(option: int, value: int) -> None:
    arguments = (ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    _checked(libc.prctl(option, *arguments), f"prctl {option}")


def _checked(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
