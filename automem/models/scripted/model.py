"""`scripted` as a model that the agent can ask."""

from __future__ import annotations

import asyncio
import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from automem.models.protocol import Message, ModelUnavailable, Reply
from automem.models.scripted import play

_PR_SET_PDEATHSIG = 1


class Scripted:
    """The scripted player. Not an LLM, and reported under its own name only.

    Its thinking is Python of our own, so many episodes at once would queue for one core: with
    `processes` it is spread over that many. Token counts are an estimate, a quarter of the
    characters, and the same every time.
    """

    name = "scripted"

    def __init__(self, processes: int = 0) -> None:
        """Args: processes: how many think at once; 0 thinks in the asking process."""
        self._processes = processes
        self._pool: ProcessPoolExecutor | None = None

    async def ready(self) -> None:
        """Start the processes."""
        if self._processes and self._pool is None:
            # Spawned, because a fork of a process with threads and open sockets may hang.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                self._processes, mp_context=context, initializer=_end_with, initargs=(os.getpid(),)
            )

    async def complete(self, messages: Sequence[Message]) -> Reply:
        """The player's answer."""
        start = time.perf_counter()
        if self._processes:
            await self.ready()
            assert self._pool is not None
            try:
                text = await asyncio.wrap_future(_submit(self._pool, list(messages)))
            except BrokenProcessPool as error:
                raise ModelUnavailable("a process of the scripted player was ended from outside; resume") from error
        else:
            text = play(messages)
        read = sum(len(message["content"]) for message in messages)
        return Reply(text, read // 4, len(text) // 4, 0, None, time.perf_counter() - start, self.name)

    async def close(self) -> None:
        """End the processes."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)


def _submit(pool: ProcessPoolExecutor, messages: list[Message]) -> Future[str]:
    """Ask the pool. It may start a process now, which must not hear Ctrl-C: that is for the parent."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(play, messages)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with(parent: int) -> None:
    """In a new process: end when the parent does, however it does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
