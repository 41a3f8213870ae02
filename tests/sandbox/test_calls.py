"""Calls to hooks: what goes in, what comes out, what is told when it is wrong, and what stays apart."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from automem.sandbox import CallFailed
from tests.sandbox.conftest import STEP, Place

EVERYTHING = """
from automem.hooks import Again, Memory, Operation, Step, append, upsert_map, write

class Hooks:
    def __init__(self):
        self.seen = []

    def reset(self, game: str, task: str) -> None:
        self.game, self.task = game, task

    def observe(self, step: Step) -> dict[str, str]:
        self.seen.append(step)
        return {"said": f"{self.game}/{self.task} {step.number} {step.observation} {step.action} {step.raw_action} "
                        f"{step.history} {len(self.seen)}"}

    def maintain(self, step: Step, memory: Memory) -> list[Operation]:
        emptied = [write(file.name, "") for file in memory.files()]
        return [append("log.txt", step.observation), upsert_map(3, -4, "träd ✓"), *emptied]

    def check_action(self, step: Step, action: str) -> str | Again | None:
        return {"eat d": "eat", "jump": Again("there is nothing to jump over")}.get(action)

    def op_NEAR(self, args, memory):
        return f"near {args}"

    def op_MOVE(self, args, memory):
        return "moved", [write(*args)]
"""


def test_every_method_is_called_with_what_it_is_promised(place: Place) -> None:
    async def play() -> list[Any]:
        async with place.opened(EVERYTHING) as process:
            files = lambda question, args: [["b.txt", 2, 10]]  # noqa: E731
            return [
                await process.call("reset", ["crafter", "crafter"]),
                await process.call("observe", [STEP]),
                await process.call("observe", [[4, "", None, None, []]]),
                await process.call("maintain", [STEP], files),
                await process.call("check_action", [STEP, "eat d"]),
                await process.call("check_action", [STEP, "jump"]),
                await process.call("check_action", [STEP, "north"]),
                await process.call("op_NEAR", [["a", "b"]]),
                await process.call("op_MOVE", [["f.txt", "text"]]),
            ]

    assert place.run(play()) == [
        None,
        {"said": "crafter/crafter 3 You see a tree. north go north ('east', 'north') 1"},
        {"said": "crafter/crafter 4  None None () 2"},
        [["APPEND", "log.txt", "You see a tree."], ["UPSERT_MAP", "3,-4", "träd ✓"], ["WRITE", "b.txt", ""]],
        {"play": "eat"},
        {"again": "there is nothing to jump over"},
        None,
        {"text": "near ('a', 'b')", "ops": []},
        {"text": "moved", "ops": [["WRITE", "f.txt", "text"]]},
    ]


def test_a_method_that_is_not_there_answers_nothing(place: Place) -> None:
    async def play() -> list[Any]:
        async with place.opened("class Hooks:\n    pass\n") as process:
            calls: list[tuple[str, list[Any]]] = [
                *(("reset", ["g", "t"]), ("observe", [STEP]), ("maintain", [STEP]), ("check_action", [STEP, "a"]))
            ]
            return [await process.call(method, args) for method, args in calls]

    assert place.run(play()) == [None, {}, [], None]


def test_memory_answers_questions_and_refuses_some(place: Place) -> None:
    source = """
class Hooks:
    def op_ASK(self, args, memory):
        told = [memory.files(), memory.files()[0].lines, memory.read("a"), memory.tail("a", 2), memory.search("a", "q")]
        try:
            memory.read("/etc/passwd")
        except ValueError as error:
            told.append(str(error))
        try:
            memory.tail("a", "many")
        except ValueError as error:
            told.append(str(error))
        self.memory = memory
        return repr(told)

    def observe(self, step):
        self.memory.read("a")
