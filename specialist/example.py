"""One training example: a conversation whose last assistant message is learned, and where that was written.

A dataset is a folder that any trainer can read::

    data.json        what it is: identity, scaffold, games, how many
    train.jsonl      one example a line: ``prompt`` and ``completion`` as conversations, and its `Source`
    held_out.jsonl   the same, of episodes that training never sees

"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict

from automem.errors import UserError
from automem.models.protocol import Message
from automem.records import Phase

FACTS, TRAIN, HELD_OUT = "data.json", "train.jsonl", "held_out.jsonl"
FORMAT: Literal[1] = 1
"""Version of the folder's layout."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Strict):
    """Where an example's target was written: proof that it is verbatim.

    ``"".join(turn.text[a:b] for a, b in kept)`` is the target, for the turn of the trace that this names.
    """

    run: str
    task: str
    seed: int
    step: int
    phase: Phase
    turn: int
    """Which turn of the phase, from 0."""
    kept: tuple[tuple[int, int], ...]
    """Spans of the turn's text, [start, end), in order."""


class Example(_Strict):
    """A conversation that ends with the assistant message to learn."""

    prompt: tuple[Message, ...]
    """System, user, and the earlier replies and results of the phase; ends with a user message."""
    target: str
    source: Source

    def line(self) -> bytes:
        """As a line of the dataset, in the columns that trainers know."""
        completion = [{"role": "assistant", "content": self.target}]
        return orjson.dumps(
            {"prompt": self.prompt, "completion": completion, "source": self.source.model_dump()},
            option=orjson.OPT_APPEND_NEWLINE,
        )


class Facts(_Strict):
    """All of ``data.json``."""

    format: Literal[1] = FORMAT
    identity: str
    """SHA-256 of both files (`identity_of`)."""
    scaffold: str
    """Identity of the scaffold under which every example was written."""
    game: str
    runs: tuple[str, ...]
    train: int
    held_out: int
    consult_turns: int
    """The most consulting turns of a PLAN phase among the examples: a specialist consults no longer than that."""


class Dataset:
    """A dataset on disk, read-only."""

    def __init__(self, folder: Path) -> None:
        """Raises `UserError` when it is not one, or was changed since it was written."""
        self.folder = folder
        try:
            self.facts = Facts.model_validate_json((folder / FACTS).read_bytes())
            found = identity_of(folder)
        except (OSError, ValueError) as error:
            raise UserError(f"{folder}: no dataset of this version of AutoMem: {error}") from error
        if found != self.facts.identity:
            raise UserError(f"{folder}: was changed since it was written; select again, or restore it")

    def train(self) -> Iterator[Example]:
        """Examples to train on."""
        return _read(self.folder / TRAIN)

    def held_out(self) -> Iterator[Example]:
        """Examples of other episodes, for the held-out loss."""
        return _read(self.folder / HELD_OUT)


def write(
    folder: Path,
    train: Iterable[Example],
    held_out: Iterable[Example],
    *,
    scaffold: str,
    game: str,
    runs: Iterable[str],
) -> Dataset:
    """Write a dataset. `folder` must not exist; it appears whole or not at all. Raises `UserError`."""
    draft = folder.with_name(f".{folder.name}.part")
    draft.mkdir(parents=True)
    counts, consulting = {}, 0
    for name, examples in ((TRAIN, train), (HELD_OUT, held_out)):
        lines = []
        for example in examples:
            lines.append(example.line())
            if example.source.phase == "plan":
                consulting = max(consulting, example.source.turn + 1)
        counts[name] = len(lines)
        (draft / name).write_bytes(b"".join(lines))
    facts = Facts(
        identity=identity_of(draft),
        scaffold=scaffold,
        game=game,
        runs=tuple(runs),
        train=counts[TRAIN],
        held_out=counts[HELD_OUT],
        consult_turns=consulting,
    )
    (draft / FACTS).write_text(facts.model_dump_json(indent=2))
    draft.rename(folder)
    return Dataset(folder)


def identity_of(folder: Path) -> str:
    """SHA-256 over both files of a dataset."""
    digest = hashlib.sha256()
    for name in (TRAIN, HELD_OUT):
        data = (folder / name).read_bytes()
        digest.update(f"{name} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


def _read(path: Path) -> Iterator[Example]:
    with path.open("rb") as lines:
        for line in lines:
            yield _example(orjson.loads(line))


def _example(data: dict[str, Any]) -> Example:
    return Example(prompt=data["prompt"], target=data["completion"][0]["content"], source=data["source"])
