"""Running a command once, in its containment, and taking what it left."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from automem.check.folder import MOST_FILES
from automem.sandbox.failures import ending
from automem.scaffold import LARGEST_FILE
from meta.reviewers.command import calls, view
from meta.reviewers.command.options import CommandOptions
from meta.reviewers.command.output import Output

Containment = Literal["bubblewrap", "unsafe"]

INSIDE = "inside.py"
TOTAL_BYTES = 8 * 2**20
"""Bytes of a candidate's files together."""

FILES = 200_000
"""Files that may be made, links and folders included."""

GRACE = 10.0
"""Seconds that ending everything may take, until it is forced."""

LARGEST_ANSWER = 2 * TOTAL_BYTES + 4 * LARGEST_FILE


class CannotStart(Exception):
    """The command, or its containment, cannot be started. The text says why."""


class Ended(Exception):
    """It was ended, or ended in a way that leaves nothing. The text says why, with "the command" left out."""


@dataclass(frozen=True)
class Left:
    """What a command left in its workspace. Nothing is sure about any of it.

    Attributes:
        ending: how it ended, in words; empty when it ended with exit code 0.
        files: path -> bytes of the candidate's plain files.
        odd: path -> what it is instead of a plain file of a sensible size.
        said: bytes of ``REVISION.md``; None when there is no such file.
    """

    ending: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    odd: Mapping[str, str] = field(default_factory=dict)
    said: bytes | None = None


@dataclass(frozen=True)
class Place:
    """What a command is run on.

    Attributes:
        given: a folder of ours with ``inside.py``, ``bin``, ``etc``, ``candidate``, ``TASK.md`` and ``workspace``.
        evidence: path in the workspace -> folder that is shown there; an empty one is there already.
        workspace: where the workspace is made when nothing contains the command; it is not there yet.
    """

    given: Path
    evidence: Mapping[str, Path]
    workspace: Path


async def run(
    options: CommandOptions, containment: Containment, place: Place, seconds: float | None, output: Output
) -> Left:
    """Run the command, and end all that it started.

    Args:
        options: what it may use and see.
        containment: what contains it.
        place: what it works on.
        seconds: how long it may take; None is no limit.
        output: takes what it prints.

    Raises:
        CannotStart: it cannot be started.
        Ended: it took too long or too much, or its containment went away.
    """
    if containment == "unsafe":
        await asyncio.to_thread(_make_workspace, place)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs, _filter(options, containment) as filter_at:
        process = await _spawn(_command(options, containment, place, filter_at), theirs, filter_at)
        theirs.close()
        assert process.stdout is not None
        printed = asyncio.create_task(output.take(process.stdout))
        began = False
        try:
            async with asyncio.timeout(seconds):
                await _send(ours, _settings(options, containment, place))
                answer = await _receive(ours)
                if began := "began" in answer:
                    answer = await _receive(ours)
        except TimeoutError:
            raise Ended(f"was not done within {_in_words(seconds or 0)} and was ended") from None
        except (OSError, EOFError, ValueError):
            answer = {}
        finally:
            ours.close()
            await asyncio.shield(_gone(process, printed))
    if "unstartable" in answer:
        raise CannotStart(str(answer["unstartable"]))
    if not began:
        raise CannotStart(output.last or "it ended while it started")
    if not answer:
        raise Ended("was ended from outside, with all that watched it; the machine may have run out of memory")
    return _read(answer)


async def _spawn(command: list[str], control: socket.socket, filter_at: int) -> asyncio.subprocess.Process:
    try:
        # In the event loop's thread: bubblewrap ends with the thread that started it.
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=control.fileno(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={},
            cwd="/",
            pass_fds=[filter_at] if filter_at >= 0 else [],
            process_group=0,  # Ctrl-C is for us
        )
    except OSError as error:
        raise CannotStart(f"{command[0]} cannot be started: {error.strerror}") from error


async def _gone(process: asyncio.subprocess.Process, printed: asyncio.Task[None]) -> None:
    """Wait until everything has ended, which it does when we hang up; then until its output is read."""
    try:
        await asyncio.wait_for(process.wait(), GRACE)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    await asyncio.wait([printed], timeout=GRACE)
    printed.cancel()


