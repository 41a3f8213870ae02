"""Runs that several tests look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from automem.scaffold import Scaffold
from automem.trace import RunTrace
from tests.specialist.select.made import play, some_scaffold

RUNS = {
    "crafter-v0": ("Crafter", "crafter/v0", "7..9", 40),
    "crafter-v1": ("Crafter", "crafter/v1", "11", 40),
    "nethack-v0": ("NetHackChallenge-v0", "nethack/v0", "3", 40),
    "nethack-v1": ("NetHackChallenge-v0", "nethack/v1", "4", 40),
}
"""Name -> task, scaffold, seeds, steps."""


@pytest.fixture(scope="session")
def played_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def _played(played_folder: Path) -> dict[str, RunTrace]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOMEM_RUNS", str(played_folder))
        return {name: play(name, *what) for name, what in RUNS.items()}


@pytest.fixture
def played(_played: dict[str, RunTrace], played_folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, RunTrace]:
    """Short real runs by name, in a folder of runs of their own. They must not be changed."""
    monkeypatch.setenv("AUTOMEM_RUNS", str(played_folder))
    return _played


@pytest.fixture(scope="session")
def roomy(tmp_path_factory: pytest.TempPathFactory) -> Scaffold:
    """A scaffold with every kind of file and every operation."""
    return some_scaffold(tmp_path_factory.mktemp("scaffold") / "crafter" / "roomy")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a selection goes."""
    return tmp_path / "selection"
