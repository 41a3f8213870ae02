"""The untrained base model does the work of the specialist that it is held against."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from automem.executor import LocalExecutor
from automem.models.scripted.model import Scripted
from specialist.adapter import Adapter
from specialist.search import players as module
from specialist.search import storage
from specialist.search.players import Players
from specialist.search.run import plan
from tests.specialist.search.test_search import Watcher, request
from tests.specialist.serve.adapters import an_adapter


def consulting(folder: Path, turns: int) -> Adapter:
    """A specialist whose data has so many replies of PLAN in which memory is read."""
    made = an_adapter(folder, weights=bytes([turns]))
    return replace(made, manifest=made.manifest.model_copy(update={"consult_turns": turns}))


def test_it_consults_memory_for_as_many_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOMEM_RUNS", str(tmp_path / "runs"))
    three, two = consulting(tmp_path / "three", 3), consulting(tmp_path / "two", 2)
    planned = plan(request("turns", steps=2, traces=("elsewhere",), held_out="300"))
    players = Players(storage.create(planned.config, planned.scaffold), Watcher(), 1)
    asked: list[int] = []

    class Asked(LocalExecutor):
        def __init__(self, *args: Any) -> None:
            asked.append(args[-1].consult_turns)
            super().__init__(*args)

    monkeypatch.setattr(module, "LocalExecutor", Asked)
    monkeypatch.setattr(module, "make_memory_model", lambda *_, **__: Scripted())

    async def both() -> None:
        for like in (three, two):
            await players.play(None, like, [300], "held-out")
        await players.close()

    asyncio.run(both())
    assert asked == [3, 2]
    for like in (three, two, three):
        mine, theirs = (players.run(who, like, "held-out").config.specialist for who in (None, like))
        assert mine is not None and theirs is not None and mine.consult_turns == theirs.consult_turns
    told = players.run(None, two, "held-out")
    assert told.config.name == "turns/play/base/held-out-2-turns" and (told.folder / "summary.json").is_file()
