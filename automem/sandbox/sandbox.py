"""Processes for scaffold code: one an episode, forked from a warm parent in a containment."""

from __future__ import annotations

import asyncio
import weakref

from automem.sandbox.failures import CallFailed
from automem.sandbox.limits import Mode, SandboxConfig
from automem.sandbox.modes import choose_mode
from automem.sandbox.parent import ParentGone, WarmParent
from automem.sandbox.process import Process, forked


class Sandbox:
    """All processes of a run, on one event loop. Nothing is started before the first `open`."""

    def __init__(self, config: SandboxConfig, mode: Mode | None = None) -> None:
        """`mode`: what `choose_mode` chose; None leaves that to the first `open`."""
        self.config = config
        self.mode: Mode | None = mode
        self._starting = asyncio.Lock()
        self._parent: WarmParent | None = None
        self._opened: weakref.WeakSet[Process] = weakref.WeakSet()
        self._closed = False

    async def open(self, source: str) -> Process:
        """A process of its own that has run a ``hooks.py``.

        Raises:
            CallFailed: the code cannot be run; the text says why, and the process is gone.
            SandboxUnavailable: nothing can contain code here.
        """
        try:
            process = await self._forked()
        except (ParentGone, OSError) as error:  # OSError: this process has no descriptor to spare
            raise CallFailed(f"no process for scaffold code: {error}", lost=True) from error
        try:
            await process.load(source)
        except CallFailed as failed:
            await process.close()
            raise CallFailed(failed.message, lost=True) from None
        except BaseException:
            await asyncio.shield(process.close())
            raise
        return process

    async def close(self) -> None:
        """End everything. Calls that are under way fail, and so does every later one."""
        self._closed = True
        async with self._starting:
            if self._parent is not None:
                await self._parent.close()
        await asyncio.gather(*(process.close() for process in self._opened))

    async def _forked(self) -> Process:
        try:
            return await self._fork(await self._running())
        except ParentGone:  # it died since it was last asked; the next one tells whether that is the rule
            return await self._fork(await self._running())

    async def _fork(self, parent: WarmParent) -> Process:
        process = await forked(self.config, parent)
        self._opened.add(process)
        return process

    async def _running(self) -> WarmParent:
        async with self._starting:
            if self._closed:
                raise ParentGone("the sandbox is closed")
            if self._parent is None or not self._parent.alive:
                if self._parent is not None:
                    await self._parent.close()
                if self.mode is None:
                    chosen: Mode = await asyncio.to_thread(choose_mode, self.config)
                    self.mode = chosen
                self._parent = WarmParent(self.config, self.mode)
                await self._parent.start()
            return self._parent