async def _send(control: socket.socket, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode()
    await asyncio.get_running_loop().sock_sendall(control, len(data).to_bytes(4, "big") + data)


async def _receive(control: socket.socket) -> dict[str, Any]:
    """One message. Raises `EOFError` when there is none, `ValueError` when it is none."""
    size = int.from_bytes(await _take(control, 4), "big")
    if size > LARGEST_ANSWER:
        raise ValueError("too large")
    answer = json.loads(await _take(control, size))
    if not isinstance(answer, dict):
        raise ValueError("no message")
    return answer


async def _take(control: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = await asyncio.get_running_loop().sock_recv(control, min(size - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def _read(answer: dict[str, Any]) -> Left:
    """What the inside says, which raises `Ended` when it stopped the command."""
    if answer["stopped"]:
        raise Ended(f"was ended: {answer['stopped']}")
    files = {str(path): base64.b64decode(data) for path, data in answer["files"].items()}
    odd = {str(path): str(what) for path, what in answer["odd"].items()}
    said = None if answer["said"] is None else base64.b64decode(answer["said"])
    return Left(ending(answer["status"]) if answer["status"] else "", files, odd, said)


@contextlib.contextmanager
def _filter(options: CommandOptions, containment: Containment) -> Iterator[int]:
    """A descriptor to read the filter of system calls from; -1 where there is none."""
    if containment == "unsafe":
        yield -1
        return
    try:
        code = calls.compiled(options.network)
    except OSError as error:
        raise CannotStart(f"{error}; install it (Debian, Ubuntu: apt-get install libseccomp2)") from error
    with tempfile.TemporaryFile() as file:
        file.write(code)
        file.seek(0)
        yield file.fileno()


def _command(options: CommandOptions, containment: Containment, place: Place, filter_at: int) -> list[str]:
    if containment == "unsafe":
        return [sys.executable, "-I", "-S", "-B", str(place.given / INSIDE)]
    program = shutil.which("bwrap")
    if program is None:
        raise CannotStart("bubblewrap is not installed")
    shut_in = view.bubblewrap(options, place.given, place.evidence, program, filter_at)
    return [*shut_in, sys.executable, "-I", "-S", "-B", str(view.GIVEN / INSIDE)]


def _settings(options: CommandOptions, containment: Containment, place: Place) -> dict[str, Any]:
    """What `meta.reviewers.command.inside` is told."""
    inside = containment == "bubblewrap"
    given, workspace = (view.GIVEN, view.WORKSPACE) if inside else (place.given, place.workspace)
    memory, disk = options.memory_mb * 2**20, options.disk_mb * 2**20
    limits = {"RLIMIT_DATA": memory, "RLIMIT_FSIZE": disk, "RLIMIT_CORE": 0}
    if inside and os.geteuid() != 0:  # counted in the namespace; the processes of root are not
        limits["RLIMIT_NPROC"] = options.processes
    return {
        "words": view.words(options),
        "environment": view.environment(options, given, inside),
        "given": str(given),
        "workspace": str(workspace),
        "task": str(given / "workspace" / "TASK.md"),
        "writable": ["candidate", "REVISION.md"],
        "limits": limits,
        "processes": options.processes,
        "memory": memory,
        "bounded": [str(workspace), str(view.home()), "/tmp", "/dev/shm"],
        "files": FILES,
        "most_files": MOST_FILES,
        "file_bytes": LARGEST_FILE,
        "total_bytes": TOTAL_BYTES,
    }


def _make_workspace(place: Place) -> None:
    """What bubblewrap would show in the workspace, as copies: nothing keeps the command from writing there."""
    shutil.rmtree(place.workspace, ignore_errors=True)
    shutil.copytree(place.given / "workspace", place.workspace)
    for name, path in place.evidence.items():
        target = place.workspace / name
        shutil.copytree(path, target, dirs_exist_ok=True)


def _in_words(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} seconds"
