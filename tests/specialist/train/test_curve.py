"""The curve of a run, and when a run is stopped."""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from specialist.train import curve
from specialist.train.curve import CURVE, CurveReader, Row
from specialist.train.guard import PATIENCE, Guard

finite = st.floats(0, 1e6, allow_nan=False)
row_lists = st.lists(
    st.builds(Row, st.integers(0, 50), st.just(50), finite, loss=st.none() | finite, held_out=st.none() | finite),
    max_size=8,
)


@settings(deadline=None, max_examples=30)
@given(row_lists, st.lists(st.integers(0, 4000), max_size=5))
def test_a_reader_gets_every_row_once_wherever_the_file_ended(written: list[Row], cuts: list[int]):
    with TemporaryDirectory() as name:
        folder = Path(name)
        for row in written:
            curve.append(folder, row)
        whole = (folder / CURVE).read_bytes() if written else b""
        reader, read = CurveReader(folder), []
        for cut in sorted(cuts):
            (folder / CURVE).write_bytes(whole[:cut])
            read += reader.new()
        (folder / CURVE).write_bytes(whole)
        assert read + reader.new() == written
        assert reader.new() == []


def test_steps_that_are_done_again_are_forgotten(tmp_path: Path):
    for step in range(4):
        curve.append(tmp_path, Row(step, 3, 1.0, loss=2.0))
        curve.append(tmp_path, Row(step, 3, 1.0, held_out=2.0))
    assert [row.step for row in curve.cut_back(tmp_path, 1)] == [0, 0, 1, 1]
    assert [row.step for row in curve.rows(tmp_path)] == [0, 0, 1, 1]
    assert curve.cut_back(tmp_path, None) == curve.rows(tmp_path) == []


def see(losses: list[float]) -> str | None:
    guard = Guard()
    return next((why for step, loss in enumerate(losses, 1) if (why := guard.see(step, loss))), None)


def test_noise_and_one_bad_step_do_not_stop_a_run():
    assert see([2.0, 3.5, 1.0, 3.9, 0.5, 30.0, 1.5, 1.2] + [1.0] * 20) is None
    assert see([0.01] + [0.3] * 50) is None


def test_a_loss_that_stays_high_stops_a_run_and_says_since_when():
    why = see([2.0, 2.0] + [9.0] * 20)
    assert why is not None
    assert "rose from 2.00" in why
    assert see([2.0] + [9.0] * (PATIENCE - 1)) is None


def test_what_is_no_number_stops_a_run_at_once():
    assert see([2.0, math.nan]) == "the loss is nan at step 2"
    assert see([math.inf]) == "the loss is inf at step 1"
    assert Guard().see(3, 1.0, math.inf) == "the gradient is inf at step 3"
