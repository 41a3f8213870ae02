"""Which containment is chosen, what is said where there is none, and what ends with what."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from automem.errors import UserError
from automem.sandbox import CallFailed, Sandbox, SandboxConfig, SandboxUnavailable, choose_mode, modes, syscalls
from automem.sandbox.modes import trouble
from tests.sandbox.conftest import GENEROUS, STEP, Place, below

ROOT = Path(__file__).resolve().parents[2]
COUNTING = "class Hooks:\n  n = 0\n  def observe(self, step):\n    self.n += 1\n    return {'n': str(self.n)}\n"
REFUSAL = "bwrap: No permissions to create new namespace"
HANGING = "class Hooks:\n  def observe(self, step):\n    while True: pass\n"


@pytest.fixture
def _forgotten() -> Iterator[None]:
    """What was tried is tried again, now and for the tests that follow."""
    for known in (modes._tried, syscalls.compiled):
        known.cache_clear()
    yield
    for known in (modes._tried, syscalls.compiled):
        known.cache_clear()


def put_on_path(folder: Path, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "bwrap"
    file.write_text(program)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.skipif(bool(trouble("bubblewrap")), reason=f"bubblewrap cannot run here: {trouble('bubblewrap')}")
def test_bubblewrap_comes_first() -> None:
    assert choose_mode(SandboxConfig()) == "bubblewrap"
    assert choose_mode(SandboxConfig(unsafe=True)) == "bubblewrap"


@pytest.mark.skipif(bool(trouble("landlock")), reason=f"Landlock cannot run here: {trouble('landlock')}")
@pytest.mark.parametrize(
    ("program", "told"),
    [
        (f"echo '{REFUSAL}' >&2; exit 1", REFUSAL),
        ("exec sleep 0", "it ended while it started"),
        ("", "it is not installed"),
    ],
)
def test_landlock_takes_the_place_of_a_bubblewrap_that_cannot_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, told: str
) -> None:
    if program:
        put_on_path(tmp_path, f"#!/bin/sh\n{program}\n", monkeypatch)
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
    assert choose_mode(SandboxConfig()) == "landlock"
    assert trouble("bubblewrap") == told


@pytest.mark.usefixtures("_forgotten")
def test_where_nothing_contains_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> Any:
        raise OSError("libseccomp cannot be loaded (it is not there)")

    monkeypatch.setattr(syscalls, "library", absent)
    with pytest.raises(SandboxUnavailable) as refused:
        choose_mode(SandboxConfig())
    assert isinstance(refused.value, UserError)
    for told in ("bubblewrap: libseccomp cannot be loaded", "Landlock: libseccomp", "--unsafe-hooks", "libseccomp2"):
        assert told in str(refused.value)
    assert choose_mode(SandboxConfig(unsafe=True)) == "unsafe"


def test_it_can_be_chosen_while_an_event_loop_runs() -> None:
    async def choose() -> str:
        return choose_mode(SandboxConfig(unsafe=True))

    assert asyncio.run(choose()) == choose_mode(SandboxConfig(unsafe=True))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is not limited")
def test_processes_that_could_not_be_counted_are_refused(shared: Place) -> None:
    async def load() -> None:
        sandbox = Sandbox(SandboxConfig(processes=2), shared.mode)
        try:
            await sandbox.open(COUNTING)
        finally:
            await sandbox.close()

    with pytest.raises(SandboxUnavailable, match=r"\[sandbox\] processes = 2: Linux does not limit"):
        choose_mode(SandboxConfig(processes=2))
    with pytest.raises(SandboxUnavailable, match=r"\[sandbox\] processes = 2"):
        asyncio.run(load())


@pytest.mark.skipif(os.geteuid() == 0, reason="Linux does not limit the processes of root")
def test_each_episode_has_its_own_count_of_processes() -> None:
    if reason := trouble("bubblewrap"):
        pytest.skip(f"bubblewrap cannot run here: {reason}")
    bomb = """
