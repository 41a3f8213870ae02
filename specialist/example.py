"""One training example: a conversation whose last assistant message is learned, and where that was written.

A dataset is a folder that any trainer can read::

    data.json        what it is: identity, scaffold, games, how many
    train.jsonl      one example a line: ``prompt`` and ``completion`` as conversations, and its `Source`
    held_out.jsonl   the same, of episodes that training never sees

"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from automem.errors import UserError
from automem.models.protocol import Message
from automem.records import Phase

FACTS, TRAIN, HELD_OUT = "data.json", "train.jsonl", "held_out.jsonl"
FORMAT: Literal[1] = 1
"""Version of the folder's layout."""

LARGEST_LINE = 64 * 2**20
"""Bytes of one example. The prompts of a phase are a few hundred kilobytes; more is no dataset of ours."""

_CHUNK = 2**20

_Count = Annotated[int, Field(ge=0)]
_Name = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,39}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Strict):
    """Where an example's target was written: proof that it is verbatim.

    ``"".join(turn.text[a:b] for a, b in kept)`` is the target, for the turn of the trace that this names.
    """

    run: str
    task: str
    seed: int
    step: _Count
    phase: Phase
    turn: _Count
    """Which turn of the phase, from 0."""
    kept: tuple[tuple[int, int], ...]
    """Spans of the turn's text, [start, end), in order."""

    @model_validator(mode="after")
    def _in_order(self) -> Source:
        if any(not 0 <= start < end for start, end in self.kept) or any(a[1] > b[0] for a, b in pairwise(self.kept)):
            raise ValueError("kept: spans are [start, end), not empty, and in order")
        return self

    def __str__(self) -> str:
        return f"{self.run}/{self.task}/seed-{self.seed}/{self.step}/{self.phase}, turn {self.turn}"


