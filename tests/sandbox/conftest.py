"""One sandbox a mode for all tests here, and a bystander in it that must never notice anything."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from automem.sandbox import Mode, Process, Sandbox, SandboxConfig
from automem.sandbox.modes import trouble

T = TypeVar("T")

BYSTANDER = """
class Hooks:
    calls = 0
    def observe(self, step):
        self.calls += 1
        return {"calls": str(self.calls)}
"""

STEP: list[Any] = [3, "You see a tree.", "north", "go north", ["east", "north"]]

CANARY = "AUTOMEM_TEST_SECRET_API_KEY"
"""In the environment of the tests, and nowhere inside."""

GENEROUS = 20.0
"""Seconds for a call that has to succeed, however busy the machine is."""


def below(pid: int) -> dict[int, str]:
    """The processes that a process has started, and those that they have: pid -> state."""
    parents: dict[int, list[tuple[int, str]]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            parents.setdefault(int(parent), []).append((int(stat.parent.name), state))
    found: dict[int, str] = {}
    todo = [pid]
    while todo:
        children = dict(parents.get(todo.pop(), []))
        found |= children
        todo += children
    return found


class Place:
    """A sandbox on an event loop of its own."""

    def __init__(self, mode: Mode, runner: asyncio.Runner) -> None:
        self.mode = mode
        self.sandbox = Sandbox(SandboxConfig(call_seconds=GENEROUS), mode)
        self._runner = runner
        self._bystander = self.run(self.sandbox.open(BYSTANDER))
        self._calls = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the loop of the sandbox."""
        return self._runner.run(work)

    @asynccontextmanager
    async def opened(self, source: str) -> AsyncIterator[Process]:
        """A process with this code, closed at the end."""
        process = await self.sandbox.open(source)
        try:
            yield process
        finally:
            await process.close()

    def asked(self, source: str, method: str, *args: Any, serve: Callable[..., Any] | None = None) -> Any:
        """The answer of a fresh process with this code to one call."""

        async def ask() -> Any:
            async with self.opened(source) as process:
                return await process.call(method, list(args), serve)

        return self.run(ask())

    def check_bystander(self) -> None:
        """Another episode of the same sandbox goes on as if nothing had happened."""
        self._calls += 1
        assert self.run(self._bystander.call("observe", [STEP])) == {"calls": str(self._calls)}


@pytest.fixture(scope="session", autouse=True)
def _secret() -> None:
    os.environ[CANARY] = "very-secret-value"


@pytest.fixture(scope="session", params=["bubblewrap", "landlock"])
def shared(request: pytest.FixtureRequest) -> Iterator[Place]:
    if reason := trouble(request.param):
        pytest.skip(f"{request.param} cannot run here: {reason}")
    with asyncio.Runner() as runner:
        place = Place(request.param, runner)
        yield place
        runner.run(place.sandbox.close())


@pytest.fixture
def place(shared: Place) -> Iterator[Place]:
    """The shared sandbox; after the test, a bystander in it must still be there with its state."""
    yield shared
    shared.check_bystander()


@pytest.fixture(scope="session")
def uncontained() -> Iterator[Place]:
    """The same without containment: shows that an attempt is a real one."""
    with asyncio.Runner() as runner:
        place = Place("unsafe", runner)
        yield place
        runner.run(place.sandbox.close())
