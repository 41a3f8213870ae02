"""What an episode comes to is the same whether its index says it or every step of it is counted again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from automem import scaffold, trace
from automem.episode import STEPS
from automem.metrics import Behaviour
from automem.models.protocol import ModelUnavailable
from automem.scaffold import Scaffold
from automem.trace import RunTrace, index
from automem.trace.stats import so_far
from automem.trace.tally import Tally
from tests.test_trace_memory import STEPS_DONE
from tests.traces import Live, Written, a_run, failing, mapping_scaffold, play


@pytest.fixture(scope="module")
def mapping(tmp_path_factory: pytest.TempPathFactory) -> Scaffold:
    return mapping_scaffold(tmp_path_factory.mktemp("scaffolds") / "mapping")


@pytest.fixture
def dense(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index with a block every 4 records."""
    monkeypatch.setattr(index, "EVERY", 4)


def counted(folder: Path) -> dict[str, object]:
    """What the trace alone comes to, every step counted from the first one."""
    records, _ = trace.read(folder / STEPS)
    behaviour, reward = Behaviour(), 0.0
    reached: dict[str, int] = {}
    for record, after in zip(records, [*(r.observation for r in records[1:]), ""], strict=True):
        behaviour.add(record, after)
        reward += record.reward
        reached |= {name: record.step for name, count in record.achievements.items() if count and name not in reached}
    return {"counts": behaviour.counts.as_dict(), "episode_return": reward, "reached_at": reached}


def found(asked: trace.EpisodeTrace) -> dict[str, object]:
    result = so_far(asked)
    assert result.steps == len(asked) and result.model in ("fixed", "")
    said = asdict(result) | {"counts": result.counts.as_dict()}
    return {name: said[name] for name in ("counts", "episode_return", "reached_at")}


