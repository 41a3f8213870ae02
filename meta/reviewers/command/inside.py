"""What runs inside the containment: starts the command, watches it, ends all of it, and hands back what it left.

A program of its own that uses the standard library alone. It takes its settings on descriptor 0, a Unix
socket, and says there that it began and what came of it. When the other side hangs up, everything is ended. In a
containment it is process 1, so that nothing that was started can outlive it; without one it adopts what the command
leaves behind, and ends that one by one.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 36, 38

INTERVAL = 0.1
"""Seconds between two looks at what is used."""

NICENESS = 5
"""The watcher, games and models go first, whatever a command starts."""

DEEPEST = 6
"""Levels of folders in a candidate that are looked into."""


def main() -> None:
    """Run one command."""
    control = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    settings = receive(control)
    if settings is None:
        return
    alone = os.getpid() == 1
    become_watcher(alone)
    prepare(settings)
    try:
        child = start(settings)
    except OSError as error:
        send(control, {"unstartable": f"{error.strerror or error}"})
        return
    send(control, {"began": child})
    status, stopped = watch(child, control, settings if alone else None)
    end_all(alone)
    if stopped is None:  # nobody is there any more
        return
    send(control, {"status": status, "stopped": stopped, **left(Path(settings["workspace"]), settings)})


def receive(control: socket.socket) -> dict[str, Any] | None:
    """The settings; None when the other side hung up."""
    header = control.recv(4, socket.MSG_WAITALL)
    data = control.recv(int.from_bytes(header, "big"), socket.MSG_WAITALL) if len(header) == 4 else b""
    return json.loads(data) if data else None


def send(control: socket.socket, message: dict[str, Any]) -> None:
    """Answer, if anybody is there to hear it."""
    data = json.dumps(message).encode()
    with contextlib.suppress(OSError):
        control.sendall(len(data).to_bytes(4, "big") + data)


def become_watcher(alone: bool) -> None:
    """Keep apart from what is started later: it cannot look into this process, and what it orphans comes here."""
    libc = ctypes.CDLL(None, use_errno=True)
    with contextlib.suppress(OSError):  # where memory runs out, what runs here goes first
        Path("/proc/self/oom_score_adj").write_text("1000")
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    if not alone:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def prepare(settings: dict[str, Any]) -> None:
    """Put the files that may be changed into the workspace."""
    given, workspace = Path(settings["given"]), Path(settings["workspace"])
    for name in settings["writable"]:
        if (given / name).is_dir():
            shutil.copytree(given / name, workspace / name)
        elif (given / name).is_file():
            shutil.copyfile(given / name, workspace / name)


def start(settings: dict[str, Any]) -> int:
    """Start the command with its task on standard input; its process id. `OSError` when that cannot be done."""

    def limits() -> None:
        for name, value in settings["limits"].items():
            number = getattr(resource, name)
            most = resource.getrlimit(number)[1]
            value = value if most == resource.RLIM_INFINITY else min(value, most)
            resource.setrlimit(number, (value, value))
        os.nice(NICENESS)

    with open(settings["task"], "rb") as task:  # noqa: PTH123 - nothing to gain
        process = subprocess.Popen(
            settings["words"],
            stdin=task,
            cwd=settings["workspace"],
            env=settings["environment"],
            start_new_session=True,
            preexec_fn=limits,
        )
    process.returncode = 0  # reaped in `watch`, with all others
    return process.pid


def watch(child: int, control: socket.socket, bounds: dict[str, Any] | None) -> tuple[int | None, str | None]:
    """Wait until the command ends, uses too much, or nobody waits for it.

    Returns:
        Its wait status, None when it did not end by itself; and why it was stopped, empty when it was not, None
        when the other side hung up.
    """
    while True:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == child:
                    return status, ""
                if pid == 0:
                    break
        if select.select([control], [], [], INTERVAL)[0]:
            return None, None
        if bounds is not None and (why := too_much(bounds)):
            return None, why


def too_much(bounds: dict[str, Any]) -> str:
    """What all processes together use too much of; empty when nothing."""
    memory = threads = 0
    for entry in numbered():
        if entry == 1:
            continue
        with contextlib.suppress(OSError):  # it has ended
            for line in Path(f"/proc/{entry}/status").read_text(errors="replace").splitlines():
                if line.startswith(("RssAnon:", "RssShmem:")):
                    memory += int(line.split()[1]) * 1024
                elif line.startswith("Threads:"):
                    threads += int(line.split()[1])
    if threads > bounds["processes"]:
        return f"it had more than {bounds['processes']} processes and threads"
    if memory > bounds["memory"]:
        return f"it took more than {bounds['memory'] // 2**20} MiB of memory"
    files = [os.statvfs(folder) for folder in bounds["bounded"]]
    if sum(found.f_files - found.f_ffree for found in files) > bounds["files"]:
        return f"it made more than {bounds['files']} files"
    return ""


def end_all(alone: bool) -> None:
    """End everything that was started, and wait until it is gone."""
    with contextlib.suppress(ChildProcessError):
        while True:
            if alone:  # everybody in this namespace, and nobody else: this is its process 1
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
            else:
                for pid in below(os.getpid()):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def below(ancestor: int) -> list[int]:
    """The processes that one has started or adopted, and those that they have."""
    children: dict[int, list[int]] = {}
    for entry in numbered():
        with contextlib.suppress(OSError):
            parent = int(Path(f"/proc/{entry}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(entry)
    found: list[int] = []
    todo = [ancestor]
    while todo:
        todo += (more := children.get(todo.pop(), []))
        found += more
    return found


def numbered() -> list[int]:
    """The processes that can be seen."""
    return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal()]


def left(workspace: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """What is in the workspace, as plain data: nothing is followed, and no more is read than is asked for.

    Returns: ``files``: path -> base64 of a candidate's plain files; ``odd``: path -> what it is, of everything
    else there; ``said``: base64 of the description, None when it is no plain file.
    """
    files: dict[str, str] = {}
    odd: dict[str, str] = {}
    room = settings["total_bytes"]
    waiting = [("", 0)]
    candidate = workspace / "candidate"
    if candidate.is_symlink() or not candidate.is_dir():
        odd["candidate"], waiting = "not a folder any more", []
    while waiting and len(files) + len(odd) <= settings["most_files"]:
        folder, depth = waiting.pop()
        try:
            entries = sorted(os.scandir(candidate / folder), key=lambda entry: entry.name)
        except OSError as error:
            odd[folder or "candidate"] = f"a folder that cannot be read ({error.strerror})"
            continue
        for entry in entries[: settings["most_files"] + 1]:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name.startswith(".") or entry.name == "__pycache__":
                continue
            if entry.is_symlink():
                odd[path] = "a link"
            elif entry.is_dir(follow_symlinks=False):
                if depth + 1 < DEEPEST:
                    waiting.append((path, depth + 1))
                else:
                    odd[path] = "a folder too deep down"
            else:
                data, why = content(candidate / path, min(settings["file_bytes"], room))
                if data is None:
                    odd[path] = why
                else:
                    room -= len(data)
                    files[path] = base64.b64encode(data).decode()
    said, _ = content(workspace / "REVISION.md", settings["file_bytes"])
    return {"files": files, "odd": odd, "said": None if said is None else base64.b64encode(said).decode()}


def content(path: Path, most: int) -> tuple[bytes | None, str]:
    """The bytes of a plain file, or why there are none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None, "neither a file nor a folder"
            data = file.read(most + 1)
    except OSError as error:
        return None, f"a file that cannot be read ({error.strerror})"
    return (data, "") if len(data) <= most else (None, f"larger than {most} bytes, or too much with the others")


if __name__ == "__main__":
    main()
    sys.exit(0)
