"""The host's side of the warm parent: started in its containment, asked for processes, ended."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import importlib.util
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

import automem.hooks
from automem.hooks.source import ALLOWED_MODULES
from automem.sandbox import syscalls, view
from automem.sandbox.failures import CallFailed, SandboxUnavailable
from automem.sandbox.limits import Mode, SandboxConfig

HERE = Path(__file__).resolve().parent
HOOKS = Path(automem.hooks.__file__).resolve().parent

INSIDE = {
    "automem": None,
    "automem.hooks": HOOKS / "__init__.py",
    "automem.hooks.api": HOOKS / "api.py",
    "automem.hooks.inside": HOOKS / "inside.py",
    "automem.sandbox": None,
    "automem.sandbox.warm": HERE / "warm.py",
}
"""Our own modules on the inside, and the files that their text is in."""

BOOTSTRAP = """
import json, os, sys, types
def take(size):
    data = b""
    while len(data) < size:
        data += os.read(0, size - len(data)) or os._exit(1)
    return data
settings = json.loads(take(int.from_bytes(take(4), "big")))
for name, _ in settings["modules"]:
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = []
    above, _, last = name.rpartition(".")
    if above:
        setattr(sys.modules[above], last, module)
for name, text in sorted(settings["modules"], key=lambda module: -len(module[0].split("."))):
    exec(compile(text, name, "exec"), vars(sys.modules[name]))
