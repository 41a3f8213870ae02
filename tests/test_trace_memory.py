"""The memory folder of any step is what it was when the episode was played, whatever became of the index."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from automem import scaffold, trace
from automem.episode import MEMORY, STEPS
from automem.errors import UserError
from automem.models.protocol import ModelUnavailable
from automem.scaffold import Scaffold
from automem.trace import index
from automem.trace.folder import Diverged
from tests.traces import Live, Written, failing, mapping_scaffold, play

NAMES = ("map_notes.txt", "goals.txt", "places.txt", "marks.txt", "grid_0_0.txt", "own.txt", "a/b")
TEXTS = st.sampled_from(("a", "b: c", "x\n\ny", "\x85", "é\u2028ü", "0,0", "a:", "", "long " * 30, "\n"))
OPS = st.one_of(
    st.tuples(st.sampled_from(("APPEND", "WRITE", "DELETE")), st.sampled_from(NAMES), TEXTS),
    st.tuples(st.sampled_from(("CREATE", "DELETE", "READ")), st.sampled_from(NAMES)),
    st.tuples(st.just("UPSERT"), st.sampled_from(NAMES), st.sampled_from(("a", "b", "lake")), TEXTS),
    st.tuples(st.just("UPSERT_MAP"), st.sampled_from(("0,0", "-9,3", "1,2")), TEXTS),
    st.just(("MARK", "own operation")),
)
STEPS_DONE = st.lists(st.tuples(st.lists(OPS, max_size=4), st.lists(OPS, max_size=2)), min_size=1, max_size=25)


@pytest.fixture(scope="module")
def mapping(tmp_path_factory: pytest.TempPathFactory) -> Scaffold:
    return mapping_scaffold(tmp_path_factory.mktemp("scaffolds") / "mapping")


@pytest.fixture
def dense(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index with a block every 4 records."""
    monkeypatch.setattr(index, "EVERY", 4)


def all_of(asked: trace.EpisodeTrace) -> list[dict[str, str]]:
    return [asked.memory(step) for step in range(len(asked))]


@pytest.mark.usefixtures("dense")
def test_a_real_episode_with_hooks_gives_back_every_folder(tmp_path: Path, mapping: Scaffold) -> None:
    live = play(tmp_path / "episode", mapping, 30)
    asked = trace.EpisodeTrace(tmp_path / "episode", mapping)
    assert any(op.by == "op_MARK" for record in asked.steps() for turn in record.log for op in turn.ops)
    assert any(record.maintained for record in asked.steps()) and any(record.hooks for record in asked.steps())
    assert len(asked) == 30 and all_of(asked) == live.folders
    assert asked.memory(29) == {p.name: p.read_text() for p in (tmp_path / "episode" / MEMORY).iterdir()}
    assert list(asked.steps()) == trace.read(asked.path)[0]
    assert [record.step for record in asked.steps(10, 13)] == [10, 11, 12] and asked.step(5).step == 5


@pytest.mark.usefixtures("dense")
@settings(max_examples=60, deadline=None)
@given(done=STEPS_DONE, reopened=st.sets(st.integers(0, 24)), forget=st.booleans())
def test_memory_is_what_it_was_after_any_operations_and_resumes(
    tmp_path_factory: pytest.TempPathFactory,
    mapping: Scaffold,
    done: list[tuple[list[tuple[str, ...]], list[tuple[str, ...]]]],
    reopened: set[int],
    forget: bool,
) -> None:
    written = Written(tmp_path_factory.mktemp("episode"), mapping)
    for number, (ops, maintained) in enumerate(done):
        written.step(ops, maintained)
        if number in reopened:
            written.reopen()
    written.writer.close()
    if forget:
        index.path_of(written.folder / STEPS).unlink()
    else:
        assert index.load(written.folder / STEPS).records == len(done)
    assert all_of(written.asked()) == written.folders


