"""Games in a small pool of processes, stepped from one event loop.

Each process holds several games. When one dies, every game that it held is started again in
another process and replayed from its actions, which gives the same game: games are
deterministic. Callers notice nothing but the time. Only the game whose own request killed two
processes in a row is given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from automem.errors import UserError
from automem.game_worker import LENGTH, GameRaised, whole
from games.protocol import Observation, Progress, Screen, Transition

DEATHS = 2
"""Processes that one request may kill before its episode is given up."""


PATIENCE = 120.0
"""Seconds after which a request counts as hung and its process is ended; a step takes milliseconds."""

START_PATIENCE = 600.0
"""The same for the start of a game: the first one in a process loads and compiles for seconds."""

GRACE = 5.0
"""Seconds that processes get to end by themselves when the pool closes."""


OTHERS = 10
"""Deaths through no fault of its own that one request survives: where every process dies, trying ends."""


class GameFailed(UserError):
    """A game that cannot go on: it raised, said what is no progression, its process died again and again, or a replay
    came out differently."""


class _WorkerDied(Exception):
    """The process ended; `guilty` is the game whose request it was working on, if any."""

    def __init__(self, guilty: int | None, code: int | None) -> None:
        super().__init__(f"game process ended with code {code}")
        self.guilty = guilty
        self.code = code


class _Worker:
    """One process and its socket. Requests are answered in order."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        # -P: the working folder is the user's, and a random.py in it must not be taken for Python's.
        project = str(Path(__file__).resolve().parent.parent)
        path = os.pathsep.join(filter(None, (project, os.environ.get("PYTHONPATH"))))
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "automem.game_worker", str(theirs.fileno())],
            env={**os.environ, "PYTHONPATH": path},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            process_group=0,  # Ctrl-C is for us; it ends when we hang up
        )
        theirs.close()
        ours.setblocking(False)
        self._socket = ours
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()
        self.games = 0
        self.dead: _WorkerDied | None = None

    async def ask(self, game: int, verb: str, *arguments: Any) -> Any:
        """Send a request and return its value; raises what the game raised, or `_WorkerDied`."""
        data = pickle.dumps((game, verb, arguments), protocol=pickle.HIGHEST_PROTOCOL)
        async with self._turn:
            if not self.alive():
                assert self.dead is not None
                raise _WorkerDied(None, self.dead.code)
            try:
                if self._streams is None:
                    self._streams = await asyncio.open_connection(sock=self._socket, limit=1 << 20)
                reader, writer = self._streams
                writer.write(LENGTH.pack(len(data)) + data)
                async with asyncio.timeout(START_PATIENCE if verb == "open" else PATIENCE):
                    header = await reader.readexactly(LENGTH.size)
                    ok, value = pickle.loads(await reader.readexactly(LENGTH.unpack(header)[0]))
            except (OSError, EOFError) as error:  # TimeoutError is an OSError
                self.process.kill()
                self.dead = _WorkerDied(game, await asyncio.to_thread(self.process.wait))
                raise self.dead from error
            except asyncio.CancelledError:
                # The answer would be taken for that of the next request.
                self.dead = _WorkerDied(None, None)
                self.process.kill()
                raise
        if not ok:
            raise value
        return value

    def alive(self) -> bool:
        """Whether the process still runs; it may have died while nobody asked it for anything."""
        if self.dead is None and self.process.poll() is not None:
            self.dead = _WorkerDied(None, self.process.returncode)
        return self.dead is None

    def hang_up(self) -> None:
        """Close the connection, which ends the process."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if self._streams is not None:
            self._streams[1].close()
        else:
            self._socket.close()

    def wait(self) -> None:
        """Wait for the process to end, and end it when it does not."""
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class RemoteGame:
    """A game in another process. `actions`, `instructions` and the rest are known after `open`."""

    pool: GamePool
    number: int
    task: str
    seed: int
    options: Mapping[str, Any]
    actions: Mapping[str, str] = field(default_factory=dict)
    instructions: str = ""
    default_action: str = ""
    played: list[str] = field(default_factory=list)
    replays: int = 0
    """How often a process died under it and it was played again up to here."""
    _worker: _Worker | None = None
    _last: Observation | None = None

    async def open(self) -> tuple[Observation, Progress]:
        """Start the game of this seed."""
        observation, progress = await self._survive("open")
        self._check("progression", progress.progression, 0.0, 1.0)
        return observation, progress

    async def step(self, action: str) -> Transition:
        """Play one action."""
        transition = whole(await self._survive("step", action))
        self._check("progression", transition.progress.progression, 0.0, 1.0)
        self._check("reward", transition.reward)
        self.played.append(action)
        self._last = transition.observation
        return transition

    async def screen(self) -> Screen:
        """What a person would see now."""
        return await self._survive("screen")

    async def close(self) -> None:
        """Free the game."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.games -= 1
            with contextlib.suppress(_WorkerDied):
                await worker.ask(self.number, "close")

    def _check(self, what: str, said: Any, least: float = -math.inf, most: float = math.inf) -> None:
        """Raise `GameFailed` when a game says no number in this range: no mean could be made with it."""
        try:
            number = float(said)
        except (TypeError, ValueError):
            number = math.nan
        if not (math.isfinite(number) and least <= number <= most):
            where = f"{self.task}, seed {self.seed}, step {len(self.played)}"
            span = "a finite number" if math.isinf(most) else f"a number from {least:g} to {most:g}"
            raise GameFailed(f"{where}: the game says {what} {said!r}, which is not {span}; the game has to be mended")

    async def _survive(self, verb: str, *arguments: Any) -> Any:
        """Ask for something; when the process dies, move to another one and ask again."""
        deaths = others = 0
        while True:
            try:
                if self._worker is None:
                    opened = await self._start()
                    if verb == "open":
                        return opened
                assert self._worker is not None
                return await self._worker.ask(self.number, verb, *arguments)
            except GameRaised as error:
                raise GameFailed(
                    f"{self.task}, seed {self.seed}, step {len(self.played)}: the game raised {error}"
                ) from error
            except _WorkerDied as death:
                self._worker = None
                self.replays += 1
                if death.guilty == self.number:
                    deaths += 1
                else:
                    others += 1
                if deaths >= DEATHS or others >= OTHERS:
                    raise GameFailed(
                        f"{self.task}, seed {self.seed}, step {len(self.played)}: its process died "
                        f"{deaths + others} times at the same request (code {death.code}); the episode is given up, "
                        "the others go on"
                    ) from death

    async def _start(self) -> tuple[Observation, Progress]:
        """Open the game in a live process and play it up to where it was."""
        worker = self.pool.worker()
        worker.games += 1
        self._worker = worker
        opened = await worker.ask(self.number, "open", self.task, self.seed, dict(self.options))
        observation, self.actions, self.instructions, self.default_action, progress = opened
        for action in self.played:
            observation = whole(await worker.ask(self.number, "step", action)).observation
        if self._last is not None and observation != self._last:
            raise GameFailed(
                f"{self.task}, seed {self.seed}: a replay of {len(self.played)} actions came out differently; "
                "the game is not deterministic here, so the episode cannot go on"
            )
        self._last = observation
        return observation, progress


class GamePool:
    """A few processes that hold many games."""

    def __init__(self, processes: int) -> None:
        """Args: processes: how many at most; they start when they are first needed."""
        self._most = max(1, processes)
        self._workers: list[_Worker] = []
        self._count = 0

    def worker(self) -> _Worker:
        """The live process with the fewest games; a new one while there are fewer than allowed."""
        for worker in self._workers:
            if not worker.alive():
                worker.hang_up()
        self._workers = [worker for worker in self._workers if worker.dead is None]
        if len(self._workers) < self._most and all(worker.games for worker in self._workers):
            self._workers.append(_Worker())
        return min(self._workers, key=lambda worker: worker.games)

    @contextlib.asynccontextmanager
    async def game(self, task: str, seed: int, **options: Any) -> AsyncIterator[RemoteGame]:
        """A game for one episode; not started until `RemoteGame.open`."""
        self._count += 1
        game = RemoteGame(self, self._count, task, seed, options)
        try:
            yield game
        finally:
            await game.close()

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.hang_up()
        for worker in self._workers:
            worker.wait()
        self._workers = []
