"""What behaviour metrics are called."""

from __future__ import annotations

from automem.metric_names import METRICS, figure, metric, shares, unit
from automem.metrics import Counts, rates


def test_every_metric_has_a_name_of_its_own_and_a_unit() -> None:
    assert set(METRICS) >= set(rates(Counts()))
    labels = [metric(name).label for name in rates(Counts())]
    assert len(set(labels)) == len(labels) and all(unit(name) for name in rates(Counts()))
    assert metric("new_thing_share").label == "new thing" and unit("new_thing_share") == "%"


def test_figures_are_read_with_their_unit() -> None:
    assert figure("stuck_share", 0.256) == "25.6" and figure("turns_per_step", 2.996) == "3"
    assert figure("prompt_tokens_per_step", 5652.4) == "5652" and figure("stuck_share", None) == "-"


def test_shares_of_operations_sum_to_one() -> None:
    assert shares({"TAIL": 1, "APPEND": 3}) == {"APPEND": 0.75, "TAIL": 0.25} and shares({}) == {}