def recounted(asked: trace.EpisodeTrace, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many steps are counted to answer."""
    steps = []
    add = Behaviour.add
    with monkeypatch.context() as patch:
        patch.setattr(Behaviour, "add", lambda *told: steps.append(add(*told)))
        so_far(asked)
    return len(steps)


@pytest.mark.usefixtures("dense")
@settings(max_examples=60, deadline=None)
@given(
    done=STEPS_DONE,
    reopened=st.sets(st.integers(0, 24)),
    killed=st.sets(st.integers(0, 24)),
    closed=st.booleans(),
    forget=st.booleans(),
)
def test_the_index_counts_what_the_trace_holds(
    tmp_path_factory: pytest.TempPathFactory,
    mapping: Scaffold,
    done: list[tuple[list[tuple[str, ...]], list[tuple[str, ...]]]],
    reopened: set[int],
    killed: set[int],
    closed: bool,
    forget: bool,
) -> None:
    written = Written(tmp_path_factory.mktemp("episode"), mapping)
    for number, (ops, maintained) in enumerate(done):
        written.step(ops, maintained, note="x" * (number % 2))
        if number in killed:
            written.resume()
        elif number in reopened:
            written.reopen()
        assert found(written.asked()) == counted(written.folder)
    if closed:
        written.writer.close()
    if forget:
        index.path_of(written.folder / STEPS).unlink()
    assert found(written.asked()) == counted(written.folder)


@pytest.mark.usefixtures("dense")
def test_only_what_the_index_does_not_know_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written(tmp_path, scaffold.load("crafter/v0"))
    for number in range(39):
        written.step([("APPEND", "map_notes.txt", f"line {number % 5}")])
    assert recounted(written.asked(), monkeypatch) == 4  # the last step of the last block, and those after it
    written.resume()
    for _ in range(39, 43):
        written.step([("APPEND", "map_notes.txt", "line 3")])
        written.reopen()
    assert recounted(written.asked(), monkeypatch) <= 4
    assert found(written.asked()) == counted(tmp_path)
    index.path_of(tmp_path / STEPS).unlink()
    assert recounted(written.asked(), monkeypatch) == 43


@pytest.mark.usefixtures("dense")
def test_a_real_episode_that_was_interrupted_and_resumed_comes_to_the_same(
    tmp_path: Path, mapping: Scaffold, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Live()
    for calls in (25, 60):
        with pytest.raises(ModelUnavailable):
            play(tmp_path, mapping, 60, failing(calls), live)
        asked = trace.EpisodeTrace(tmp_path, mapping)
        assert found(asked) == counted(tmp_path)
        assert recounted(asked, monkeypatch) < min(len(asked), 9)
    play(tmp_path, mapping, 40, live=live)
    asked = trace.EpisodeTrace(tmp_path, mapping)
    assert asked.result is not None and found(asked) == counted(tmp_path)
    unknown = {"stuck", "oscillating"}  # of the last step: what it led to is not in the trace
    lived, again = asked.result.counts.as_dict(), so_far(asked).counts.as_dict()
    assert {n: v for n, v in lived.items() if n not in unknown} == {n: v for n, v in again.items() if n not in unknown}


@settings(max_examples=60, deadline=None)
@given(at=st.floats(0, 1, exclude_max=True), change=st.sampled_from(("flip", "cut", "insert", "double")))
def test_a_damaged_index_never_changes_a_figure(
    tmp_path_factory: pytest.TempPathFactory, at: float, change: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "EVERY", 3)
        written = Written(tmp_path_factory.mktemp("episode"), scaffold.load("crafter/v0"))
        for number in range(10):
            written.step([("APPEND", "map_notes.txt", f"line {number % 4}"), ("WRITE", "goals.txt", f"{number % 2}")])
        path = index.path_of(written.folder / STEPS)
        data = bytearray(path.read_bytes())
        place = int(at * len(data))
        if change == "flip":
            data[place] ^= 0x41
        elif change == "cut":
            del data[place:]
        elif change == "insert":
            data[place:place] = b"x"
        else:
            data += data[place:]
        path.write_bytes(data)
        assert found(written.asked()) == counted(written.folder)
        written.resume()
        for number in range(10, 15):
            written.step([("APPEND", "map_notes.txt", f"line {number % 4}")])
        assert found(written.asked()) == counted(written.folder)


@pytest.mark.usefixtures("dense")
@pytest.mark.parametrize("finished", [True, False])
def test_an_index_of_an_older_format_is_made_anew(
    tmp_path: Path, finished: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    written = Written(tmp_path, scaffold.load("crafter/v0"))
    for number in range(10):
        written.step([("APPEND", "map_notes.txt", f"line {number}")])
    written.writer.close()
    path = index.path_of(tmp_path / STEPS)
    path.write_bytes(path.read_bytes().replace(index._MAGIC, b"AMX1"))
    assert index.load(tmp_path / STEPS).records == 0
    if finished:
        (tmp_path / "episode.json").write_text("{}")
    assert found(written.asked()) == counted(tmp_path)
    assert [written.asked().memory(step) for step in range(10)] == written.folders
    if not finished:
        # Whoever plays on makes it.
        written.resume()
        written.step([("APPEND", "map_notes.txt", "line 3")])
    assert index.load(tmp_path / STEPS).records == len(written.records)
    assert b"AMX1" not in path.read_bytes() and recounted(written.asked(), monkeypatch) <= 4
    assert found(written.asked()) == counted(tmp_path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("dense")
def test_a_tally_that_missed_steps_is_not_used(tmp_path: Path) -> None:
    written = Written(tmp_path, scaffold.load("crafter/v0"))
    for number in range(6):
        written.step([("APPEND", "map_notes.txt", f"line {number % 2}")])
    written.tally = Tally()
    written.reopen()
    for number in range(6, 14):
        written.step([("APPEND", "map_notes.txt", f"line {number % 2}")])
    assert found(written.asked()) == counted(tmp_path)


def test_a_damaged_result_does_not_hide_the_other_episodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = a_run("both", seeds="3,4")
    broken = run.folder / "episodes" / "Crafter" / "seed-3" / "episode.json"
    broken.write_text('{"task": "Craf')
    found = RunTrace(run).stats()
    assert [(e.result.seed, e.finished, e.result.steps) for e in found.episodes] == [(3, False, 12), (4, True, 12)]
    assert "seed-3/episode.json" in found.episodes[0].damage and found.unfinished == 1
