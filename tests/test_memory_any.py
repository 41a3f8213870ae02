"""Whatever is asked of the memory folder: nothing raises, and it holds what a plain model of it holds."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import automem.memory.lines
from automem.memory import Limits, Memory
from automem.ops import OPERATIONS, Op, parse
from tests.memory_folder import FILES, on_disk, run

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
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self.scratch.name) / "memory"
        self.chunk_lines = automem.memory.lines.CHUNK_LINES
        # Small chunks, so that a few lines already make many of them.
        automem.memory.lines.CHUNK_LINES = 3 if small else self.chunk_lines
        self.memory = Memory(self.folder, FILES, Limits(result_chars=10_000))
        self.texts: dict[str, list[str]] = {}
        self.maps: dict[str, dict[str, str]] = {}

    def teardown(self) -> None:
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
