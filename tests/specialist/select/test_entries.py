"""The entries that are followed are those that stand in the memory folder, whatever was done to it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from automem.memory import FileSpec, Memory
from automem.ops import Op
from automem.records import Executed
from specialist.select.entries import Entries, Layout, Note

SPECS = [
    FileSpec("log.txt", "log"),
    FileSpec("map.txt", "map"),
    FileSpec("grid_{block}.txt", "map", key="{x},{y}", block=4),
]
LAYOUT = Layout(maps=("map.txt", "grid_{block}.txt"), initial={"log.txt": "rules\n", "map.txt": "a: 1\n"})

names = st.sampled_from(["log.txt", "map.txt", "note.txt"])
texts = st.lists(st.sampled_from(["a", "b", "a: 1", "b: 2", "c:", " ", "\n", "\r\n", "x\x00"]), min_size=1, max_size=5)
texts = texts.map("".join)
operations = st.one_of(
    st.tuples(st.sampled_from(["APPEND", "WRITE", "DELETE"]), st.tuples(names, texts)),
    st.tuples(st.just("UPSERT"), st.tuples(names, texts, texts)),
    st.tuples(st.just("UPSERT_MAP"), st.tuples(st.sampled_from(["0,0", "-1,9"]), texts)),
    st.tuples(st.just("DELETE"), st.tuples(names)),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(operations, max_size=20))
def test_entries_are_what_memory_holds(done: list[tuple[str, tuple[str, ...]]]) -> None:
    memory, entries = Memory(None, SPECS, initial=LAYOUT.initial), Entries(LAYOUT)
    for step, (name, args) in enumerate(done):
        op = Op(name, args)
        result = memory.run(op)
        if not result.ok:
            continue
        executed = Executed(name, args, (0, 1), "", result.text, duplicate=result.duplicate, file=memory.target(op))
        before = memory.snapshot()
        if name == "DELETE":
            entries.delete(executed, step)
        else:
            note = Note(step, "log")
            entries.write(executed, note, step)
        assert memory.snapshot() == before
        held = {file: {line for line in text.split("\n") if line.strip()} for file, text in before.items()}
        assert {file: entries.lines(file) for file in held} == held


def test_what_a_read_shows_is_credited_to_whoever_wrote_it() -> None:
    memory, entries = Memory(None, SPECS, initial=LAYOUT.initial), Entries(LAYOUT)
    notes = {}
    for step, line in enumerate(["cows: 3", "a tree", "a lake"]):
        op = Op("APPEND", ("log.txt", line))
        notes[line] = Note(step, "log")
        entries.write(Executed("APPEND", op.args, (0, 1), "", memory.run(op).text, file="log.txt"), notes[line], step)

    def shown(name: str, *args: str) -> set[str]:
        op = Op(name, args)
        result = memory.run(op)
        found = list(entries.shown(Executed(name, args, (0, 1), "", result.text, file=memory.target(op))))
        return {line for line, note in notes.items() if note in found}

    assert shown("READ", "log.txt") == set(notes)
    assert shown("TAIL", "log.txt", "1") == {"a lake"}
    assert shown("SEARCH", "*", "a ") == {"a tree", "a lake"}
    assert shown("SEARCH", "log.txt", "cows") == {"cows: 3"}
    assert shown("READ", "map.txt") == set()


def test_a_line_too_long_to_be_shown_whole_is_recognised() -> None:
    from automem.memory import Limits

    memory, entries = Memory(None, SPECS, Limits(result_chars=100)), Entries(Layout())
    line = "start " + "x" * 200 + " needle " + "y" * 200
    op = Op("APPEND", ("log.txt", line))
    note = Note(0, "log")
    entries.write(Executed("APPEND", op.args, (0, 1), "", memory.run(op).text, file="log.txt"), note, 0)
    for asked in (Op("READ", ("log.txt",)), Op("SEARCH", ("log.txt", "needle"))):
        text = memory.run(asked).text
        assert list(entries.shown(Executed(asked.name, asked.args, (0, 1), "", text, file="log.txt"))) == [note]
