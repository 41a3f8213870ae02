"""How large memory files were, step by step."""

from __future__ import annotations

from pathlib import Path

import pytest

from automem import scaffold, trace
from automem.errors import UserError
from automem.growth import Growth, Size, growth, means
from tests.traces import Written, mapping_scaffold, play


def measured(folder: dict[str, str]) -> dict[str, tuple[int, int]]:
    """Bytes and lines of each file, empty ones left out."""
    return {name: (len(text.encode()), text.count("\n")) for name, text in folder.items() if text}


def told(asked: Growth, step: int) -> dict[str, tuple[int, int]]:
    return {name: (size.bytes, size.lines) for name, size in asked.at(step).items() if size.bytes}


def test_sizes_are_those_of_the_folder_while_the_episode_ran(tmp_path: Path) -> None:
    loaded = mapping_scaffold(tmp_path / "mapping")
    live = play(tmp_path / "episode", loaded, 40)
    found = growth(trace.EpisodeTrace(tmp_path / "episode", loaded))
    assert found.steps == 40 and len(found.files) > 5
    assert [told(found, step) for step in range(40)] == [measured(folder) for folder in live.folders]
    on_disk = {path.name: path.read_text() for path in (tmp_path / "episode" / "memory").iterdir()}
    assert told(found, 39) == measured(on_disk)


def test_only_changes_are_kept_and_a_removed_file_is_empty(tmp_path: Path) -> None:
    written = Written(tmp_path, scaffold.load("crafter/v0"))
    written.step()
    written.step([("APPEND", "own.txt", "ä"), ("APPEND", "own.txt", "b")])
    written.step()
    written.step([], [("DELETE", "own.txt")])
    written.step([("APPEND", "own.txt", "c")])
    written.writer.close()
    found = growth(written.asked())
    assert found.files["own.txt"] == (Size(1, 5, 2), Size(3, 0, 0), Size(4, 2, 1))
    assert "own.txt" not in found.at(0) and found.at(2)["own.txt"] == Size(1, 5, 2)


def test_everything_before_the_damage_is_measured(tmp_path: Path) -> None:
    written = Written(tmp_path, scaffold.load("crafter/v0"))
    for _ in range(6):
        written.step([("APPEND", "own.txt", "line")])
    written.writer.close()
    path = written.asked().path
    path.write_bytes(path.read_bytes()[:-3])
    found = growth(written.asked())
    assert found.steps == 5 and found.at(100)["own.txt"].lines == 5


def test_a_scaffold_that_is_not_known_is_told(tmp_path: Path) -> None:
    written = Written(tmp_path, scaffold.load("crafter/v0"))
    written.step()
    written.writer.close()
    with pytest.raises(UserError, match="belongs to no run"):
        growth(trace.EpisodeTrace(tmp_path))


def test_means_are_over_the_episodes_that_had_the_step() -> None:
    long = Growth(101, {"a.txt": (Size(0, 10, 1), Size(50, 30, 3))})
    short = Growth(40, {"a.txt": (Size(20, 20, 2),), "b.txt": (Size(0, 4, 1),)})
    found = means([long, short], every=25)
    assert found.steps == (0, 25, 50, 75, 100) and found.episodes == (2, 2, 1, 1, 1)
    assert found.files["a.txt"] == ((5, 0.5), (15, 1.5), (30, 3), (30, 3), (30, 3))
    assert found.files["b.txt"] == ((2, 0.5), (2, 0.5), (0, 0), (0, 0), (0, 0))
    assert means([long]).steps == (0, 20, 40, 60, 80, 100)
    assert means([Growth(0, {})]).steps == (0,)
