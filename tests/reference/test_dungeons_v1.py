"""What the reference revisions of MiniHack and NetHack have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reference.playing import Player, episode

TASKS = {"minihack/v1": "MiniHack-Corridor-R3-v0", "nethack/v1": "NetHackChallenge-v0"}


@pytest.mark.parametrize(
    "text", ["", "message:\n", "map:\n@\n", "x" * 9000, "cursor:\nYourself a newt\n(x=999, y=21)\n\nmap:\n"]
)
@pytest.mark.parametrize("ref", TASKS)
def test_texts_of_another_shape_are_borne(ref: str, text: str) -> None:
    player = Player(ref, TASKS[ref])
    assert player.see(text).keys() == {"around", "warnings"}
    player.maintain()
    assert player.check("eat d" + "a" * 5000) is None


@pytest.mark.parametrize(
    ("ref", "seed", "steps", "least"), [("minihack/v1", 1000, 30, 6), ("nethack/v1", 1004, 60, 21)]
)
def test_an_episode_has_no_failing_hook(tmp_path: Path, ref: str, seed: int, steps: int, least: int) -> None:
    records = episode(ref, TASKS[ref], seed, steps, tmp_path)
    assert len(records) >= least
    assert any(record.maintained for record in records)
    assert "Around you: " in (records[0].plan[0].prompt.after or "")