def test_a_killed_writer_leaves_an_index_that_is_right_and_can_be_gone_on_with(
    tmp_path: Path, mapping: Scaffold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "EVERY", 4)
    written = Written(tmp_path, mapping)
    for number in range(10):
        written.step([("APPEND", "own.txt", f"line {number}")])
    # Nothing was closed: the last two records are in no block.
    assert index.load(tmp_path / STEPS).records == 8
    assert len(written.asked()) == 10 and all_of(written.asked()) == written.folders
    other = trace.TraceWriter(tmp_path / STEPS, written.memory, mapping.identity)
    written.writer = other
    for number in range(10, 20):
        written.step([("APPEND", "own.txt", f"line {number}")])
    other.close()
    assert index.load(tmp_path / STEPS).records == 20
    assert all_of(written.asked()) == written.folders


@settings(max_examples=60, deadline=None)
@given(at=st.floats(0, 1, exclude_max=True), change=st.sampled_from(("flip", "cut", "insert", "double")))
def test_a_damaged_index_never_gives_a_wrong_answer(
    tmp_path_factory: pytest.TempPathFactory, at: float, change: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "EVERY", 3)
        written = Written(tmp_path_factory.mktemp("episode"), scaffold.load("crafter/v0"))
        for number in range(10):
            written.step([("APPEND", "map_notes.txt", f"line {number}"), ("WRITE", "goals.txt", f"{number}")])
        written.writer.close()
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
        assert all_of(written.asked()) == written.folders
        assert [r.step for r in written.asked().steps()] == list(range(10))


def test_the_index_of_another_trace_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "EVERY", 4)
    played = scaffold.load("crafter/v0")
    by_size: dict[int, list[Written]] = {}
    for first in ("aaaa", "bbbb", "eeee", "ffff", "gggg", "hhhh", "iiii", "jjjj"):
        episode = Written(tmp_path / first, played)
        for number in range(8):
            # Only the first step differs, and not in its length.
            episode.step([("APPEND", "map_notes.txt", f"{first if not number else 'cccc'} {number}")])
        episode.writer.close()
        by_size.setdefault((tmp_path / first / STEPS).stat().st_size, []).append(episode)
    one, two = max(by_size.values(), key=len)[:2]
    shutil.copy(index.path_of(one.folder / STEPS), index.path_of(two.folder / STEPS))
    assert all_of(two.asked()) == two.folders


def test_an_index_that_cannot_be_written_costs_time_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "EVERY", 4)
    index.path_of(tmp_path / STEPS).mkdir(parents=True)
    written = Written(tmp_path, scaffold.load("crafter/v0"))
    for number in range(9):
        written.step([("APPEND", "map_notes.txt", f"line {number}")])
    written.writer.close()
    assert index.path_of(tmp_path / STEPS).is_dir()
    assert all_of(written.asked()) == written.folders


@pytest.mark.usefixtures("dense")
def test_a_finished_episode_without_an_index_gets_one_and_an_unfinished_one_does_not(tmp_path: Path) -> None:
    played = scaffold.load("crafter/v0")

    live = Live()
    with pytest.raises(ModelUnavailable):
        play(tmp_path, played, 12, failing(30), live)
    path = index.path_of(tmp_path / STEPS)
    path.unlink()
    unfinished = trace.EpisodeTrace(tmp_path, played)
    assert all_of(unfinished) == live.folders and unfinished.result is None and not path.exists()
    play(tmp_path, played, 12, live=live)
    path.unlink()
    finished = trace.EpisodeTrace(tmp_path, played)
    assert all_of(finished) == live.folders and finished.result is not None
    assert index.load(tmp_path / STEPS).records == 12


@pytest.mark.usefixtures("dense")
def test_an_index_does_not_grow_with_the_memory_folder(tmp_path: Path) -> None:
    written = Written(tmp_path, scaffold.load("crafter/v0"))
    sizes = []
    for number in range(400):
        written.step([("APPEND", "map_notes.txt", f"{os.urandom(50).hex()} {number}")])
        sizes.append(index.path_of(tmp_path / STEPS).stat().st_size)
    young, old = sizes[99] - sizes[49], sizes[399] - sizes[349]
    assert old < 1.3 * young


def test_a_scaffold_that_was_not_played_is_told(tmp_path: Path, mapping: Scaffold) -> None:
    written = Written(tmp_path, mapping)
    written.step([("UPSERT", "places.txt", "lake", "north")])
    written.writer.close()
    with pytest.raises(Diverged, match=r"step 0: UPSERT places\.txt .* refused now"):
        trace.EpisodeTrace(tmp_path, scaffold.load("crafter/v0")).memory(0)
    with pytest.raises(UserError, match="belongs to no run"):
        trace.EpisodeTrace(tmp_path).memory(0)
    assert len(trace.EpisodeTrace(tmp_path)) == 1