import re
os = re.enum.sys.modules["os"]
class Hooks:
    def op_FORK(self, args, memory):
        started = 0
        try:
            while True:
                if os.fork() == 0:
                    while True: pass
                started += 1
        except OSError as error:
            return f"{started} {type(error).__name__}"
"""

    async def play() -> list[Any]:
        sandbox = Sandbox(SandboxConfig(processes=3, call_seconds=GENEROUS), "bubblewrap")
        try:
            opened = [await sandbox.open(bomb) for _ in range(3)]
            told = [await process.call("op_FORK", [[]]) for process in opened]
            many = len(below(os.getpid()))
            for process in opened:
                await process.close()
            assert many - len(below(os.getpid())) == 3 + 9
            return [answer["text"] for answer in told]
        finally:
            await sandbox.close()

    assert asyncio.run(play()) == ["3 BlockingIOError"] * 3


def test_many_that_ask_at_once_get_one_parent(shared: Place) -> None:
    async def play() -> int:
        before = len(below(os.getpid()))
        sandbox = Sandbox(SandboxConfig(call_seconds=GENEROUS), shared.mode)
        try:
            opened = await asyncio.gather(*(sandbox.open(COUNTING) for _ in range(8)))
            answers = await asyncio.gather(*(process.call("observe", [STEP]) for process in opened))
            assert answers == [{"n": "1"}] * 8
            return len(below(os.getpid())) - before - 8
        finally:
            await sandbox.close()

    assert asyncio.run(play()) == (2 if shared.mode == "bubblewrap" else 1)  # bwrap itself stays


@pytest.fixture
def guardian() -> Iterator[None]:
    """Processes whose parent died come to us, where `below` finds them."""
    libc, subreaper = ctypes.CDLL(None), 36
    libc.prctl(subreaper, 1, 0, 0, 0)
    yield
    libc.prctl(subreaper, 0, 0, 0, 0)


def alive() -> set[int]:
    return {pid for pid, state in below(os.getpid()).items() if state != "Z"}


@pytest.mark.usefixtures("guardian")
def test_starts_that_are_given_up_leave_nothing_behind(shared: Place) -> None:
    async def play() -> None:
        others = alive()
        for moment in range(1, 25, 2):
            sandbox = Sandbox(SandboxConfig(call_seconds=GENEROUS), shared.mode)
            opening = asyncio.create_task(sandbox.open(COUNTING))
            await asyncio.sleep(moment / 1000)
            opening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await opening
            await sandbox.close()
        assert await settled(lambda: alive() <= others)

    asyncio.run(play())


@pytest.mark.usefixtures("guardian")
def test_opening_that_is_given_up_leaves_nothing_behind(shared: Place) -> None:
    """At every moment of it: while the parent starts, while it forks, while code is loaded."""

    async def play() -> None:
        others = alive()
        sandbox = Sandbox(SandboxConfig(call_seconds=GENEROUS), shared.mode)
        try:
            for moment in (0.0, 0.001, 0.01, 0.03, 0.1, 0.3):
                opening = asyncio.create_task(sandbox.open("while True: pass"))
                await asyncio.sleep(moment)
                opening.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await opening
            process = await sandbox.open(COUNTING)
            assert await process.call("observe", [STEP]) == {"n": "1"}
            await process.close()
            parents = 2 if shared.mode == "bubblewrap" else 1
            assert await settled(lambda: len(alive() - others) == parents)
        finally:
            await sandbox.close()

    asyncio.run(play())


def test_closing_does_not_wait_for_what_is_under_way(shared: Place) -> None:
    async def play() -> None:
        others = set(below(os.getpid()))
        sandbox = Sandbox(SandboxConfig(call_seconds=60), shared.mode)
        process = await sandbox.open(COUNTING)
        opening = [asyncio.create_task(sandbox.open("while True: pass")) for _ in range(4)]
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await sandbox.close()
            await process.close()
            ended = await asyncio.gather(*opening, return_exceptions=True)
        assert all(isinstance(failed, CallFailed) and failed.lost for failed in ended)
        assert set(below(os.getpid())) == others

    asyncio.run(play())


def test_memory_that_runs_out_is_taken_from_code_inside_first(shared: Place) -> None:
    async def play() -> set[str]:
        others = set(below(os.getpid()))
        sandbox = Sandbox(SandboxConfig(call_seconds=GENEROUS), shared.mode)
        try:
            process = await sandbox.open(COUNTING)
            found = scores(set(below(os.getpid())) - others)
            await process.close()
            return found
        finally:
            await sandbox.close()

    assert asyncio.run(play()) == {"1000"}


def test_a_parent_that_dies_costs_its_processes_and_is_started_anew(shared: Place) -> None:
    async def play() -> None:
        others = set(below(os.getpid()))
        sandbox = Sandbox(SandboxConfig(call_seconds=GENEROUS), shared.mode)
        try:
            process = await sandbox.open(COUNTING)
            await process.call("observe", [STEP])
            assert sandbox._parent is not None and sandbox._parent._process is not None
            os.kill(sandbox._parent._process.pid, signal.SIGKILL)
            with pytest.raises(CallFailed, match="ended") as failed:
                while True:
                    await process.call("observe", [STEP])
            assert failed.value.lost
            again = await sandbox.open(COUNTING)
            assert await again.call("observe", [STEP]) == {"n": "1"}
        finally:
            await sandbox.close()
        assert gone(set(below(os.getpid())) - others)

    asyncio.run(play())


def test_closing_ends_everything_and_can_be_repeated(shared: Place) -> None:
    async def play() -> None:
        others = set(below(os.getpid()))
        sandbox = Sandbox(SandboxConfig(call_seconds=GENEROUS), shared.mode)
        process, hanging = await sandbox.open(COUNTING), await sandbox.open(HANGING)
        call = asyncio.create_task(hanging.call("observe", [STEP]))
        await process.call("observe", [STEP])
        await sandbox.close()
        await sandbox.close()
        assert set(below(os.getpid())) == others
        for failing in (call, process.call("observe", [STEP]), sandbox.open(COUNTING)):
            with pytest.raises(CallFailed) as failed:
                await failing
            assert failed.value.lost
        await process.close()
        await hanging.close()

    asyncio.run(play())


def test_a_sandbox_that_was_never_used_starts_nothing() -> None:
    async def play() -> None:
        others = set(below(os.getpid()))
        sandbox = Sandbox(SandboxConfig())
        assert set(below(os.getpid())) == others
        await sandbox.close()

    asyncio.run(play())


HOST = """
import asyncio, json, os, sys
sys.path.insert(0, {root!r})
from automem.sandbox import Sandbox, SandboxConfig
from tests.sandbox.conftest import below

async def main():
    sandbox = Sandbox(SandboxConfig(call_seconds=600), {mode!r})
    idle, hanging = await sandbox.open({counting!r}), await sandbox.open({hanging!r})
    call = asyncio.create_task(hanging.call("observe", [{step!r}]))
    await asyncio.sleep(0)
    print(json.dumps(list(below(os.getpid()))), flush=True)
    await call

asyncio.run(main())
"""


def test_everything_ends_when_the_host_is_killed(shared: Place) -> None:
    program = HOST.format(root=str(ROOT), mode=shared.mode, counting=COUNTING, hanging=HANGING, step=STEP)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        started = set(json.loads(host.stdout.readline()))
        assert len(started) >= 3
        host.kill()
    assert gone(started)


async def settled(reached: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether something comes about within some seconds."""
    until = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.01)
    return True


def scores(pids: set[int]) -> set[str]:
    return {Path(f"/proc/{pid}/oom_score_adj").read_text().strip() for pid in pids}


def gone(pids: set[int], seconds: float = 20.0) -> bool:
    """Whether processes are gone, or are within some seconds."""
    until = time.monotonic() + seconds
    while alive := {pid for pid in pids if running(pid)}:
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
        pids = alive
    return True


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
