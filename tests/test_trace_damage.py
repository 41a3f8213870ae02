"""A trace that is cut, corrupted or half written says so, and everything before that can be asked."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from automem import scaffold, trace
from automem.episode import STEPS
from automem.trace import index
from automem.trace.search import search
from automem.trace.stats import of_episode
from tests.traces import Written

STEPS_WRITTEN = 12


@pytest.fixture(scope="module")
def episode(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """An episode, closed, with an index of several blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "EVERY", 4)
        written = Written(tmp_path_factory.mktemp("whole"), scaffold.load("crafter/v0"))
        for number in range(STEPS_WRITTEN):
            written.step([("APPEND", "map_notes.txt", f"line {number}")], note=f"word{number}")
        written.writer.close()
    return written


def spoiled(data: bytes, at: int, how: str) -> bytes:
    if how == "cut":
        return data[:at]
    if how == "flip":
        return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]
    if how == "zero":
        return data[:at] + bytes(len(data[at : at + 40])) + data[at + 40 :]
    return data[:at] + b"\xff" * 20 + data[at:]


@settings(max_examples=120, deadline=None)
@given(data=st.data(), how=st.sampled_from(("cut", "flip", "zero", "insert")), indexed=st.booleans())
def test_everything_before_the_damage_can_be_asked(
    tmp_path_factory: pytest.TempPathFactory, episode: Written, data: st.DataObject, how: str, indexed: bool
) -> None:
    whole = (episode.folder / STEPS).read_bytes()
    ends = list(trace.EpisodeTrace(episode.folder, episode.scaffold)._opened.ends)
    at = data.draw(st.one_of(st.integers(0, len(whole) - 1), st.sampled_from([0, *ends[:-1]])))
    folder = tmp_path_factory.mktemp("spoiled")
    (folder / STEPS).write_bytes(spoiled(whole, at, how))
    if indexed:
        index.path_of(folder / STEPS).write_bytes(index.path_of(episode.folder / STEPS).read_bytes())
    expected, damage = trace.read(folder / STEPS)
    intact = sum(end <= at for end in ends)
    asked = trace.EpisodeTrace(folder, episode.scaffold)
    assert asked.damage == damage and list(asked.steps()) == expected
    assert len(asked) >= intact and expected == episode.records[: len(expected)]
    if len(asked) < STEPS_WRITTEN and at not in (0, *ends):
        assert damage is not None and damage.record == len(asked) and str(folder / STEPS) in str(damage)
    assert [asked.memory(step) for step in range(len(asked))] == episode.folders[: len(asked)]
    found = search([asked], "word", limit=10_000)
    assert {hit.step for hit in found.hits} >= set(range(intact)) and bool(found.damage) == (damage is not None)
    assert of_episode(asked).result.steps == len(asked)


def test_what_is_no_record_is_damage_of_its_own_place(tmp_path: Path, episode: Written) -> None:
    for content in (
        b"[]",
        b"null",
        b'{"step": 1}',
        b'{"log": 3, "plan": []}',
        b"not json",
        b'{"log": [7], "plan": []}',
    ):
        folder = tmp_path / content.hex()[:20]
        folder.mkdir()
        (folder / STEPS).write_bytes((episode.folder / STEPS).read_bytes() + zstandard.compress(content))
        asked = trace.EpisodeTrace(folder, episode.scaffold)
        assert len(asked) == STEPS_WRITTEN and asked.memory(STEPS_WRITTEN - 1) == episode.folders[-1]
        assert asked.damage is not None and asked.damage.record == STEPS_WRITTEN
        assert "not a step record" in asked.damage.reason and not asked.damage.torn


def test_a_corrupted_record_is_not_taken_for_one_that_ends_too_early(tmp_path: Path, episode: Written) -> None:
    # A block that claims to be longer than the file: what stands after it must be kept aside, not cut off.
    data = bytearray((episode.folder / STEPS).read_bytes())
    data[9:12] = b"\xfd\xff\x0f"
    (tmp_path / STEPS).write_bytes(data)
    damage = trace.EpisodeTrace(tmp_path, episode.scaffold).damage
    assert damage is not None and damage.record == 0 and not damage.torn


def test_a_frame_that_would_fill_the_memory_is_damage(tmp_path: Path) -> None:
    bomb = zstandard.ZstdCompressor(level=1).compress(bytes(300 * 2**20))
    (tmp_path / STEPS).write_bytes(bomb)
    damage = trace.EpisodeTrace(tmp_path).damage
    assert damage is not None and "more than a step can hold" in damage.reason
