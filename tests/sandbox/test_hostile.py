"""Code inside that hangs, dies, grows, floods or lies: it costs its own answer or its own process, no more."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import select
from pathlib import Path
from typing import Any

import pytest

from automem.sandbox import CallFailed, Sandbox, SandboxConfig
from tests.sandbox.conftest import GENEROUS, STEP, Place, below

HOSTILE = """
import re, json
sys = re.enum.sys
os, ctypes, signal = (sys.modules[n] for n in "os ctypes signal".split())
number = 1

def frame(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return len(data).to_bytes(4, "big") + data

def say(data):
    while data:
        data = data[os.write(3, data):]

def wait():
    while True:
        sys.modules["time"].sleep(60)

class Hooks:
    def op_DO(self, args, memory):
        # The call before this one was 1: loading. Attempts may need the number of this one.
        global number
        number += 1
        exec(args[0], globals(), {"memory": memory})
        return "done"
"""

SHORT = 0.4
"""Seconds of a call that hangs on purpose."""


def do(place: Place, code: str, seconds: float | None = None) -> CallFailed | str:
    """What becomes of a call that runs this; a lost process is checked to be gone."""

    async def call() -> CallFailed | str:
        async with place.opened(HOSTILE) as process:
            before = below(os.getpid())
            try:
                return (await process.call("op_DO", [[code]], seconds=seconds))["text"]
            except CallFailed as failed:
                if failed.lost:
                    assert len(below(os.getpid())) == len(before) - 1
                    for _ in range(2):
                        with pytest.raises(CallFailed) as later:
                            await process.call("op_DO", [["pass"]])
                        assert later.value.lost
                return failed

    return place.run(call())


ENDLESS = {
    "loop": "while True: pass",
    "number": "len(str(10 ** 10 ** 8)) if not sys.set_int_max_str_digits(0) else 0",
    "pattern": "re.match(r'(a+)+$', 'a' * 60 + 'b')",
    "iteration": "all(iter(lambda: 1, 0))",
    "sleep": "wait()",
    "catching everything": """
while True:
    try:
        while True: pass
    except BaseException: pass
""",
    "in the text of an error": """
class Slow(Exception):
    def __str__(self):
        while True: pass
raise Slow
""",
    "one byte at a time": """
for byte in frame({"id": number, "value": "x" * 1000}):
    say(bytes([byte])); sys.modules["time"].sleep(0.05)
""",
    "half a header": "say(b'\\0\\0'); wait()",
    "half a frame": "say(frame({'id': number, 'value': 1})[:-1]); wait()",
    "signals ignored": "[signal.signal(s, signal.SIG_IGN) for s in (15, 2, 1, 24)]; exec('while True: pass')",
}


def test_what_does_not_end_is_ended(place: Place) -> None:
    """All of them at once, which none of them may draw out."""

    async def hang(code: str) -> str:
        async with place.opened(HOSTILE) as process:
            with pytest.raises(CallFailed) as failed:
                await process.call("op_DO", [[code]], seconds=SHORT)
            assert failed.value.lost
            with pytest.raises(CallFailed, match="took longer"):
                await process.call("op_DO", [["pass"]])
            return failed.value.message

    async def play() -> list[str]:
        return await asyncio.gather(*(hang(code) for code in ENDLESS.values()))

    before = set(below(os.getpid()))
    told = dict(zip(ENDLESS, place.run(play()), strict=True))
    assert told == dict.fromkeys(ENDLESS, "took longer than 0.4 s and was ended")
    assert set(below(os.getpid())) == before


DEEP = "nested = ()\nfor _ in range(10**6): nested = (nested,)"

DYING = {
    "os._exit(3)": "ended by itself with exit code 3",
    "ctypes.string_at(0)": "ended by signal 11 (crashed in C code)",
    "os.abort()": "ended by signal",
    "os.close(3); wait()": "ended by signal 9",
    "os.close(3)": "ended by",
    "os.read(3, 1)": "took longer",
    f"{DEEP}\nhash(nested)": "ended by signal 11",
    "say(frame({'id': number, 'value': 1})[:-1]); os._exit(0)": "ended by itself with exit code 0",
    "json.JSONEncoder.encode = None": "ended by",
    "sys.modules['automem.hooks.inside'].write_frame = None": "ended by",
}


@pytest.mark.parametrize("code", DYING)
def test_what_dies_is_told_how(place: Place, code: str) -> None:
    failed = do(place, code, SHORT if "os.read" in code else None)
    assert isinstance(failed, CallFailed)
    assert failed.lost
    assert failed.message.startswith(DYING[code]), failed.message


LYING = {
    "no JSON": ("say(frame(b'hello'))", "no JSON"),
    "nothing": ("say(frame(b''))", "no JSON"),
    "no UTF-8": ("""say(frame(b'{"id": 2, "value": "\\xff"}'))""", "no JSON"),
    "half a surrogate pair": ("""say(frame(b'{"id": 2, "value": "\\\\ud800"}'))""", "no JSON"),
    "not a number": ("""say(frame(b'{"id": 2, "value": NaN}'))""", "no JSON"),
    "nested deeply": ("""say(frame(b'{"id": 2, "value": ' + b'[' * 100_000 + b']' * 100_000 + b'}'))""", "no JSON"),
    "no object": ("say(frame([1, 2]))", "no answer to what was asked"),
    "another number": ("say(frame({'id': number + 1, 'value': 1}))", "no answer to what was asked"),
    "a number that is none": ("say(frame({'id': True, 'value': 1}))", "no answer to what was asked"),
    "no value": ("say(frame({'id': number}))", "neither a value nor an error"),
    "an error that is none": ("say(frame({'id': number, 'error': ['x']}))", "neither a value nor an error"),
    "two answers": ("say(frame({'id': number, 'value': 1}) * 2)", "wrote more than its answer"),
    "a question that is none": ("say(frame({'id': number, 'ask': 3, 'args': []}))", "a question that is none"),
    "a question without arguments": ("say(frame({'id': number, 'ask': 'read'}))", "a question that is none"),
    "an enormous answer": (
        "say((2 ** 32 - 1).to_bytes(4, 'big')); say(b'x' * 10_000)",
        "answered with 4294967295 bytes",
    ),
    "an answer that is too long": ("say(frame(b'x' * 256_001))", "answered with 256001 bytes, 256000 are allowed"),
    "a flood": ("while True: say(b'x' * 65536)", "answered with 2021161080 bytes, 256000 are allowed"),
    "an enormous question": ("memory._ask('read', 'x' * 300_000)", "bytes, 256000 are allowed"),
}


@pytest.mark.parametrize("what", LYING)
def test_replies_that_cannot_be_used_end_the_process(place: Place, what: str) -> None:
    code, told = LYING[what]
    failed = do(place, code + "\nwait()")
    assert isinstance(failed, CallFailed)
    assert failed.lost
    assert failed.message.startswith("gave an unusable reply: ")
    assert told in failed.message
    assert len(failed.message) < 600


@pytest.mark.parametrize("value", ["'x' * 10 ** 9", "[0] * 10 ** 10", "bytearray(10 ** 10)", "list(range(10 ** 8))"])
def test_memory_that_is_not_there_is_an_error_like_any_other(place: Place, value: str) -> None:
    failed = do(place, f"value = {value}")
    assert isinstance(failed, CallFailed)
    assert not failed.lost
    assert failed.message.startswith("MemoryError")


def test_output_goes_nowhere_and_hurts_nobody(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    code = "for n in range(200): print('x' * 100_000); print('y' * 100_000, file=sys.stderr)\nos.write(1, b'z' * 10**6)"
    assert do(place, code) == "done"
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the number of futex is not known here")
def test_priorities_cannot_be_passed_on(place: Place) -> None:
    """`futex` waits and wakes; its other operations are not there."""
    code = """
libc = ctypes.CDLL(None, use_errno=True)
word = ctypes.c_uint(0)
told = []
for operation in (1, 128 + 1, 6, 11, 13, 128 + 6, 5):
    ctypes.set_errno(0)
    libc.syscall(NUMBER, ctypes.byref(word), operation, 0, None, ctypes.byref(word), 0)
    told.append(ctypes.get_errno())
raise ValueError(told)
""".replace("NUMBER", {"x86_64": "202", "aarch64": "98"}[platform.machine()])
    failed = do(place, code)
    assert isinstance(failed, CallFailed)
    assert failed.message.startswith("ValueError: [0, 0, 1, 1, 1, 1, 1]")


def test_a_late_answer_is_not_taken_for_the_next(place: Place) -> None:
    answers = "say(frame({'id': number, 'value': 'late'}) + frame({'id': 3, 'value': 'forged'}))"
    late = f"sys.modules['time'].sleep(1.0)\n{answers}"
    failed = do(place, late, SHORT)
    assert isinstance(failed, CallFailed)
    assert failed.message == "took longer than 0.4 s and was ended"


def test_an_answer_before_its_question_is_noticed(place: Place) -> None:
    """The process answers a call properly, and then, before anybody asks, the next one."""
    source = HOSTILE + (
        "    def op_AHEAD(self, args, memory):\n"
        "        inside = sys.modules['automem.hooks.inside']\n"
        "        write = inside.write_frame\n"
        "        def twice(connection, data):\n"
        "            write(connection, data)\n"
        "            sys.modules['time'].sleep(0.3)\n"
        "            say(frame({'id': 3, 'value': 'forged'}))\n"
        "            inside.write_frame = write\n"
        "        inside.write_frame = twice\n"
        "        return 'first'\n"
    )

    async def play() -> CallFailed:
        async with place.opened(source) as process:
            assert (await process.call("op_AHEAD", [[]]))["text"] == "first"
            assert select.select([process._connection], [], [], GENEROUS)[0]
            with pytest.raises(CallFailed, match="it spoke without being asked") as failed:
                await process.call("observe", [STEP])
            return failed.value

    assert place.run(play()).lost


def test_questions_are_not_endless(place: Place) -> None:
    source = "class Hooks:\n  def maintain(self, step, memory):\n    while True: memory.read('a')\n"
    asked = []
    with pytest.raises(CallFailed, match="asked more than 1000 questions about memory in one call") as failed:
        place.asked(source, "maintain", STEP, serve=lambda question, args: asked.append(args) or "text")
    assert failed.value.lost
    assert len(asked) == 1000


def test_as_many_questions_as_are_allowed_are_answered_in_every_call(place: Place) -> None:
    source = """
class Hooks:
  def op_ASK(self, args, memory):
    return str(sum(len(memory.read("a")) for _ in range(int(args[0]))))
"""

    async def play() -> list[Any]:
        async with place.opened(source) as process:
            told = [(await process.call("op_ASK", [["1000"]], lambda *_: "text")) for _ in range(2)]
            with pytest.raises(CallFailed, match="more than 1000 questions") as failed:
                await process.call("op_ASK", [["1001"]], lambda *_: "text")
            assert failed.value.lost
            return told

    assert [told["text"] for told in place.run(play())] == ["4000", "4000"]


@pytest.mark.parametrize("kind", [LookupError, OSError, TimeoutError, EOFError])
def test_a_mistake_of_the_host_is_not_blamed_on_the_process(place: Place, kind: type[Exception]) -> None:
    source = "class Hooks:\n  def maintain(self, step, memory): memory.read('a')\n"

    def serve(question: str, args: list[Any]) -> Any:
        raise kind("the host's own mistake")

    with pytest.raises(kind, match="the host's own mistake"):
        place.asked(source, "maintain", STEP, serve=serve)


def test_an_answer_about_memory_that_is_no_json_is_refused(place: Place) -> None:
    source = "class Hooks:\n  def op_A(self, args, memory): return memory.read('a')\n"
    with pytest.raises(CallFailed, match="ValueError: it cannot be told: ") as failed:
        place.asked(source, "op_A", [], serve=lambda question, args: "\ud800")
    assert not failed.value.lost


def test_a_process_that_does_not_listen_is_ended(place: Place) -> None:
    source = "class Hooks:\n  def op_A(self, args, memory):\n    memory.read('a')\n    return ''\n"
    deaf = (
        HOSTILE + "    def observe(self, step):\n        say(frame({'id': 2, 'ask': 'read', 'args': ['a']})); wait()\n"
    )

    async def play() -> None:
        async with place.opened(deaf) as process:
            with pytest.raises(CallFailed, match="took longer"):
                await process.call("observe", [STEP], lambda question, args: "x" * 50_000_000, seconds=1.0)
        async with place.opened(source) as process:
            assert await process.call("op_A", [[]], lambda question, args: "x" * 5_000_000)

    place.run(play())


def descriptors() -> int:
    """How many files and sockets these tests have open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_lost_processes_leave_no_descriptor_behind(place: Place) -> None:
    async def play() -> None:
        before = descriptors()
        kept = []
        for code in ("os._exit(0)", "say(b'xxxx'); wait()", "wait()", "pass"):
            process = await place.sandbox.open(HOSTILE)
            kept.append(process)
            with contextlib.suppress(CallFailed):
                await process.call("op_DO", [[code]], seconds=SHORT)
        assert descriptors() == before + 1
        await kept[-1].close()
        assert descriptors() == before

    place.run(play())


def test_a_call_that_is_given_up_costs_its_process_only(place: Place) -> None:
    async def play() -> None:
        async with place.opened(HOSTILE) as process:
            before = below(os.getpid())
            call = asyncio.create_task(process.call("op_DO", [["wait()"]]))
            await asyncio.sleep(0)
            while not process._turn.locked():
                await asyncio.sleep(0.001)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            with pytest.raises(CallFailed, match="was interrupted") as failed:
                await process.call("op_DO", [["pass"]])
            assert failed.value.lost
            await process.close()
            assert len(below(os.getpid())) == len(before) - 1

    place.run(play())


def test_processor_time_is_limited_and_loading_may_not_hang(place: Place) -> None:
    hang = "while True: pass"
    ignore = "signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"

    async def call(sandbox: Sandbox, code: str) -> str:
        process = await sandbox.open(HOSTILE)
        with pytest.raises(CallFailed) as failed:
            await process.call("op_DO", [[code]], seconds=60)
        assert failed.value.lost
        return failed.value.message

    async def load(sandbox: Sandbox) -> str:
        with pytest.raises(CallFailed) as failed:
            await sandbox.open("import re\nre.enum.sys.modules['time'].sleep(60)")
        assert failed.value.lost
        return failed.value.message

    async def play() -> list[str]:
        sandbox = Sandbox(SandboxConfig(call_seconds=0.1, cpu_seconds=1), place.mode)
        try:
            return await asyncio.gather(call(sandbox, hang), call(sandbox, ignore + hang), load(sandbox))
        finally:
            await sandbox.close()

    told = place.run(play())
    # The soft limit warns and the hard one, a second later, kills; the kernel may look only after both have passed.
    killed = "ended by signal 9 (killed: out of memory, or past its CPU time)"
    assert told[0] in ("ended by signal 24 (out of CPU time)", killed)
    assert told[1] == killed
    assert told[2] == "took longer than 2.1 s and was ended"


def test_the_smallest_limits_still_run_hooks(place: Place) -> None:
    async def play() -> Any:
        sandbox = Sandbox(SandboxConfig(memory_mb=64, reply_bytes=1_000, cpu_seconds=1), place.mode)
        try:
            process = await sandbox.open("class Hooks:\n  def observe(self, step): return {'a': 'b' * step.number}\n")
            with pytest.raises(CallFailed, match="answered with 1025 bytes, 1000 are allowed") as failed:
                await process.call("observe", [[1000, *STEP[1:]]])
            assert not failed.value.lost
            return await process.call("observe", [[900, *STEP[1:]]])
        finally:
            await sandbox.close()

    assert place.run(play()) == {"a": "b" * 900}
