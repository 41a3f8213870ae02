"""A trace keeps what was written, survives what can happen to a file, and gives back the exact prompts."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import duckdb
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from automem import trace
from automem.records import Executed, Prompt, StepRecord, Turn, messages

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=200)


def record(step: int, text: str = "You see grass", system: str | None = None) -> StepRecord:
    op = Executed("SEARCH", ("notes.txt", "tree"), (3, 30), "SEARCH notes.txt | tree", text, found=2)
    turn = Turn("scripted", Prompt("", "observation", "\nplan"), "abc", (op,), ("error",), 10, 5, 0, None, 0.25)
    return StepRecord(
        step,
        text,
        (turn,),
        (turn, turn),
        "east",
        "Move East",
        0,
        False,
        1.0,
        0.5,
        {"wood": 1},
        False,
        False,
        (),
        system,
    )


def write(path: Path, records: list[StepRecord]) -> None:
    writer = trace.TraceWriter(path)
    for one in records:
        writer.append(one)
    writer.close()


@given(texts=st.lists(TEXT, max_size=5))
def test_what_is_read_is_what_was_written(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("trace") / "steps.jsonl.zst"
    written = [record(i, text) for i, text in enumerate(texts)]
    write(path, written)
    assert trace.read(path) == (written, None)


@given(cut=st.integers(min_value=1, max_value=400))
def test_a_cut_file_gives_every_whole_record_and_can_be_continued(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("trace") / "steps.jsonl.zst"
    written = [record(i, f"observation {i}") for i in range(4)]
    ends = []
    for one in written:
        write(path, [one])
        ends.append(path.stat().st_size)
    length = max(0, ends[-1] - cut)
    os.truncate(path, length)
    whole = sum(end <= length for end in ends)
    found, damage = trace.read(path)
    assert found == written[:whole]
    assert (damage is None) == (length in (0, *ends))
    if damage is not None:
        assert damage.record == whole
        trace.truncate(path, damage)
    write(path, written[whole:])
    assert trace.read(path) == (written, None)


def test_damage_in_the_middle_is_named_and_what_is_before_it_stays(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl.zst"
    write(path, [record(0)])
    start = path.stat().st_size
    write(path, [record(1), record(2)])
    data = bytearray(path.read_bytes())
    data[start + 2] ^= 0xFF
    path.write_bytes(data)
    found, damage = trace.read(path)
    assert found == [record(0)]
    assert damage is not None and damage.record == 1 and damage.offset == start
    assert str(path) in str(damage) and "record 1" in str(damage)


def test_a_frame_that_holds_something_else_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl.zst"
    write(path, [record(0)])
    with path.open("ab") as file:
        file.write(zstandard.compress(b'{"step": 1}'))
    found, damage = trace.read(path)
    assert found == [record(0)]
    assert damage is not None and "not a step record" in damage.reason


def test_a_full_disk_loses_nothing_that_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "steps.jsonl.zst"
    writer = trace.TraceWriter(path)
    writer.append(record(0))
    real = os.write

    def half(file: int, data: bytes) -> int:
        return real(file, data[: len(data) // 2])

    def full(file: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    for fault in (half, full):
        monkeypatch.setattr(os, "write", fault)
        with pytest.raises(trace.TraceWriteFailed, match="steps"):
            writer.append(record(1))
        monkeypatch.setattr(os, "write", real)
        assert trace.read(path) == ([record(0)], None)
    writer.append(record(1))
    writer.close()
    assert trace.read(path) == ([record(0), record(1)], None)


def test_duckdb_reads_a_trace_in_place(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl.zst"
    write(path, [record(i) for i in range(50)])
    query = f"select count(*), max(step), sum(len(plan)) from read_json('{path}', format='newline_delimited')"
    assert duckdb.sql(query).fetchall() == [(50, 49, 100)]


@given(before=TEXT, content=TEXT, after=TEXT)
def test_a_prompt_kept_without_its_block_comes_back_to_the_character(before: str, content: str, after: str) -> None:
    text = before + content + after
    prompt = Prompt.around(text, "observation", content)
    assert prompt.text(content) == text


def test_messages_of_the_first_turn_start_with_system_and_observation() -> None:
    built = messages(record(3, "You see a tree"), "be good", "plan", 0, "Noop")
    assert built[0] == {"role": "system", "content": "be good"}
    assert "You see a tree" in built[1]["content"] and "step 3" in built[1]["content"].lower()
    assert built[1]["content"].endswith("\nplan")
