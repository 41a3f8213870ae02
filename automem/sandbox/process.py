"""One episode's process, seen from the host, which trusts nothing that it reads from it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from automem.sandbox.failures import CallFailed, ending
from automem.sandbox.limits import SandboxConfig
from automem.sandbox.parent import WarmParent
from automem.vocabulary import one_line

QUESTIONS = 1_000
"""Questions about memory that one call may ask; the next one ends its process."""

LOAD_SECONDS = 2.0
"""What running a ``hooks.py`` for the first time may take beyond the time of a call."""

MESSAGE_CHARS = 500
"""Characters of a message that came from inside."""

_CHUNK = 65_536

Serve = Callable[[str, list[Any]], Any]


class Process:
    """A process that runs one episode's hooks. Calls follow each other; its state stays from one to the next."""

    def __init__(self, config: SandboxConfig, parent: WarmParent, key: int, connection: socket.socket) -> None:
        self._config = config
        self._parent = parent
        self._key = key
        self._connection = connection
        self._turn = asyncio.Lock()
        self._number = 0
        self._received = bytearray()
        self._lost: str | None = None
        self._ending: asyncio.Future[int | None] | None = None

    async def load(self, source: str) -> None:
        """Run a ``hooks.py`` and make its object; raises `CallFailed`."""
        await self._ask({"load": source}, None, self._config.call_seconds + LOAD_SECONDS)

    async def call(
        self, method: str, args: Sequence[Any], serve: Serve | None = None, seconds: float | None = None
    ) -> Any:
        """Call a method.

        Args:
            method: ``reset``, ``observe``, ``maintain``, ``check_action`` or ``op_NAME``.
            args: JSON values, see `automem.hooks.inside.answer`.
            serve: answers a question about memory: its name and arguments, which may be anything that
                JSON can say. A `ValueError` is passed on as a refusal.
            seconds: how long it may take, questions included; what the configuration says.

        Returns:
            The answer, a JSON value. Nothing is sure about it but that.

        Raises:
            CallFailed: there is none.
            Exception: what `serve` raised, other than `ValueError`; the process is gone then, too.
        """
        message = {"call": method, "args": list(args)}
        return await self._ask(message, serve, self._config.call_seconds if seconds is None else seconds)

    async def close(self) -> None:
        """End the process, whatever it is doing. A call that is under way fails."""
        if self._lost is None:
            self._lost = "was closed"
        await self._end()
        async with self._turn:
            self._connection.close()

    async def _ask(self, message: dict[str, Any], serve: Serve | None, seconds: float) -> Any:
        async with self._turn:
            if self._lost is not None:
                raise CallFailed(self._lost, lost=True)
            self._number += 1
            try:
                data = orjson.dumps({"id": self._number, **message})
            except TypeError as error:
                raise CallFailed(f"cannot be asked: {error}", lost=False) from error
            try:
                reply = await self._exchange(data, serve, seconds)
                if "value" in reply:
                    return reply["value"]
                if not isinstance(reply.get("error"), str):
                    raise _Unusable("neither a value nor an error")
            except _Unusable as error:
                raise await self._lose(f"gave an unusable reply: {error}") from None
            except TimeoutError:
                raise await self._lose(f"took longer than {seconds:g} s and was ended") from None
            except (OSError, EOFError):
                raise await self._lose(None) from None
            except _HostFailed as failed:
                await self._lose("was ended: a question about memory could not be answered")
                assert failed.__cause__ is not None
                raise failed.__cause__ from None
            except BaseException:
                # Its answer would be taken for that of the next call.
                self._lost = "was interrupted and ended"
                self._start_ending()
                self._connection.close()
                raise
        raise CallFailed(one_line(reply["error"], MESSAGE_CHARS), lost=False)

    async def _exchange(self, data: bytes, serve: Serve | None, seconds: float) -> dict[str, Any]:
        """Send a request and receive its reply, answering questions in between."""
        self._nothing_waits()
        loop = asyncio.get_running_loop()
        late: dict[str, Any] | None = None
        asked = 0
        for grace in (True, False):
            try:
                async with asyncio.timeout(seconds) as limit:
                    if late is None:
                        await self._send(data)
                    while True:
                        reply = late or await self._receive()
                        late = None
                        if "ask" not in reply:
                            return reply
                        asked += 1
                        if asked > QUESTIONS:
                            raise _Unusable(f"it asked more than {QUESTIONS} questions about memory in one call")
                        began = loop.time()
                        answer = self._served(reply, serve)
                        limit.reschedule((limit.when() or 0) + loop.time() - began)  # our time, not its own
                        await self._send(answer)
                        await asyncio.sleep(0)  # the loop is for others, too, however fast questions come
            except TimeoutError:
                # What it said may have been here for long while the loop was busy with something else.
                late = self._received_already()
                if late is None or ("ask" in late and not grace):
                    raise
                if "ask" not in late:
                    return late
        raise AssertionError("both rounds return or raise")

    def _served(self, reply: dict[str, Any], serve: Serve | None) -> bytes:
        question, args = reply["ask"], reply.get("args")
        if not isinstance(question, str) or not isinstance(args, list):
            raise _Unusable("a question that is none")
        try:
            if serve is None:
                raise ValueError("there is no memory to be read in this method")
            answer = serve(question, args)
        except ValueError as error:
            return orjson.dumps({"refusal": one_line(str(error), MESSAGE_CHARS)})
        except Exception as error:
            raise _HostFailed from error
        try:
            return orjson.dumps({"answer": answer}, default=list)  # named tuples as lists
        except TypeError as error:
            return orjson.dumps({"refusal": f"it cannot be told: {error}"})

    async def _send(self, data: bytes) -> None:
        frame = len(data).to_bytes(4, "big") + data
        await asyncio.get_running_loop().sock_sendall(self._connection, frame)

    async def _receive(self) -> dict[str, Any]:
        while (reply := self._received_already()) is None:
            await self._readable()
        return reply

    async def _readable(self) -> None:
        # Not `loop.sock_recv`: when a time-out comes with the data, that takes the data and loses it.
        loop = asyncio.get_running_loop()
        waiting = loop.create_future()
        loop.add_reader(self._connection, _wake, waiting)
        try:
            await waiting
        finally:
            loop.remove_reader(self._connection)

    def _received_already(self) -> dict[str, Any] | None:
        """The reply, when all of it is here. Never waits, and reads no more than one reply may have."""
        most = self._config.reply_bytes
        while True:
            size = int.from_bytes(self._received[:4], "big") if len(self._received) >= 4 else 0
            if size > most:
                raise _Unusable(f"answered with {size} bytes, {most} are allowed")
            if len(self._received) >= 4 and len(self._received) - 4 >= size:
                break
            try:
                part = self._connection.recv(_CHUNK)
            except BlockingIOError:
                return None
            if not part:
                raise EOFError
            self._received += part
        if len(self._received) - 4 > size:
            raise _Unusable("it wrote more than its answer")
        data, self._received = bytes(self._received[4:]), bytearray()
        try:
            reply = orjson.loads(data)
        except ValueError as error:
            raise _Unusable(f"no JSON ({error})") from None
        if not isinstance(reply, dict) or type(reply.get("id")) is not int or reply["id"] != self._number:
            raise _Unusable("no answer to what was asked")
        return reply

    def _nothing_waits(self) -> None:
        """Nothing has come since the last answer: neither an end nor a word unasked."""
        try:
            part = self._connection.recv(1)
        except BlockingIOError:
            return
        if not part:
            raise EOFError
        raise _Unusable("it spoke without being asked")

    async def _lose(self, message: str | None) -> CallFailed:
        """End the process, in the turn of a call; `message` says why, None: it ended by itself."""
        status = await self._end()
        if self._lost is None:
            self._lost = one_line(message or ending(status), MESSAGE_CHARS)
        self._connection.close()
        return CallFailed(self._lost, lost=True)

    async def _end(self) -> int | None:
        return await asyncio.shield(self._start_ending())

    def _start_ending(self) -> asyncio.Future[int | None]:
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._parent.end(self._key))
        return self._ending


async def forked(config: SandboxConfig, parent: WarmParent) -> Process:
    """A new process of a warm parent, which has run nothing yet.

    Raises:
        ParentGone: the parent ended.
        OSError: this process has no descriptor to spare.
    """
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    try:
        return Process(config, parent, await parent.fork(theirs), ours)
    except BaseException:
        ours.close()
        raise


class _Unusable(Exception):
    """What was read is no reply. The text says why."""


class _HostFailed(Exception):
    """What answers questions about memory raised something of its own; that is the cause."""


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
