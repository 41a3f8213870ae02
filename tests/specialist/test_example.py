"""Datasets on disk: what is written is read back, and what is damaged is told."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from automem.errors import UserError
from specialist import example
from specialist.example import Dataset, Example, Source


def source(length: int, phase: str = "log", turn: int = 0) -> Source:
    kept = ((0, length),)
    return Source.model_validate(
        {"run": "r", "task": "Crafter", "seed": 3, "step": 4, "phase": phase, "turn": turn, "kept": kept}
    )


def made(target: str = "<|DONE|>", user: str = "what now?", phase: str = "log", turn: int = 0) -> Example:
    prompt = [{"role": "system", "content": "be good"}, {"role": "user", "content": user}]
    for _ in range(turn):
        prompt += [{"role": "assistant", "content": "hm"}, {"role": "user", "content": "go on"}]
    return Example(prompt=tuple(prompt), target=target, source=source(len(target), phase, turn))


def write(folder: Path, train: list[Example], held_out: list[Example] | None = None, **more: Any) -> Dataset:
    return example.write(folder, train, held_out or [], scaffold="s" * 64, game="crafter", runs=["r"], **more)


hostile = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
examples = st.builds(made, hostile, hostile, st.sampled_from(["log", "plan"]), st.integers(0, 3))


@settings(max_examples=60, deadline=None)
@given(st.lists(examples, max_size=4), st.lists(examples, max_size=3))
def test_what_is_written_is_read_back(train: list[Example], held_out: list[Example]) -> None:
    with tempfile.TemporaryDirectory() as place:
        data = write(Path(place) / "data", train, held_out)
        again = Dataset(data.folder)
        assert list(again.train()) == train and list(again.held_out()) == held_out
        assert list(again) == train + held_out
        assert again.facts == data.facts
        assert (again.facts.train, again.facts.held_out) == (len(train), len(held_out))
        turns = [e.source.turn + 1 for e in train + held_out if e.source.phase == "plan"]
        assert again.facts.consult_turns == max(turns, default=0)


@pytest.mark.parametrize("text", ["\n", "\r\n", "\u2028x\u2029\x85", "\x00", "\ufeff", '"}\n{"', "\U0001f332" * 3])
def test_a_text_stays_in_its_line(tmp_path: Path, text: str) -> None:
    one = made(text, text)
    data = write(tmp_path / "data", [one, one])
    assert (data.folder / example.TRAIN).read_bytes().count(b"\n") == 2
    assert list(data.train()) == [one, one]


def test_trainers_find_the_columns_that_they_know(tmp_path: Path) -> None:
    write(tmp_path / "data", [made("<|DONE|>", "hello")])
    read = json.loads((tmp_path / "data" / "train.jsonl").read_text())
    assert read["prompt"] == [{"role": "system", "content": "be good"}, {"role": "user", "content": "hello"}]
    assert read["completion"] == [{"role": "assistant", "content": "<|DONE|>"}]


def test_identity_is_of_the_contents(tmp_path: Path) -> None:
    first = write(tmp_path / "a", [made("x")], [made("y")])
    same = write(tmp_path / "b", [made("x")], [made("y")])
    other = write(tmp_path / "c", [made("x"), made("y")])
    assert first.facts.identity == same.facts.identity != other.facts.identity


def test_operations_and_other_files_go_with_it(tmp_path: Path) -> None:
    operations: dict[Any, Any] = {"log": ["READ", "APPEND"], "plan": ["READ"]}
    data = write(tmp_path / "data", [made()], operations=operations, beside={"note.txt": b"hi"})
    assert Dataset(data.folder).facts.operations == {"log": ("READ", "APPEND"), "plan": ("READ",)}
    assert (data.folder / "note.txt").read_bytes() == b"hi"


# Written whole or not at all


def test_nothing_is_left_of_a_dataset_that_could_not_be_written(tmp_path: Path) -> None:
    def broken() -> Any:
        yield made()
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        example.write(tmp_path / "data", broken(), [], scaffold="s", game="crafter", runs=[])
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over(tmp_path: Path) -> None:
    write(tmp_path / "data", [made("x")])
    with pytest.raises(UserError, match="is there already"):
        write(tmp_path / "data", [made("y")])
    assert [e.target for e in Dataset(tmp_path / "data").train()] == ["x"]


def test_half_a_character_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"r/Crafter/seed-3/4/log, turn 0: cannot be written down"):
        write(tmp_path / "data", [made(user="\ud800")])


# What is no example


def role(name: str) -> dict[str, str]:
    return {"role": name, "content": "x"}


@pytest.mark.parametrize(
    "prompt",
    [
        [],
        [role("system")],
        [role("assistant")],
        [role("user"), role("assistant")],
        [role("user"), role("user")],
        [role("user"), role("system"), role("user")],
        [role("tool")],
        [{"role": "user"}],
        [{"role": "user", "content": "x", "name": "y"}],
        [{"role": "user", "content": None}],
    ],
)
def test_a_prompt_is_a_conversation_that_the_user_ends(prompt: Any) -> None:
    with pytest.raises(ValidationError, match="prompt"):
        Example(prompt=prompt, target="x", source=source(1))


@pytest.mark.parametrize("kept", [((0, 2),), ((0, 0), (0, 1)), ((3, 4), (0, 1)), ((-1, 0),), ((0, 1), (0, 1)), ()])
def test_spans_fit_the_target(kept: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(ValidationError, match="kept"):
        Example(prompt=(role("user"),), target="x", source=Source(**{**source(1).model_dump(), "kept": kept}))


# Damage


def damaged(folder: Path, edit: Callable[[dict[str, Any]], object] | bytes) -> Dataset:
    """A dataset whose second line was edited by somebody who also corrected its identity."""
    write(folder, [made("x"), made("y")])
    lines = (folder / example.TRAIN).read_bytes().splitlines(keepends=True)
    if isinstance(edit, bytes):
        lines[1] = edit
    else:
        data = json.loads(lines[1])
        edit(data)
        lines[1] = json.dumps(data).encode() + b"\n"
    (folder / example.TRAIN).write_bytes(b"".join(lines))
    facts = json.loads((folder / example.FACTS).read_bytes())
    (folder / example.FACTS).write_text(json.dumps({**facts, "identity": example.identity_of(folder)}))
    return Dataset(folder)


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (b"\n", "all of it"),
        (b"{\n", "all of it"),
        (b"[]\n", "all of it"),
        (b'{"prompt": [], "completion": "\xff"}\n', "all of it"),
        (b"[" * 100_000 + b"\n", "all of it"),
        (lambda d: d.pop("source"), "source"),
        (lambda d: d.update(more=1), "more"),
        (lambda d: d.update(prompt="x"), "prompt"),
        (lambda d: d["prompt"].pop(), "all of it: .*the user is last"),
        (lambda d: d["prompt"][0].update(content=3), r"prompt\.0\.content"),
        (lambda d: d.update(completion=[]), "completion"),
        (lambda d: d["completion"][0].update(role="user"), r"completion\.0\.role"),
        (lambda d: d["completion"][0].update(content="longer"), r"all of it: .*source\.kept"),
        (lambda d: d["source"].update(seed="3"), r"source\.seed"),
        (lambda d: d["source"].update(step=-1), r"source\.step"),
        (lambda d: d["source"].update(phase="act"), r"source\.phase"),
        (lambda d: d["source"].update(kept=[[0]]), r"source\.kept"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, edit: Any, told: str) -> None:
    data = damaged(tmp_path / "data", edit)
    read = data.train()
    assert next(read).target == "x"
    with pytest.raises(UserError, match=rf"train\.jsonl: line 2 is no example:\n  {told}") as error:
        next(read)
    assert len(str(error.value)) < 2000


def test_a_line_that_never_ends_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example, "LARGEST_LINE", 2**20)
    data = damaged(tmp_path / "data", b"x" * 3 * 2**20)
    with pytest.raises(UserError, match="line 2 is longer than 1 MiB"):
        list(data.train())


def test_a_missing_line_is_told(tmp_path: Path) -> None:
    data = damaged(tmp_path / "data", b"")
    with pytest.raises(UserError, match=r"has 1 examples, and data\.json says 2"):
        list(data.train())


def test_a_dataset_that_was_changed_is_not_opened(tmp_path: Path) -> None:
    data = write(tmp_path / "data", [made("x")])
    with (data.folder / example.HELD_OUT).open("ab") as file:
        file.write(made("y").line())
    with pytest.raises(UserError, match="was changed"):
        Dataset(data.folder)


@pytest.mark.parametrize("name", [example.FACTS, example.TRAIN, example.HELD_OUT])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    data = write(tmp_path / "data", [made("x")])
    (data.folder / name).unlink()
    with pytest.raises(UserError, match=f"there is no {name}"):
        Dataset(data.folder)


NAMELESS = '{"identity": "", "scaffold": "", "game": "", "runs": [], "train": 1, "held_out": 0, "consult_turns": 0, '
NAMELESS += '"operations": {"log": ["A(+B"]}}'


@pytest.mark.parametrize("content", ["", "[]", '{"format": 2}', "\x00", NAMELESS])
def test_other_facts_are_refused(tmp_path: Path, content: str) -> None:
    data = write(tmp_path / "data", [made("x")])
    (data.folder / example.FACTS).write_text(content)
    with pytest.raises(UserError, match=r"data\.json: not of this version"):
        Dataset(data.folder)
