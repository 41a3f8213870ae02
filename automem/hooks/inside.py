"""The inside of an episode's process: answers the host's requests with a scaffold's ``Hooks`` object.

Standard library only, and `automem.hooks.api`. A request is a frame, 4 bytes of length and JSON:
``{"id": n, "call": method, "args": [...]}``, or ``{"id": n, "load": source}`` first of all. The
reply is ``{"id": n, "value": ...}`` or ``{"id": n, "error": text}``; before it, any number of
questions about the memory folder, ``{"id": n, "ask": question, "args": [...]}``, each answered with
``{"answer": ...}`` or ``{"refusal": text}``.

What is checked here is a help for those who write hooks; it contains nothing, and the host
checks everything again.
"""

from __future__ import annotations

import builtins
import json
import os
import sys
import types
from collections.abc import Callable, Collection, Mapping
from typing import Any

from automem.hooks.api import Again, Memory, Operation, Step

FILE = "hooks.py"
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)

ERROR_CHARS = 300
"""Characters of an error's own text that are passed on."""


def serve(connection: int, reply_bytes: int, allowed: Collection[str]) -> None:
    """Answer requests on an open descriptor until the other side hangs up.

    Args:
        connection: the descriptor.
        reply_bytes: longest answer, as JSON.
        allowed: modules that hooks may import.
    """
    host = _Host(connection, reply_bytes)
    hooks: Any = None
    while (request := host.receive()) is not None:
        try:
            if "load" in request:
                hooks, value = load(request["load"], allowed), None
            else:
                value = answer(hooks, request["call"], request["args"], Memory(host.ask))
            host.reply("value", value)
        except BaseException as error:
            host.reply("error", describe(error))


class _Host:
    """The other side: one request at a time, and questions while one is being answered."""

    def __init__(self, connection: int, reply_bytes: int) -> None:
        self._connection = connection
        self._reply_bytes = reply_bytes
        self._request: int | None = None

    def receive(self) -> dict[str, Any] | None:
        """The next request; None at the end."""
        request = read_frame(self._connection)
        self._request = None if request is None else request["id"]
        return request

    def reply(self, kind: str, value: Any) -> None:
        """Answer the request that was received last. Raises, and has said nothing, when the value is no JSON."""
        data = encode({"id": self._request, kind: value})
        if len(data) > self._reply_bytes:
            told = f"answered with {len(data)} bytes, {self._reply_bytes} are allowed"
            data = encode({"id": self._request, "error": told})
        self._request = None
        write_frame(self._connection, data)

    def ask(self, question: str, *args: Any) -> Any:
        """Ask about the memory folder; `ValueError` where that is refused."""
        if self._request is None:
            raise ValueError("memory can be read while a method is at work, not later")
        wanted = {"files": (), "read": (str,), "tail": (str, int), "search": (str, str)}[question]
        for value, kind in zip(args, wanted, strict=True):
            if not isinstance(value, kind):
                raise ValueError(f"memory.{question}: {_shown(value)} is given where a {kind.__name__} belongs")
        write_frame(self._connection, encode({"id": self._request, "ask": question, "args": args}))
        told = read_frame(self._connection)
        if told is None:
            os._exit(0)
        if "refusal" in told:
            raise ValueError(told["refusal"])
        return told["answer"]


def read_frame(connection: int) -> dict[str, Any] | None:
    """One frame; None when the other side has hung up."""
    header = _take(connection, 4)
    if header is None:
        return None
    data = _take(connection, int.from_bytes(header, "big"))
    return None if data is None else json.loads(data)


def _take(connection: int, size: int) -> bytes | None:
    data = os.read(connection, size)
    if len(data) == size:
        return data
    parts = bytearray(data)
    while data and len(parts) < size:
        data = os.read(connection, size - len(parts))
        parts += data
    return bytes(parts) if data else None


def write_frame(connection: int, data: bytes) -> None:
    """Write encoded JSON as one frame."""
    rest = memoryview(len(data).to_bytes(4, "big") + data)
    while rest:
        rest = rest[os.write(connection, rest) :]


def encode(value: Any) -> bytes:
    """JSON in UTF-8; `ValueError` for text that is none, such as half a surrogate pair."""
    try:
        return _JSON.encode(value).encode()
    except UnicodeEncodeError:
        raise ValueError("answered with text that cannot be written as UTF-8") from None


def load(source: str, allowed: Collection[str]) -> Any:
    """Run a ``hooks.py`` and make its ``Hooks`` object. Raises whatever it raises."""
    module = types.ModuleType("hooks")
    module.__file__ = FILE
    own = types.ModuleType("builtins")
    vars(own).update(vars(builtins), __import__=_importer(allowed))
    vars(module)["__builtins__"] = vars(own)
    sys.modules["hooks"] = module  # dataclasses look their module up
    exec(compile(source, FILE, "exec", dont_inherit=True), vars(module))
    hooks = vars(module).get("Hooks")
    if not isinstance(hooks, type):
        raise NameError("it defines no class Hooks")
    return hooks()