"""
    asked = []

    def serve(question: str, args: list[Any]) -> Any:
        asked.append((question, args))
        if args == ["/etc/passwd"]:
            raise ValueError("'/etc/passwd' is no file name")
        return {"files": [["a", 3, 17]], "read": "x" * 100_000, "tail": ["y", "z"], "search": []}[question]

    async def play() -> str:
        async with place.opened(source) as process:
            told = await process.call("op_ASK", [[]], serve)
            with pytest.raises(CallFailed, match="no memory to be read in this method") as later:
                await process.call("observe", [STEP])
            assert not later.value.lost
            return told["text"]

    told = place.run(play())
    assert told == repr(
        [
            *([("a", 3, 17)], 3, "x" * 100_000, ["y", "z"], [], "'/etc/passwd' is no file name"),
            "memory.tail: str 'many' is given where a int belongs",
        ]
    ).replace("('a', 3, 17)", "File(name='a', lines=3, bytes=17)")
    assert [question for question, _ in asked] == ["files", "files", "read", "tail", "search", "read"]
    assert asked[3][1] == ["a", 2]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("def observe(self, step): return ['a']", "TypeError: observe returned a list; return a dict of texts"),
        ("def observe(self, step): return {'a': 3}", "TypeError: observe returned int 3 under str 'a'; names"),
        ("def observe(self, step): return {3: 'a'}", "TypeError: observe returned str 'a' under int 3; names"),
        ("def observe(self, step): return {'a': '\\ud800'}", "cannot be written as UTF-8"),
        ("def observe(self, step): return {'a': 'x' * 300_000}", "answered with 3000"),
        ("def observe(self, step): return [][1]", r"IndexError: list index out of range \(hooks.py:3\)"),
        ("def observe(self, step): raise SystemExit(3)", r"SystemExit: 3 \(hooks.py:3\)"),
        ("def observe(self, step): raise KeyboardInterrupt", r"^KeyboardInterrupt \(hooks.py:3\)$"),
        ("def observe(self, step): raise ValueError('a\\nb\\0c' + 'x' * 9999)", "^ValueError: a b cx{294}… "),
        ("def observe(self, step): return self.observe(step)", r"RecursionError: .* \(hooks.py:3\)"),
        ("def observe(self, step): return {'a': 'x' * 10 ** 12}", r"MemoryError \(hooks.py:3\)"),
        ("def observe(self, step): import os", r"ImportError: hooks cannot import os; they may import .*bisect"),
        ("def observe(self, step): from . import b", "ImportError: hooks cannot import .; they may"),
        ("def observe(self): return {}", "TypeError: .*takes 1 positional argument but 2 were given$"),
    ],
)
def test_what_is_wrong_is_told_and_costs_one_answer(place: Place, body: str, told: str) -> None:
    counting = "def op_N(self, args, memory):\n    self.count += 1\n    return str(self.count)"
    source = f"class Hooks:\n  count = 0\n  {body}\n  {counting}"

    async def play() -> list[Any]:
        async with place.opened(source) as process:
            before = await process.call("op_N", [[]])
            with pytest.raises(CallFailed, match=told) as failed:
                await process.call("observe", [STEP])
            assert not failed.value.lost
            assert "\n" not in failed.value.message
            return [before, await process.call("op_N", [[]])]

    assert [answer["text"] for answer in place.run(play())] == ["1", "2"]


@pytest.mark.parametrize(
    ("method", "args", "returned", "told"),
    [
        ("maintain", [STEP], "'APPEND'", "maintain returned str 'APPEND'; return a list of operations"),
        ("maintain", [STEP], "['APPEND']", "maintain returned a list with str 'APPEND'; make operations with"),
        ("maintain", [STEP], "[('APPEND', 3)]", "an operation with int 3; its arguments are texts"),
        ("maintain", [STEP], "[()]", "a list with a tuple"),
        ("check_action", [STEP, "a"], "3", "check_action returned int 3; return an action, Again"),
        ("check_action", [STEP, "a"], "Again(3)", "check_action returned a Again"),
        ("op_X", [[]], "None", "op_X returned NoneType None; return a text"),
        ("op_X", [[]], "('a', 'b')", "op_X returned str 'b'; return a list of operations"),
        ("op_Y", [[]], "''", "there is no method op_Y"),
    ],
)
def test_answers_of_another_shape_are_named(
    place: Place, method: str, args: list[Any], returned: str, told: str
) -> None:
    name = method if method != "op_Y" else "op_Z"
    source = f"from automem.hooks import Again\nclass Hooks:\n  def {name}(self, *args): return {returned}"
    with pytest.raises(CallFailed) as failed:
        place.asked(source, method, *args)
    assert told in failed.value.message
    assert not failed.value.lost


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("class Hooks\n", r"SyntaxError: .* \(hooks.py:1\)"),
        ("x = 1\n", "NameError: it defines no class Hooks"),
        ("\n\nimport socket\nclass Hooks: pass\n", r"ImportError: hooks cannot import socket; .*\(hooks.py:3\)"),
        ("class Hooks:\n    def __init__(self): raise OSError('no')\n", r"^OSError: no \(hooks.py:2\)$"),
        ("raise SystemExit\n", "SystemExit"),
        ("(" * 5000, "(hooks.py:1)|MemoryError"),
    ],
)
def test_code_that_cannot_be_loaded_is_told(place: Place, source: str, told: str) -> None:
    async def load() -> None:
        async with place.opened(source):
            pass

    with pytest.raises(CallFailed, match=told) as failed:
        place.run(load())
    assert failed.value.lost


def test_an_error_whose_own_text_fails_is_still_an_error(place: Place) -> None:
    source = """
class Odd(Exception):
    def __str__(self):
        raise self

class Text(str):
    def __len__(self):
        raise Odd

class Worse(Exception):
    def __str__(self):
        return Text("as it is")

class Hooks:
    def op_ODD(self, args, memory):
        raise Odd
    def op_WORSE(self, args, memory):
        raise Worse