def test_steps_that_are_not_there_are_told(tmp_path: Path) -> None:
    written = Written(tmp_path, scaffold.load("crafter/v0"))
    with pytest.raises(UserError, match="no step 0; the trace has no step"):
        written.asked().memory(0)
    assert list(written.asked().steps()) == []
    written.step()
    for wrong in (-1, 1):
        with pytest.raises(UserError, match=f"no step {wrong}; the trace has steps 0 to 0"):
            written.asked().step(wrong)
    with pytest.raises(UserError, match="no episode here"):
        trace.EpisodeTrace(tmp_path / "elsewhere")


def test_a_diff_tells_what_came_and_went(tmp_path: Path) -> None:
    written = Written(tmp_path, scaffold.load("crafter/v0"))
    written.step([("WRITE", "own.txt", "one\ntwo\nthree\nfour\nfive"), ("CREATE", "gone.txt")])
    written.step([("WRITE", "own.txt", "one\ntwo\n3\nfour\nfive"), ("DELETE", "gone.txt"), ("APPEND", "new.txt", "x")])
    found = written.asked().memory_diff(0, 1)
    assert {name: (diff.change, diff.added, diff.removed) for name, diff in found.items()} == {
        "gone.txt": ("removed", 0, 0),
        "new.txt": ("created", 1, 0),
        "own.txt": ("changed", 1, 1),
    }
    assert found["own.txt"].diff == "@@ -1,5 +1,5 @@\n one\n two\n-three\n+3\n four\n five"
    assert written.asked().memory_diff(1, 1) == {}


def test_a_diff_of_many_lines_is_quick_and_whole(tmp_path: Path) -> None:
    written = Written(tmp_path, scaffold.load("crafter/v0"))
    old = [f"line {n % 7}" for n in range(20_000)]
    new = [*old[5000:], *(f"new {n}" for n in range(1000)), "line 0"]
    written.step([("WRITE", "own.txt", "\n".join(old))])
    written.step([("WRITE", "own.txt", "\n".join(new))])
    found = written.asked().memory_diff(0, 1)["own.txt"]
    assert found.added - found.removed == len(new) - len(old) and found.added >= 1000


def test_a_sealed_index_is_trusted_until_the_trace_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "EVERY", 4)
    monkeypatch.setattr(index, "OLD_ENOUGH", 0)
    played = scaffold.load("crafter/v0")
    one, two = (Written(tmp_path / name, played) for name in ("one", "two"))
    for number in range(8):
        one.step([("APPEND", "map_notes.txt", f"aaaa {number}")])
        two.step([("APPEND", "map_notes.txt", f"{'aaaa' if number else 'bbbb'} {number}")])
    for episode in (one, two):
        episode.writer.close()
        (episode.folder / "episode.json").write_text("{}")
    path = one.folder / STEPS
    unsealed = index.path_of(path).stat().st_size
    assert len(one.asked()) == 8 and index.path_of(path).stat().st_size > unsealed
    with monkeypatch.context() as patch:
        patch.setattr(index, "_fitting", lambda *_: pytest.fail("the trace was read to see whether the index fits"))
        assert all_of(one.asked()) == one.folders
    before = path.stat().st_ctime_ns
    while path.stat().st_ctime_ns == before:
        path.write_bytes((two.folder / STEPS).read_bytes())
    assert all_of(one.asked()) == two.folders
    resumed = trace.TraceWriter(path, two.memory, played.identity)
    resumed.close()
    assert index.load(path).records == 8 and all_of(one.asked()) == two.folders


def test_a_trace_that_was_just_written_is_not_sealed(tmp_path: Path) -> None:
    written = Written(tmp_path, scaffold.load("crafter/v0"))
    written.step()
    written.writer.close()
    (tmp_path / "episode.json").write_text("{}")
    size = index.path_of(tmp_path / STEPS).stat().st_size
    assert len(written.asked()) == 1 and index.path_of(tmp_path / STEPS).stat().st_size == size
