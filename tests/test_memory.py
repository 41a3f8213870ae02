"""The memory folder: what operations do and answer, and what ends up on disk."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from automem.memory import FileSpec, Limits, Memory
from automem.ops import OPERATIONS, Op, parse
from tests.memory_folder import FILES, folder, memory, on_disk, refused, run

__all__ = ["folder", "memory"]

# Operations


def test_what_is_written_is_read_back_and_lies_on_disk(memory: Memory, folder: Path) -> None:
    run(memory, "APPEND", "notes.txt", "a tree | north")
    run(memory, "APPEND", "notes.txt", "two\nlines")
    run(memory, "WRITE", "goals.txt", "live")
    run(memory, "CREATE", "empty.txt")
    run(memory, "UPSERT", "facts.txt", "home", "3,4\nby the lake")
    assert memory.flush() == []
    assert (
        on_disk(folder)
        == memory.snapshot()
        == {
            "empty.txt": "",
            "facts.txt": "home: 3,4 by the lake\n",
            "goals.txt": "live\n",
            "notes.txt": "a tree | north\ntwo\nlines\n",
        }
    )
    assert memory.listing() == [("empty.txt", 0, 0), ("facts.txt", 1, 22), ("goals.txt", 1, 5), ("notes.txt", 3, 25)]
    assert run(memory, "READ", "notes.txt").text == "a tree | north\ntwo\nlines"
    assert run(memory, "TAIL", "notes.txt", "2").text == "two\nlines"
    assert memory.tail("notes.txt", 1) == ["lines"]
    assert memory.pinned() == [("goals.txt", "live")]


def test_search_ignores_case_and_shows_the_newest_last(memory: Memory) -> None:
    for line in ("Iron at 1", "coal at 2", "no IRON", "ironwood"):
        run(memory, "APPEND", "notes.txt", line)
    result = run(memory, "SEARCH", "notes.txt", "iRoN")
    assert (result.text, result.found) == ("Iron at 1\nno IRON\nironwood", 3)
    assert run(memory, "COUNT", "notes.txt", "iron").found == 3
    nothing = run(memory, "SEARCH", "notes.txt", "diamond")
    assert nothing.found == 0 and "diamond" in nothing.text


def test_search_of_every_file_shows_whose_line_it_is_in_the_order_of_writing(memory: Memory) -> None:
    run(memory, "UPSERT", "facts.txt", "tree", "old")
    run(memory, "APPEND", "notes.txt", "a tree")
    run(memory, "APPEND", "other.txt", "tree again")
    run(memory, "APPEND", "notes.txt", "the last tree")
    result = run(memory, "SEARCH", "*", "tree")
    assert result.text.split("\n") == [
        "facts.txt: tree: old",
        "notes.txt: a tree",
        "other.txt: tree again",
        "notes.txt: the last tree",
    ]
    assert run(memory, "COUNT", "*", "tree").found == 4


def test_a_map_keeps_one_line_a_key_and_what_changed_last_at_the_end(memory: Memory) -> None:
    run(memory, "UPSERT", "facts.txt", "a", "1")
    run(memory, "UPSERT", "facts.txt", "b", "2")
    changed = run(memory, "UPSERT", "facts.txt", "a", "345")
    assert changed.bytes_added == 2 and not changed.duplicate
    assert memory.read("facts.txt") == "b: 2\na: 345\n"
    same = run(memory, "UPSERT", "facts.txt", "b", "2")
    assert same.duplicate and same.bytes_added == 0
    assert memory.read("facts.txt") == "b: 2\na: 345\n"
    run(memory, "DELETE", "facts.txt", "b")
    run(memory, "DELETE", "facts.txt", "a: 345")
    assert memory.read("facts.txt") == ""


@pytest.mark.parametrize(
    ("x", "y", "name"),
    [(0, 0, "map_0_0.txt"), (7, 8, "map_0_1.txt"), (-1, -8, "map_-1_-1.txt"), (-9, 17, "map_-2_2.txt")],
)
def test_upsert_map_finds_the_block_of_a_coordinate(memory: Memory, x: int, y: int, name: str) -> None:
    run(memory, "UPSERT_MAP", f"{x},{y}", "water")
    assert memory.snapshot() == {name: f"{x},{y}: water\n"}


def test_upsert_map_without_a_coordinate_map_is_refused(folder: Path) -> None:
    memory = Memory(folder, [FileSpec("m.txt", "map", key="{level}:{x},{y}")])
    assert "no coordinate map" in refused(memory, "UPSERT_MAP", "1,2", "tree")


def test_maps_and_texts_are_not_mixed_up(memory: Memory) -> None:
    run(memory, "APPEND", "notes.txt", "x")
    assert "facts.txt, map_{block}.txt" in refused(memory, "UPSERT", "notes.txt", "k", "v")
    assert "is not a map" in refused(memory, "UPSERT", "own.txt", "k", "v")
    assert "<|UPSERT|>facts.txt|key|value<|END|>" in refused(memory, "APPEND", "facts.txt", "k: v")
    assert "key: value" in refused(memory, "WRITE", "facts.txt", "k: v\nno colon here")
    assert "cannot be a key" in refused(memory, "UPSERT", "facts.txt", "a: b", "c")
    run(memory, "WRITE", "facts.txt", "k: v\n\nl:\nk: w: x")
    assert memory.read("facts.txt") == "k: w: x\nl:\n"


def test_delete_removes_a_file_or_every_line_that_is_equal(memory: Memory, folder: Path) -> None:
    for line in ("a", "b", "a", "ab"):
        run(memory, "APPEND", "notes.txt", line)
    memory.flush()
    assert run(memory, "DELETE", "notes.txt", "a").bytes_added == -4
    assert memory.read("notes.txt") == "b\nab\n"
    assert 'has no line "a"' in refused(memory, "DELETE", "notes.txt", "a")
    assert memory.flush() == [] and on_disk(folder) == {"notes.txt": "b\nab\n"}
    run(memory, "DELETE", "notes.txt")
    assert memory.flush() == [] and on_disk(folder) == {} == memory.snapshot()
    refused(memory, "DELETE", "notes.txt")
    run(memory, "APPEND", "notes.txt", "new")
    assert memory.flush() == [] and on_disk(folder) == {"notes.txt": "new\n"}


def test_a_log_with_max_lines_drops_the_oldest_and_says_so(memory: Memory, folder: Path) -> None:
    for number in range(40):
        answer = run(memory, "APPEND", "recent.txt", f"line {number}").text
        assert ("dropped" in answer) == (number >= 3)
        memory.flush()
    assert on_disk(folder) == {"recent.txt": "line 37\nline 38\nline 39\n"}
    assert run(memory, "SEARCH", "recent.txt", "line").found == 3


def test_duplicates_are_told(memory: Memory) -> None:
    assert not run(memory, "APPEND", "notes.txt", "a tree").duplicate
    assert not run(memory, "APPEND", "notes.txt", "a Tree").duplicate
    assert not run(memory, "APPEND", "notes.txt", "a tree\nand more").duplicate
    assert run(memory, "APPEND", "notes.txt", "a tree").duplicate
    assert run(memory, "APPEND", "notes.txt", "and more\na tree").duplicate
    assert not run(memory, "APPEND", "goals.txt", "a tree").duplicate
    run(memory, "DELETE", "notes.txt", "a tree")
    assert not run(memory, "APPEND", "notes.txt", "a tree").duplicate


def test_reading_what_is_not_there_says_what_is(memory: Memory) -> None:
    run(memory, "CREATE", "a.txt")
    assert "there is no file b.txt. Files: a.txt" in refused(memory, "READ", "b.txt")
    # A file that the scaffold plans for is empty, not unknown.
    assert run(memory, "READ", "notes.txt").text == "(notes.txt is empty)"
    assert run(memory, "SEARCH", "notes.txt", "x").found == 0
    assert "already" in refused(memory, "CREATE", "a.txt")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "...", "a/b", "/a", "../a", "a\0", "a\n", "ä", "a b", "n" * 65, "*", "a~"]
)
def test_no_other_file_names_are_taken(memory: Memory, name: str) -> None:
    for operation in ("APPEND", "WRITE", "CREATE", "UPSERT"):
        refused(memory, operation, name, *("x", "y", "z")[: len(OPERATIONS[operation].args) - 1])


def test_text_that_would_break_a_terminal_or_utf8_is_replaced(memory: Memory, folder: Path) -> None:
    run(memory, "APPEND", "notes.txt", "a\x00b\x1b[31m\udc80c\r\nd\u2028e\tf ü")
    run(memory, "UPSERT", "facts.txt", "k\x07", "a\u2029b\rc")
    memory.flush()
    assert on_disk(folder) == {"notes.txt": "a\ufffdb\ufffd[31m\ufffdc\nd\ne\tf ü\n", "facts.txt": "k\ufffd: a b c\n"}
    assert all(text.splitlines() == text.split("\n")[:-1] for text in memory.snapshot().values())
    assert run(memory, "SEARCH", "notes.txt", "C").found == 1


def test_initial_files(folder: Path) -> None:
    memory = Memory(folder, FILES, initial={"goals.txt": "1. live\n\n2. prosper", "facts.txt": "a: b\n"})
    assert on_disk(folder) == {"goals.txt": "1. live\n\n2. prosper\n", "facts.txt": "a: b\n"}
    run(memory, "UPSERT", "facts.txt", "a", "c")
    assert memory.read("facts.txt") == "a: c\n"
    with pytest.raises(ValueError, match=r"initial memory file facts.txt: .*no colon"):
        Memory(None, FILES, initial={"facts.txt": "no colon"})
    with pytest.raises(ValueError, match="not a file name"):
        Memory(None, FILES, initial={"../x": ""})


# Limits


@pytest.mark.parametrize("chars", [1, 20, 60, 100, 500])
def test_no_result_is_longer_than_the_limit(chars: int) -> None:
    memory = Memory(None, FILES, Limits(result_chars=chars))
    for number in range(50):
        run(memory, "APPEND", "notes.txt", f"entry {number} " + "x" * (number * 7 % 90))
        run(memory, "CREATE", f"file-number-{number}")
    long = "y" * 500
    for op in (
        *(Op(name, ("notes.txt",)) for name in ("READ", "CREATE")),
        *(Op("TAIL", ("notes.txt", n)) for n in ("1", "3", "999999999")),
        *(Op("SEARCH", (name, query)) for name in ("notes.txt", "*") for query in ("entry", "7", "none")),
        *(Op("COUNT", (name, "e" * n)) for name in ("notes.txt", "*") for n in (1, 500)),
        *(Op(name, ("nowhere", long)) for name in ("SEARCH", "UPSERT", "DELETE", long)),
        *(Op(long, (long,)), Op("READ", (long,)), Op("READ", ("missing",)), Op("APPEND", ("notes.txt", long))),
    ):
        result = memory.run(op)
        assert len(result.text) <= chars, op
        assert len(memory.pinned()) == 0


def test_a_long_file_is_read_from_its_newest_end_with_a_note(folder: Path) -> None:
    memory = Memory(folder, FILES, Limits(result_chars=200))
    for number in range(100):
        run(memory, "APPEND", "goals.txt", f"this is line number {number}")
    result = run(memory, "READ", "goals.txt")
    note, *shown = result.text.split("\n")
    assert result.truncated and len(result.text) <= 200
    assert note == f"[the newest {len(shown)} of 100 lines; 200 characters are shown at most]"
    assert shown == [f"this is line number {number}" for number in range(100 - len(shown), 100)]
    # One more line would not have fit.
    assert len(result.text) + len("\nthis is line number 90") > 200
    assert memory.pinned() == [("goals.txt", result.text)]
    short = run(memory, "TAIL", "goals.txt", "3")
    assert not short.truncated and short.text.count("\n") == 2


def test_a_line_that_does_not_fit_is_cut(folder: Path) -> None:
    memory = Memory(folder, FILES, Limits(result_chars=100))
    run(memory, "APPEND", "notes.txt", "start " + "x" * 200 + " needle " + "y" * 200 + " end")
    read = run(memory, "READ", "notes.txt")
    assert read.text.endswith("y end") and len(read.text) <= 100 and read.truncated
    found = run(memory, "SEARCH", "notes.txt", "NEEDLE")
    assert "needle" in found.text and found.found == 1 and found.truncated


def test_search_shows_at_most_so_many_lines(folder: Path) -> None:
    memory = Memory(folder, FILES, Limits(search_results=4))
    for number in range(9):
        run(memory, "APPEND", "notes.txt", f"tree {number}")
        result = run(memory, "SEARCH", "notes.txt", "tree")
        assert result.found == min(number + 1, 4) and result.truncated == (number >= 4)
    assert result.text == "[the newest 4 matches; older ones are not shown]\ntree 5\ntree 6\ntree 7\ntree 8"
    assert run(memory, "COUNT", "notes.txt", "tree").found == 9


def test_quotas_refuse_and_keep_what_is_there(folder: Path) -> None:
    memory = Memory(folder, FILES, Limits(max_files=3, file_bytes=20, total_bytes=45))
    run(memory, "APPEND", "notes.txt", "x" * 19)
    assert "20 of 20 bytes" in refused(memory, "APPEND", "notes.txt", "y")
    assert "nothing was changed" in refused(memory, "WRITE", "notes.txt", "y" * 20)
    assert "nothing was changed" in refused(memory, "WRITE", "notes.txt", "ü" * 10)
    run(memory, "UPSERT", "facts.txt", "k", "v" * 16)
    refused(memory, "UPSERT", "facts.txt", "k", "v" * 17)
    refused(memory, "UPSERT", "facts.txt", "l", "v")
    assert "memory holds 40 of 45 bytes" in refused(memory, "APPEND", "more.txt", "12345")
    run(memory, "APPEND", "more.txt", "1234")
    assert "3 files already" in refused(memory, "CREATE", "fourth.txt")
    # What shrinks or stays is never refused, and room that was made can be used.
    run(memory, "UPSERT", "facts.txt", "k", "w" * 16)
    run(memory, "WRITE", "notes.txt", "short")
    run(memory, "APPEND", "more.txt", "12345")
    run(memory, "DELETE", "facts.txt")
    run(memory, "CREATE", "fourth.txt")
    run(memory, "APPEND", "fourth.txt", "x" * 19)


def test_limits_must_make_sense() -> None:
    with pytest.raises(ValueError, match="result_chars"):
        Limits(result_chars=0)


# Properties

names = st.sampled_from(["notes.txt", "recent.txt", "goals.txt", "facts.txt", "map_0_0.txt", "own", "*", "../x"])
words = st.lists(
    st.sampled_from(["tree", "Tree", "a", "ab", "12", "1", ":", ": ", "\n", " ", "ß", "İ", "x" * 40]),
    min_size=1,
    max_size=5,
)
texts = st.one_of(words.map("".join), st.text(max_size=20))
coordinates = st.sampled_from(["0,0", "-1,9", "7,7", "x", "(1,2)", "1,2,", "1"])
any_op = st.one_of(
    st.tuples(st.sampled_from(["READ", "CREATE", "DELETE"]), st.tuples(names)),
    st.tuples(st.sampled_from(["SEARCH", "COUNT", "APPEND", "WRITE", "DELETE"]), st.tuples(names, texts)),
    st.tuples(st.just("TAIL"), st.tuples(names, st.sampled_from(["1", "2", "50", "x"]))),
    st.tuples(st.just("UPSERT"), st.tuples(names, texts, texts)),
    st.tuples(st.just("UPSERT_MAP"), st.tuples(coordinates, texts)),
    st.tuples(st.one_of(st.sampled_from(sorted(OPERATIONS)), st.text(max_size=5)), st.lists(texts, max_size=4)),
)


@settings(max_examples=200, deadline=None)
@given(operations=st.lists(any_op, max_size=25), chars=st.sampled_from([10, 80, 2000]))
def test_no_operation_raises_and_the_same_ones_give_the_same_folder(operations, chars: int) -> None:
    limits = Limits(result_chars=chars, max_files=5, file_bytes=300, total_bytes=600)
    memory, again = Memory(None, FILES, limits), Memory(None, FILES, limits)
    for name, args in ((name, tuple(args)) for name, args in operations):
        before = memory.snapshot()
        result = memory.run(Op(name, args))
        assert again.run(Op(name, args)) == result
        assert len(result.text) <= chars
        result.text.encode()
        after = memory.snapshot()
        grown = sum(len(text.encode()) for text in after.values()) - sum(len(text.encode()) for text in before.values())
        assert result.bytes_added == grown
        if not result.ok or name in ("READ", "SEARCH", "TAIL", "COUNT"):
            assert after == before
        assert len(after) <= 5
        assert all(text == "" or text.endswith("\n") for text in after.values())
        assert all(len(text.encode()) <= 300 for text in after.values())
        assert memory.listing() == [(n, text.count("\n"), len(text.encode())) for n, text in sorted(after.items())]
    assert again.snapshot() == memory.snapshot()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.one_of(
            texts, st.sampled_from(["<|APPEND|>notes.txt|", "<|WRITE|>../../x|", "<|UPSERT|>facts.txt|k|", "<|END|>"])
        ),
        max_size=30,
    ).map("".join)
)
def test_whatever_a_model_writes_only_the_folder_changes(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    above = tmp_path_factory.mktemp("above")
    memory = Memory(above / "memory", FILES)
    for op in parse(text, "log").ops:
        memory.run(op)
    assert memory.flush() == []
    memory.close()
    assert [path.name for path in above.iterdir()] == ["memory"]
    assert on_disk(above / "memory") == memory.snapshot()


class AgainstAModel(RuleBasedStateMachine):
    """Random operations, compared with lists and dicts that do the same in the plainest way."""

    @initialize(small=st.booleans())
    def begin(self, small: bool) -> None:
        import tempfile

        import automem.memory.lines

        self.scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self.scratch.name) / "memory"
        self.chunk_lines = automem.memory.lines.CHUNK_LINES
        # Small chunks, so that a few lines already make many of them.
        automem.memory.lines.CHUNK_LINES = 3 if small else self.chunk_lines
        self.memory = Memory(self.folder, FILES, Limits(result_chars=10_000))
        self.texts: dict[str, list[str]] = {}
        self.maps: dict[str, dict[str, str]] = {}

    def teardown(self) -> None:
        import automem.memory.lines

        if hasattr(self, "memory"):
            automem.memory.lines.CHUNK_LINES = self.chunk_lines
            self.memory.close()
            self.scratch.cleanup()

    lines = st.sampled_from(["tree", "Tree 1", "a tree 12", "rock 2", "1 2", "", "x", "STRASSE", "été"])
    text_names = st.sampled_from(["notes.txt", "recent.txt", "own"])
    map_names = st.sampled_from(["facts.txt", "map_0_0.txt"])

    @rule(name=text_names, entry=st.lists(lines, min_size=1, max_size=3).map("\n".join).filter(bool))
    def append(self, name: str, entry: str) -> None:
        held = self.texts.setdefault(name, [])
        new = entry.removesuffix("\n").split("\n")
        known = {line.strip() for line in held}
        expected = True
        for line in new:
            expected = line in known and expected
            known.add(line)
        assert run(self.memory, "APPEND", name, entry).duplicate == expected
        held += new
        if name == "recent.txt":
            del held[:-3]

    @rule(name=text_names, entry=st.lists(lines, max_size=4).map("\n".join))
    def write(self, name: str, entry: str) -> None:
        run(self.memory, "WRITE", name, entry)
        entry = entry.removesuffix("\n")
        self.texts[name] = entry.split("\n") if entry else []
        if name == "recent.txt":
            del self.texts[name][:-3]

    @rule(name=map_names, key=lines.filter(bool), value=lines.filter(bool))
    def upsert(self, name: str, key: str, value: str) -> None:
        held = self.maps.setdefault(name, {})
        same = held.get(key) == value
        assert run(self.memory, "UPSERT", name, key, value).duplicate == same
        if not same:
            held.pop(key, None)
            held[key] = value

    @rule(name=st.one_of(text_names, map_names), line=lines.filter(bool))
    def delete_entry(self, name: str, line: str) -> None:
        result = self.memory.run(Op("DELETE", (name, line)))
        if name in self.maps:
            assert result.ok == (line in self.maps[name])
            self.maps[name].pop(line, None)
        else:
            held = self.texts.get(name, [])
            assert result.ok == (line in held)
            held[:] = [other for other in held if other != line]

    @rule(name=st.one_of(text_names, map_names))
    def delete_file(self, name: str) -> None:
        result = self.memory.run(Op("DELETE", (name,)))
        assert result.ok == (self.texts.pop(name, None) is not None or self.maps.pop(name, None) is not None)

    def contents(self) -> dict[str, list[str]]:
        return self.texts | {name: [f"{k}: {v}" for k, v in held.items()] for name, held in self.maps.items()}

    @rule(
        query=st.sampled_from(["tree", "TREE 1", "ree", "1", "12", "e 1", "x", "é", "rock 2", "e: 1", "zzz", ":", "ss"])
    )
    def search(self, query: str) -> None:
        for name, held in self.contents().items():
            expected = [line for line in held if query.lower() in line.lower()]
            result = run(self.memory, "SEARCH", name, query)
            assert result.found == len(expected[-100:])
            if expected:
                assert result.text.split("\n")[-len(expected[-100:]) :] == expected[-100:]
            assert run(self.memory, "COUNT", name, query).found == len(expected)

    @rule(n=st.integers(1, 5))
    def tail(self, n: int) -> None:
        for name, held in self.contents().items():
            if any(held):
                assert run(self.memory, "TAIL", name, str(n)).text == "\n".join(held[-n:])

    @rule()
    def flush(self) -> None:
        assert self.memory.flush() == []
        assert on_disk(self.folder) == self.memory.snapshot()

    @invariant()
    def agrees(self) -> None:
        expected = {name: "".join(f"{line}\n" for line in held) for name, held in sorted(self.contents().items())}
        assert self.memory.snapshot() == expected


AgainstAModel.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
test_against_a_model = AgainstAModel.TestCase


@pytest.mark.parametrize("sign", ["", "ÄÖ"])
def test_many_lines_are_found_wherever_they_stand(sign: str) -> None:
    """The same as a plain search, over enough lines for many chunks, with lines removed in between."""
    memory = Memory(None, FILES, Limits(result_chars=100_000, search_results=10_000))
    held = [f"step {n}: tree{n % 7} and rock {n * n % 1000} at {n % 64},{n // 64} {sign}{n}" for n in range(6000)]
    for number, line in enumerate(held):
        run(memory, "APPEND", "notes.txt", line)
        run(memory, "UPSERT", "facts.txt", f"{number % 500}", line)
    for number in (3, 1500, 5999):
        run(memory, "DELETE", "notes.txt", held[number])
    left = [line for number, line in enumerate(held) if number not in (3, 1500, 5999)]
    assert memory.read("notes.txt") == "".join(f"{line}\n" for line in left)
    assert memory.read("facts.txt") == "".join(f"{n % 500}: {held[n]}\n" for n in range(5500, 6000))
    for query in (
        "step 42:",
        "42",
        "rock 25 at",
        "tree3 and rock 9",
        "ÄÖ77",
        "äö4321",
        "p 59",
        "ree6",
        "nothing",
        ",1",
        "5,9",
    ):
        for _ in range(2):
            expected = [line for line in left if query.lower() in line.lower()]
            result = run(memory, "SEARCH", "notes.txt", query)
            assert result.found == len(expected) if not result.truncated else result.found < len(expected)
            if expected:
                assert result.text.split("\n")[-1] == expected[-1]
            assert run(memory, "COUNT", "notes.txt", query).found == len(expected)
            latest = [n for n in range(5500, 6000) if query.lower() in f"{n % 500}: {held[n]}".lower()]
            assert run(memory, "COUNT", "facts.txt", query).found == len(latest)
            run(memory, "APPEND", "notes.txt", "one more line")
            left.append("one more line")
        if expected:
            run(memory, "DELETE", "notes.txt", expected[0])
            left.remove(expected[0])
            assert run(memory, "COUNT", "notes.txt", query).found == len(expected) - 1


def test_what_was_replaced_or_dropped_takes_no_room() -> None:
    memory = Memory(None, FILES)
    tracemalloc.start()
    try:
        for number in range(40_000):
            run(memory, "UPSERT", "facts.txt", f"{number}" if number % 400 == 0 else "here", f"value {number}")
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


def test_an_old_folder_is_as_fast_as_a_new_one(folder: Path) -> None:
    """A step's operations cost about the same after 300 and after 20,000 entries (a plain scan: 60 times more)."""
    memory = Memory(folder, FILES)
    written = 0

    def grow(entries: int) -> None:
        nonlocal written
        while written < entries:
            written += 1
            run(memory, "APPEND", "notes.txt", f"Step {written}, noop: you see grass, tree, water " + "and stone " * 20)

    def step() -> float:
        start = time.process_time()
        for _ in range(300):
            grow(written + 1)
            run(memory, "SEARCH", "notes.txt", "diamond")
            run(memory, "SEARCH", "notes.txt", "stone")
            run(memory, "COUNT", "notes.txt", "tree")
            run(memory, "TAIL", "notes.txt", "3")
            memory.flush()
        return time.process_time() - start

    young = min(step() for _ in range(3))
    grow(20_000)
    memory.flush()
    step()
    old = min(step() for _ in range(3))
    assert old < 4 * young


def test_a_log_that_drops_its_oldest_lines_does_not_use_up_the_folder() -> None:
    memory = Memory(None, [FileSpec(name="log.txt", kind="log", max_lines=2)], Limits(total_bytes=1000))
    results = [memory.run(Op("APPEND", ("log.txt", f"a line of twenty: {i:03}"))) for i in range(500)]
    assert all(result.ok for result in results)
    assert sum(result.bytes_added for result in results) == memory.size("log.txt") == 44