sys.modules["automem.sandbox.warm"].main(settings)
"""
"""What the interpreter starts with: it takes the rest over the connection."""

START_SECONDS = 30.0
REQUEST_SECONDS = 30.0
GRACE = 5.0
"""Seconds until a start or a request counts as failed, and that an end may take before it is forced."""


class ParentGone(Exception):
    """The warm parent died or cannot be started. The text says why, as far as anybody knows."""


class WarmParent:
    """One warm parent. Requests are answered in order; everything waits on the event loop."""

    def __init__(self, config: SandboxConfig, mode: Mode) -> None:
        self._settings = settings(config, mode)
        self._command, self._environment = command(mode)
        self._turn = asyncio.Lock()
        self._keys = itertools.count(1)
        self._unwanted_ends: set[asyncio.Future[int | None]] = set()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.alive = False

    async def start(self) -> None:
        """Start it, and wait until it can fork; raises `ParentGone`."""
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        with theirs, tempfile.TemporaryFile() as errors:
            self._spawn(theirs, errors)
            theirs.close()
            self.alive = True
            try:
                async with asyncio.timeout(START_SECONDS):
                    await self._exchange(self._settings)
            except TimeoutError:
                await self.close()
                raise ParentGone(f"it did not start within {START_SECONDS:.0f} s") from None
            except ParentGone:
                await self.close()
                raise ParentGone(last_words(errors) or "it ended while it started") from None
            except BaseException:  # nobody waits for its first word any more, so nobody can use it
                # Not killed: bubblewrap that dies while it starts leaves the child that it is starting behind.
                self._hang_up()
                raise
        self._go_first()

    def _spawn(self, control: socket.socket, errors: IO[bytes]) -> None:
        # In the event loop's thread: where the kernel ends it with its parent, that means this thread.
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=control.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=self._environment,
                cwd="/",
                process_group=0,  # Ctrl-C is for us
            )
        except OSError as error:
            raise ParentGone(f"{self._command[0]} cannot be started: {error}") from error

    async def fork(self, connection: socket.socket) -> int:
        """Fork a process that speaks on `connection`, which is closed here; returns the key to end it by.

        Raises:
            ParentGone: the parent is.
            CallFailed: the machine has no process to spare.
        """
        key = next(self._keys)
        asked = asyncio.ensure_future(self._request({"fork": key}, connection))
        try:
            answer = await asyncio.shield(asked)
        except asyncio.CancelledError:
            asked.add_done_callback(lambda done: self._unwanted(done, key))
            raise
        if "failed" in answer:
            raise CallFailed(f"no process for scaffold code: {answer['failed']}", lost=True)
        return key

    def _unwanted(self, asked: asyncio.Future[dict[str, Any]], key: int) -> None:
        """A process that nobody waits for any more has been forked, or could not be."""
        if not asked.cancelled() and asked.exception() is None:
            ending = asyncio.ensure_future(self.end(key))
            self._unwanted_ends.add(ending)
            ending.add_done_callback(self._unwanted_ends.discard)

    async def end(self, key: int) -> int | None:
        """End a process that was forked; returns its wait status, None where that is unknown."""
        try:
            return (await asyncio.shield(asyncio.ensure_future(self._request({"end": key}))))["status"]
        except ParentGone:
            return None

    async def close(self) -> None:
        """Hang up, which ends it and all processes that it forked."""
        self._hang_up()
        if self._control is not None:
            async with self._turn:  # a request that waits for its answer is told first
                self._control.close()
        if self._process is None:
            return
        process, self._process = self._process, None
        try:
            await asyncio.to_thread(process.wait, GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)

    async def _request(self, message: dict[str, Any], connection: socket.socket | None = None) -> dict[str, Any]:
        with connection or contextlib.nullcontext():
            async with self._turn:
                if not self.alive:
                    raise ParentGone("it is not running")
                try:
                    async with asyncio.timeout(REQUEST_SECONDS):
                        return await self._exchange(message, connection)
                except TimeoutError:
                    self._give_up()
                    raise ParentGone(f"it did not answer within {REQUEST_SECONDS:.0f} s") from None

    async def _exchange(self, message: dict[str, Any], connection: socket.socket | None = None) -> dict[str, Any]:
        """Send a message, with a descriptor or without, and receive the answer."""
        assert self._control is not None
        loop = asyncio.get_running_loop()
        data = json.dumps(message).encode()
        data = len(data).to_bytes(4, "big") + data
        try:
            if connection is not None:  # the buffer is empty: one request at a time
                data = data[socket.send_fds(self._control, [data], [connection.fileno()]) :]
            await loop.sock_sendall(self._control, data)
            size = int.from_bytes(await self._take(4), "big")
            return json.loads(await self._take(size))
        except (OSError, EOFError) as error:
            if isinstance(error, TimeoutError):
                raise
            self._give_up()
            raise ParentGone("it ended") from error

    async def _take(self, size: int) -> bytes:
        assert self._control is not None
        data = b""
        while len(data) < size:
            part = await asyncio.get_running_loop().sock_recv(self._control, size - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def _go_first(self) -> None:
        """Where memory runs out, what code inside took goes first, and not a game or a model server."""
        assert self._process is not None
        below = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        with contextlib.suppress(OSError):  # a help where the kernel has it
            for pid in (str(self._process.pid), *below.read_text().split()):
                Path(f"/proc/{pid}/oom_score_adj").write_text("1000")

    def _hang_up(self) -> None:
        """Let it end by itself: it reads that nobody is there."""
        self.alive = False
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)

    def _give_up(self) -> None:
        self.alive = False
        if self._process is not None:
            self._process.kill()


def settings(config: SandboxConfig, mode: Mode) -> dict[str, Any]:
    """What the inside is told; raises `SandboxUnavailable` for what cannot be enforced here."""
    contained = mode != "unsafe"
    if contained and config.processes and os.geteuid() == 0:
        raise SandboxUnavailable(
            f"[sandbox] processes = {config.processes}: Linux does not limit the processes of root. "
            "Run as another user, or set it to 0."
        )
    if config.processes and mode == "landlock":
        raise SandboxUnavailable(
            f"[sandbox] processes = {config.processes}: without bubblewrap the processes of one episode "
            "cannot be told from yours, so they cannot be counted. Set it to 0, or let bubblewrap run here."
        )
    if contained:
        limit = config.processes + (1 if config.processes else 0)
        try:
            filter_code = base64.b64encode(syscalls.compiled(config.processes > 0)).decode()
        except OSError as error:
            raise SandboxUnavailable(f"{error}; scaffold code needs it. apt-get install libseccomp2") from error
    return {
        "modules": [[name, file.read_text(encoding="utf-8") if file else ""] for name, file in INSIDE.items()],
        "allowed": sorted(ALLOWED_MODULES),
        "filter": filter_code if contained else None,
        "processes": limit if contained else None,
        "own_users": contained and config.processes > 0,
        "undumpable": contained,
        "cpu_seconds": config.cpu_seconds,
        "memory_bytes": config.memory_mb * 2**20,
        "file_bytes": config.file_bytes,
        "reply_bytes": config.reply_bytes,
    }


def command(mode: Mode) -> tuple[list[str], dict[str, str]]:
    """The command that starts a warm parent, and its environment; raises `ParentGone` where there is none."""
    start = [*view.FLAGS, "-c", BOOTSTRAP]
    if mode == "bubblewrap":
        return [*view.bubblewrap(shutil.which("bwrap") or "bwrap"), *start], {}
    program = [str(view.interpreter().executable), *start]
    environment = view.plain_environment()
    if mode == "unsafe":
        return program, environment
    given = json.dumps(view.readable() | {"environment": environment})
    package = importlib.util.find_spec("landlock")
    if package is None or package.origin is None:
        raise ParentGone("the package landlock is not installed")
    packages = {"PYTHONPATH": str(Path(package.origin).parent.parent)}
    return [sys.executable, "-s", "-S", "-P", "-B", str(HERE / "landlock_exec.py"), given, *program], packages


def last_words(errors: IO[bytes]) -> str:
    """What a program that failed said about it: the last line that speaks of an error, else the last line."""
    errors.seek(0)
    lines = [line.strip() for line in errors.read().decode("utf-8", "replace").splitlines() if line.strip()]
    telling = [line for line in lines if "rror" in line] or lines or [""]
    return telling[-1][:300]