def _importer(allowed: Collection[str]) -> Callable[..., Any]:
    """`__import__` for hooks: says early and clearly what would not work anyway."""
    known = ", ".join(sorted(name for name in allowed if name != "__future__"))

    def import_allowed(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> types.ModuleType:
        if level or name not in allowed:
            raise ImportError(f"hooks cannot import {'.' * level}{name}; they may import {known}")
        return builtins.__import__(name, globals, locals, fromlist, 0)

    return import_allowed


def answer(hooks: Any, method: str, args: list[Any], memory: Memory) -> Any:
    """Call a method of hooks and put what it returns into the form that the host expects.

    A method that is not defined counts as one that returns None. ``reset`` gives None; ``observe``
    ``{name: text}``; ``maintain`` ``[[operation, argument, ...], ...]``; ``check_action`` None,
    ``{"play": action}`` or ``{"again": reason}``; ``op_NAME`` ``{"text": text, "ops": [...]}``.

    Raises:
        TypeError: what it returned has another shape.
        BaseException: whatever the method raised.
    """
    function = getattr(hooks, method, None)
    if method == "reset":
        if function is not None:
            function(*args)
        return None
    if method.startswith("op_"):
        if function is None:
            raise AttributeError(f"there is no method {method}")
        return _told(method, function(tuple(args[0]), memory))
    number, observation, action, raw_action, history = args[0]
    step = Step(number, observation, action, raw_action, tuple(history))
    if method == "observe":
        return _texts(method, None if function is None else function(step))
    if method == "maintain":
        return _operations(method, None if function is None else function(step, memory))
    return _verdict(method, None if function is None else function(step, args[1]))


def _texts(method: str, value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{method} returned {_shown(value)}; return a dict of texts")
    texts = dict(value.items())
    for name, text in texts.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(f"{method} returned {_shown(text)} under {_shown(name)}; names and values are texts")
    return texts


def _operations(method: str, value: Any) -> list[Operation]:
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise TypeError(f"{method} returned {_shown(value)}; return a list of operations, such as write(file, text)")
    operations = []
    for operation in value:
        if not isinstance(operation, list | tuple) or not operation:
            raise TypeError(f"{method} returned a list with {_shown(operation)}; make operations with write, append …")
        for word in operation:
            if not isinstance(word, str):
                raise TypeError(f"{method} returned an operation with {_shown(word)}; its arguments are texts")
        operations.append(tuple(operation))
    return operations


def _verdict(method: str, value: Any) -> dict[str, str] | None:
    if value is None:
        return None
    if isinstance(value, str):
        return {"play": value}
    if isinstance(value, Again) and isinstance(value.reason, str):
        return {"again": value.reason}
    raise TypeError(f"{method} returned {_shown(value)}; return an action, Again(reason) or None")


def _told(method: str, value: Any) -> dict[str, Any]:
    text, operations = value if isinstance(value, tuple) and len(value) == 2 else (value, [])
    if not isinstance(text, str):
        raise TypeError(f"{method} returned {_shown(value)}; return a text, or a text and a list of operations")
    return {"text": text, "ops": _operations(method, operations)}


def _shown(value: Any) -> str:
    """A value in a few words: its type, and a short text of it where that is sure to be harmless."""
    if type(value) in (str, int, float, bool, type(None)):
        return f"{type(value).__name__} {value!r}"[:60]
    return f"a {_plain(type(value).__name__)}"


def describe(error: BaseException) -> str:
    """An error in one line: class, text and the line of ``hooks.py``, whatever its own methods do."""
    try:
        kind = _plain(type(error).__name__)
        if isinstance(error, SyntaxError) and error.filename == FILE:
            return f"{kind}: {_plain(error.msg)} ({FILE}:{int(error.lineno or 0)})"
        text = _plain(str(error))
        line = _line(error)
        return (f"{kind}: {text}" if text else kind) + (f" ({FILE}:{line})" if line else "")
    except BaseException:
        return "an error that cannot be shown"


def _plain(text: str) -> str:
    """Bounded text on one line: a true `str`, whatever subclass it was."""
    plain = str.encode(text, "utf-8", "replace")[: 8 * ERROR_CHARS].decode("utf-8", "replace")
    plain = " ".join("".join(sign if sign.isprintable() else " " for sign in plain).split())
    return plain if len(plain) <= ERROR_CHARS else plain[: ERROR_CHARS - 1] + "…"


def _line(error: BaseException) -> int | None:
    """Where in ``hooks.py`` it happened: the innermost line of it that was at work."""
    line, place = None, error.__traceback__
    while place is not None:
        if place.tb_frame.f_code.co_filename == FILE:
            line = place.tb_lineno
        place = place.tb_next
    return line