"""

    async def play() -> list[str]:
        told = []
        async with place.opened(source) as process:
            for method in ("op_ODD", "op_WORSE"):
                with pytest.raises(CallFailed) as failed:
                    await process.call(method, [[]])
                assert not failed.value.lost
                told.append(failed.value.message)
        return told

    assert place.run(play()) == ["an error that cannot be shown", "Worse: as it is (hooks.py:18)"]


LEAKY = """
import json, re
from automem import hooks as api
builtins = re.enum.sys.modules["builtins"]

class Hooks:
    def op_LEAVE(self, args, memory):
        builtins.left = json.left = api.Step.left = Hooks.left = "here"
        re.compile("left behind")
        json.dumps = None
        global left
        left = "here"
        return "left"

    def op_LOOK(self, args, memory):
        places = {"builtins": builtins, "json": json, "api": api.Step, "class": Hooks}
        found = [name for name, thing in places.items() if hasattr(thing, "left")] + ["module"] * ("left" in globals())
        return repr(found)
""".replace("from automem import hooks as api", "import automem.hooks\napi = automem.hooks")


def test_nothing_passes_from_one_episode_to_another(place: Place) -> None:
    async def play() -> list[str]:
        async with place.opened(LEAKY) as one, place.opened(LEAKY) as other:
            await one.call("op_LEAVE", [[]])
            seen = [await one.call("op_LOOK", [[]]), await other.call("op_LOOK", [[]])]
            async with place.opened(LEAKY) as later:
                return [answer["text"] for answer in (*seen, await later.call("op_LOOK", [[]]))]

    everything = ["builtins", "json", "api", "class", "module"]
    assert place.run(play()) == [repr(everything), "[]", "[]"]


def test_what_is_random_or_unordered_is_the_same_in_every_process(place: Place, uncontained: Place) -> None:
    source = """
import statistics
class Hooks:
    def op_LIST(self, args, memory):
        names = {f"tree {n}" for n in range(100)}
        return repr((list(names), hash("tree"), statistics.random.random()))
"""
    told = {place.asked(source, "op_LIST", [])["text"] for _ in range(2)}
    assert len(told) == 1
    assert told == {uncontained.asked(source, "op_LIST", [])["text"]}


def test_everything_that_may_be_imported_works_when_files_cannot_be_opened(place: Place) -> None:
    source = """
from __future__ import annotations
import bisect, collections, collections.abc, copy, dataclasses, difflib, enum, functools, heapq, itertools, json, math
import operator, re, statistics, string, textwrap, types, typing, unicodedata

@dataclasses.dataclass
class Thing:
    name: str
    seen: list[int] = dataclasses.field(default_factory=list)

class Kind(enum.StrEnum):
    NEAR = enum.auto()

@functools.singledispatch
def show(value): return "?"

@show.register
def _(value: int): return "int"

class Hooks:
    def op_ALL(self, args, memory):
        thing = copy.deepcopy(Thing("a", [1]))
        told = [thing, Kind.NEAR, show(3), dataclasses.asdict(thing), typing.get_type_hints(Thing)["name"].__name__]
        told += [difflib.get_close_matches("nroth", ["north"]), difflib.HtmlDiff().make_table(["a"], ["b"])[:0]]
        told += [statistics.median([1, 2, 4]), statistics.stdev([1, 2, 4]), statistics.NormalDist(0, 1).cdf(0)]
        told += [string.Template("$a").substitute(a=1), textwrap.shorten("a b c", 3, placeholder=""), "\\N{SNOWMAN}"]
        told += [json.loads(json.dumps({"a": [1.5]})), unicodedata.name("é"), "é".encode("cp437"), b"a".hex()]
        told += [collections.namedtuple("P", "x y")(1, 2), heapq.nsmallest(1, [3, 2]), bisect.bisect([1, 3], 2)]
        told += [re.sub(r"(?P<a>\\\\d+)", "<\\\\g<a>>", "a12"), math.isqrt(17), operator.itemgetter(0)("ab")]
        told += ["%s %.2f %r" % ("a", 1 / 3, None), f"{1234567:,}", "ß".casefold(), "ä".encode("idna")]
        return "fine"
"""
    assert place.asked(source, "op_ALL", [])["text"] == "fine"


def test_calls_of_many_episodes_do_not_wait_for_one_that_is_slow(place: Place) -> None:
    slow = "class Hooks:\n  def observe(self, step):\n    while True: pass\n"
    quick = "class Hooks:\n  def observe(self, step): return {'n': str(step.number)}\n"

    async def play() -> int:
        async with place.opened(slow) as hung, place.opened(quick) as process:
            hanging = asyncio.create_task(hung.call("observe", [STEP], seconds=60))
            for _ in range(50):
                assert await process.call("observe", [STEP]) == {"n": "3"}
            late = await place.sandbox.open(quick)
            await late.close()
            assert not hanging.done()
            await hung.close()
            with pytest.raises(CallFailed, match="was closed") as failed:
                await hanging
            assert failed.value.lost
            return 1

    assert place.run(play())
