"""The file of weights: every mistake in it is said before anything is judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from automem.errors import UserError
from specialist.select.rules import Rules
from specialist.select.weights import FILE, load

TEXT = FILE.read_text(encoding="utf-8")


def test_every_signal_has_a_weight_and_those_against_are_negative() -> None:
    weights = load()
    against = {"errors", "refused", "duplicates", "empty_searches", "repeated_reads", "never_read", "made_up", "idle"}
    assert {code for code, weight in weights.signals.items() if weight.weight < 0} == against


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("read_back = ", "reed_back = ", "missing read_back; unknown reed_back"),
        ("horizon = 20", "horizon = 0", "limits.horizon"),
        ("threshold = 2.0", "threshold = 20.0", "not between lowest and highest"),
        ("weight = 2.0", "weight = nan", "signals.read_before_progress.weight"),
        ("threshold = 2.0", "threshold = ", "not valid TOML"),
        ("lowest = -6.0", "lowest = -6.0\nlower = 1", "lower"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TEXT
    (tmp_path / "weights.toml").write_text(TEXT.replace(old, new, 1))
    with pytest.raises(UserError, match=said):
        load(tmp_path / "weights.toml")


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        load(tmp_path / "none.toml")


def test_the_version_follows_the_figures_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "weights.toml"
    path.write_text(f"# another comment\n{TEXT}")
    assert Rules(load(path)).version == Rules().version
    path.write_text(TEXT.replace("threshold = 2.0", "threshold = 2.5"))
    assert Rules(load(path)).version != Rules().version
