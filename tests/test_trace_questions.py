"""What a trace can be asked: its steps, and the memory folder as it was at any of them."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from automem import scaffold, trace
from automem.episode import MEMORY, STEPS, EpisodeJob, play
from automem.game_pool import GamePool, RemoteGame
from automem.memory import Memory
from automem.models.fixed import Fixed
from automem.models.protocol import Message
from automem.records import StepRecord
from automem.trace import index

LOGS = (
    "<|APPEND|>map_notes.txt|{n} tree<|END|>",
    "<|WRITE|>goals.txt|goal {n}<|END|>",
    "<|APPEND|>goals.txt|more {n}<|END|><|SEARCH|>*|tree<|END|>",
    "<|CREATE|>new{n}.txt<|END|><|APPEND|>nowhere/x|y<|END|>",
    "<|TAIL|>map_notes.txt|2<|END|>",
)


def player() -> Fixed:
    numbers = itertools.count()

    def rule(asked: Sequence[Message]) -> str:
        n = next(numbers)
        chosen = random.Random(n)
        if "# LOG" in asked[1]["content"]:
            return f"{chosen.choice(LOGS).format(n=n)}<|DONE|><|END|>"
        return f"<|ACTION|>{chosen.choice(['Move West', 'Do', 'Noop'])}<|END|>"

    return Fixed(rule)


class Watching:
    """Keeps the memory folder of every step as it was live."""

    def __init__(self) -> None:
        self.seen: list[dict[str, str]] = []

    def turn(self, *_: object) -> None: ...

    async def stepped(self, job: EpisodeJob, game: RemoteGame, memory: Memory, record: StepRecord) -> None:
        self.seen.append(memory.snapshot())


def run(folder: Path, steps: int, watching: Watching | None = None) -> trace.EpisodeTrace:
    async def once() -> None:
        pool = GamePool(1)
        try:
            loaded = scaffold.load("crafter/v0")
            await play(EpisodeJob(folder, "Crafter", 5, steps, loaded.folder), loaded, player(), pool, watching)
        finally:
            pool.close()

    asyncio.run(asyncio.wait_for(once(), 120))
    return trace.EpisodeTrace(folder, scaffold.load("crafter/v0"))


@pytest.mark.parametrize("every", [1, 7, 1000])
def test_memory_at_every_step_is_what_it_was_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int) -> None:
    monkeypatch.setattr(index, "EVERY", every)
    live = Watching()
    asked = run(tmp_path, 30, live)
    assert len(asked) == 30 and asked.damage is None
    assert index.load(asked.path).records == 30
    assert [asked.memory(step) for step in range(30)] == live.seen
    index.path_of(asked.path).unlink()
    again = trace.EpisodeTrace(tmp_path, asked.scaffold)
    assert [again.memory(step) for step in range(30)] == live.seen
    assert index.load(asked.path).records == 30
    assert asked.memory(29) == {p.name: p.read_text() for p in sorted((tmp_path / MEMORY).iterdir())}
    assert list(asked.steps()) == trace.read(tmp_path / STEPS)[0]