class Example(_Strict):
    """A conversation that ends with the assistant message to learn."""

    prompt: tuple[Message, ...]
    """System, user, and the earlier replies and results of the phase; ends with a user message."""
    target: Annotated[str, Field(min_length=1)]
    source: Source

    @model_validator(mode="after")
    def _learnable(self) -> Example:
        for number, message in enumerate(self.prompt):
            if message.keys() != {"role", "content"}:
                raise ValueError(f"prompt: message {number} has {', '.join(message)}; a message has role and content")
        roles = [message["role"] for message in self.prompt]
        talk = roles[1:] if roles[:1] == ["system"] else roles
        if len(talk) % 2 == 0 or talk != ["user", "assistant"] * (len(talk) // 2) + ["user"]:
            raise ValueError("prompt: user and assistant take turns, after a system message, and the user is last")
        if sum(end - start for start, end in self.source.kept) != len(self.target):
            raise ValueError("source.kept: the spans are not as long as the target")
        return self

    def line(self) -> bytes:
        """As a line of the dataset, in the columns that trainers know. Raises `UserError` for what UTF-8 has not."""
        completion = [{"role": "assistant", "content": self.target}]
        values = {"prompt": self.prompt, "completion": completion, "source": self.source.model_dump()}
        try:
            return orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError as error:
            raise UserError(f"{self.source}: cannot be written down: {error}") from error


class Facts(_Strict):
    """All of ``data.json``."""

    format: Literal[1] = FORMAT
    identity: str
    """SHA-256 of both files (`identity_of`)."""
    scaffold: str
    """Identity of the scaffold under which every example was written."""
    game: str
    runs: tuple[str, ...]
    train: _Count
    held_out: _Count
    consult_turns: _Count
    """The most consulting turns of a PLAN phase among the examples: a specialist consults no longer than that."""
    operations: dict[Phase, tuple[_Name, ...]] = {}
    """Names of the operations that the scaffold lets a model use in each phase; empty where that is not known."""


class Dataset:
    """A dataset on disk, read-only. Examples are read one at a time, however many there are."""

    def __init__(self, folder: Path) -> None:
        """Raises `UserError` when it is not one, or was changed since it was written."""
        self.folder = folder
        try:
            self.facts = Facts.model_validate_json((folder / FACTS).read_bytes())
            found = identity_of(folder)
        except FileNotFoundError as error:
            raise UserError(f"{folder}: no dataset here, there is no {Path(error.filename).name}") from error
        except OSError as error:
            raise UserError(f"{folder}: cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise UserError(f"{folder / FACTS}: not of this version of AutoMem:\n{_listed(error)}") from error
        if found != self.facts.identity:
            raise UserError(f"{folder}: was changed since it was written; select again, or restore it")

    def train(self) -> Iterator[Example]:
        """Examples to train on. Raises `UserError` that names the line where one is damaged."""
        return _read(self.folder / TRAIN, self.facts.train)

    def held_out(self) -> Iterator[Example]:
        """Examples of other episodes, for the held-out loss. Raises as `train`."""
        return _read(self.folder / HELD_OUT, self.facts.held_out)

    def __iter__(self) -> Iterator[Example]:
        """All of them, those to train on first."""
        yield from self.train()
        yield from self.held_out()


def write(
    folder: Path,
    train: Iterable[Example],
    held_out: Iterable[Example],
    *,
    scaffold: str,
    game: str,
    runs: Iterable[str],
    operations: Mapping[Phase, Iterable[str]] | None = None,
    beside: Mapping[str, bytes] | None = None,
) -> Dataset:
    """Write a dataset. `folder` must not exist; it appears whole or not at all. Raises `UserError`.

    Args:
        folder: where.
        train, held_out: the examples.
        scaffold, game, runs, operations: see `Facts`.
        beside: other files of the folder, by name.
    """
    if folder.exists():
        raise UserError(f"{folder} is there already; choose another name, or remove it")
    draft = folder.with_name(f".{folder.name}.part-{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)  # of a process that was killed; in containers numbers come again
    try:
        draft.mkdir(parents=True)
        counts, consulting = _write_examples(draft, {TRAIN: train, HELD_OUT: held_out})
        facts = Facts(
            identity=identity_of(draft),
            scaffold=scaffold,
            game=game,
            runs=tuple(runs),
            train=counts[TRAIN],
            held_out=counts[HELD_OUT],
            consult_turns=consulting,
            operations={phase: tuple(names) for phase, names in (operations or {}).items()},
        )
        for name, content in {**(beside or {}), FACTS: facts.model_dump_json(indent=2).encode()}.items():
            (draft / name).write_bytes(content)
        draft.rename(folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Dataset(folder)


def identity_of(folder: Path) -> str:
    """SHA-256 over both files of a dataset. Raises OSError."""
    digest = hashlib.sha256()
    for name in (TRAIN, HELD_OUT):
        with (folder / name).open("rb") as file:
            digest.update(f"{name} {os.fstat(file.fileno()).st_size}\n".encode())
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()


def content(example: Example) -> bytes:
    """What a trainer sees of an example, the same for the same conversation wherever it was written."""
    conversation = [(message["role"], message["content"]) for message in example.prompt]
    return orjson.dumps([conversation, example.target])


def _write_examples(folder: Path, files: Mapping[str, Iterable[Example]]) -> tuple[dict[str, int], int]:
    """Examples by file, and the most consulting turns."""
    counts, consulting = dict.fromkeys(files, 0), 0
    for name, examples in files.items():
        with (folder / name).open("wb") as file:
            for example in examples:
                file.write(example.line())
                counts[name] += 1
                if example.source.phase == "plan":
                    consulting = max(consulting, example.source.turn + 1)
    return counts, consulting


class _Reply(_Strict):
    role: Literal["assistant"]
    content: str


class _Line(_Strict):
    prompt: tuple[Message, ...]
    completion: Annotated[tuple[_Reply, ...], Field(min_length=1, max_length=1)]
    source: Source


def _read(path: Path, expected: int) -> Iterator[Example]:
    number = 0
    try:
        with path.open("rb") as lines:
            while line := lines.readline(LARGEST_LINE + 1):
                number += 1
                yield _example(path, number, line)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    if number != expected:
        raise UserError(f"{path}: has {number} examples, and {FACTS} says {expected}; select again, or restore it")


def _example(path: Path, number: int, line: bytes) -> Example:
    if len(line) > LARGEST_LINE:
        raise UserError(f"{path}: line {number} is longer than {LARGEST_LINE >> 20} MiB; no example is")
    try:
        read = _Line.model_validate_json(line, strict=True)
        return Example(prompt=read.prompt, target=read.completion[0].content, source=read.source)
    except ValidationError as error:
        raise UserError(f"{path}: line {number} is no example:\n{_listed(error)}") from error


def _listed(error: ValidationError) -> str:
    shown = error.errors(include_input=False, include_url=False)[:5]
    return "\n".join(f"  {'.'.join(map(str, e['loc'])) or 'all of it'}: {e['msg'][:200]}" for e in shown)
