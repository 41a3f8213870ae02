"""An episode on a real game: written down, resumed anywhere, and never counted when it is not finished."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from automem import scaffold, trace
from automem.episode import MEMORY, RESULT, STEPS, EpisodeError, EpisodeJob, EpisodeResult, load_result, play
from automem.errors import UserError
from automem.game_pool import GamePool
from automem.metrics import Counts
from automem.models.fixed import Fixed
from automem.models.protocol import Message, ModelUnavailable
from automem.records import StepRecord

TASKS = ("Crafter", "MiniHack-MazeWalk-9x9-v0", "NetHackChallenge-v0")
ACTIONS = {"Crafter": ("Move West", "Do", "Move North", "Sleep"), "NetHack": ("north", "far east", "search", "south")}


class Gone(Exception):
    """Stands for a process that is killed: nothing catches it."""


def player(task: str, fail_at: int | None = None, failure: Exception | None = None) -> Fixed:
    """Plays by the text that it is shown, so that a different game, memory or order shows; fails at a call."""
    calls = itertools.count()

    def rule(asked: Sequence[Message]) -> str:
        if next(calls) == fail_at:
            assert failure is not None
            raise failure
        prompt = asked[1]["content"]
        chosen = random.Random("".join(message["content"] for message in asked))
        if "<|DONE|>" in prompt.rpartition("=== END OF OBSERVATION ===")[2]:
            words = " ".join(prompt.split()[5:15])
            return f"<|APPEND|>map_notes.txt|{chosen.random()} {words}<|END|><|DONE|><|END|>"
        if len(asked) == 2:
            return f"<|TAIL|>map_notes.txt|{chosen.randint(1, 5)}<|END|>"
        return f"<|ACTION|>{chosen.choice(ACTIONS.get(task, ACTIONS['NetHack']))}<|END|>"

    return Fixed(rule)


def run(folder: Path, task: str, model: Fixed, steps: int = 25) -> EpisodeResult:
    async def once() -> EpisodeResult:
        pool = GamePool(1)
        try:
            loaded = scaffold.load("crafter/v0")
            return await play(EpisodeJob(folder, task, 5, steps, loaded.folder), loaded, model, pool)
        finally:
            pool.close()

    return asyncio.run(asyncio.wait_for(once(), 300))


def without_times(result: EpisodeResult) -> EpisodeResult:
    """What two plays of an episode have in common."""
    return replace(result, counts=replace(result.counts, model_seconds=0.0))


def records(folder: Path) -> list[StepRecord]:
    found, damage = trace.read(folder / STEPS)
    assert damage is None
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / MEMORY).iterdir())}


@pytest.mark.parametrize("task", TASKS)
def test_an_episode_that_was_stopped_twice_ends_like_one_that_never_was(tmp_path: Path, task: str) -> None:
    whole = run(tmp_path / "whole", task, player(task))
    for fail_at in (7, 31):
        with pytest.raises(ModelUnavailable):
            run(tmp_path / "broken", task, player(task, fail_at, ModelUnavailable("gone")))
        assert load_result(tmp_path / "broken") is None
    assert without_times(run(tmp_path / "broken", task, player(task))) == without_times(whole)
    assert records(tmp_path / "broken") == records(tmp_path / "whole")
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


def test_a_torn_last_record_costs_one_step(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", "Crafter", player("Crafter"))
    with pytest.raises(Gone):
        run(tmp_path / "broken", "Crafter", player("Crafter", 40, Gone()))
    path = tmp_path / "broken" / STEPS
    os.truncate(path, path.stat().st_size - 9)
    assert without_times(run(tmp_path / "broken", "Crafter", player("Crafter"))) == without_times(whole)
    assert records(tmp_path / "broken") == records(tmp_path / "whole")


def test_a_trace_damaged_in_the_middle_is_kept_aside_and_the_episode_ends_the_same(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", "Crafter", player("Crafter"))
    with pytest.raises(Gone):
        run(tmp_path / "broken", "Crafter", player("Crafter", 40, Gone()))
    path = tmp_path / "broken" / STEPS
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x55
    path.write_bytes(data)
    assert without_times(run(tmp_path / "broken", "Crafter", player("Crafter"))) == without_times(whole)


def test_a_finished_episode_is_not_played_again(tmp_path: Path) -> None:
    first = run(tmp_path, "Crafter", player("Crafter"), steps=5)
    assert run(tmp_path, "Crafter", player("Crafter", 0, Gone()), steps=5) == first


def test_the_step_limit_ends_an_episode(tmp_path: Path) -> None:
    result = run(tmp_path, "Crafter", player("Crafter"), steps=5)
    assert (result.steps, result.truncated, result.terminated) == (5, True, False)
    assert [record.step for record in records(tmp_path)] == list(range(5))
    assert records(tmp_path)[0].system is not None and records(tmp_path)[1].system is None


def test_a_trace_of_another_game_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Gone):
        run(tmp_path, "Crafter", player("Crafter", 20, Gone()))
    before, steps = contents(tmp_path), (tmp_path / STEPS).read_bytes()
    with pytest.raises(UserError, match="step 0 does not match the game"):
        run(tmp_path, "MiniHack-MazeWalk-9x9-v0", player("NetHack"))
    assert (contents(tmp_path), (tmp_path / STEPS).read_bytes()) == (before, steps)


def test_a_damaged_result_is_told_and_not_taken_for_a_result(tmp_path: Path) -> None:
    run(tmp_path, "Crafter", player("Crafter"), steps=3)
    (tmp_path / RESULT).write_text('{"task": "Crafter"')
    with pytest.raises(UserError, match=r"episode\.json"):
        run(tmp_path, "Crafter", player("Crafter"), steps=3)


@pytest.mark.parametrize(
    "change",
    [
        {"progression": None},
        {"progression": "0.5"},
        {"steps": 1.5},
        {"achievements": [1]},
        {"last_reward": "1"},
        {"counts": {"steps": None}},
        {"counts": {"operations": []}},
        {"counts": {"operations": {"APPEND": None}}},
    ],
)
def test_a_result_that_cannot_be_counted_with_is_none(tmp_path: Path, change: dict[str, Any]) -> None:
    result = EpisodeResult(
        task="Crafter", seed=5, steps_limit=3, steps=3, progression=0.5, achievements={}, reached_at={},
        episode_return=1.0, terminated=False, truncated=True, facts={}, scaffold="", model="fixed", counts=Counts(),
        final_observation="",
    )  # fmt: skip
    stored = {**asdict(result), "counts": result.counts.as_dict()}
    (tmp_path / RESULT).write_text(json.dumps(stored))
    assert load_result(tmp_path) == result
    (tmp_path / RESULT).write_text(json.dumps(stored | change))
    with pytest.raises(EpisodeError, match=f"a value of another kind in .*{next(iter(change.get('counts', change)))}"):
        load_result(tmp_path)


def test_the_memory_folder_is_rebuilt_from_the_trace_whatever_stands_there(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", "Crafter", player("Crafter"))
    with pytest.raises(Gone):
        run(tmp_path / "broken", "Crafter", player("Crafter", 40, Gone()))
    (tmp_path / "broken" / MEMORY / "map_notes.txt").write_text("lies\n")
    (tmp_path / "broken" / MEMORY / "more.txt").write_text("lies\n")
    assert without_times(run(tmp_path / "broken", "Crafter", player("Crafter"))) == without_times(whole)
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")
