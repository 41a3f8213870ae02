"""One short real run for all tests of the meta-LLM's parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from automem.trace import EpisodeTrace, RunTrace
from specialist.candidate import Candidate, candidates
from tests.specialist.select.made import play


@pytest.fixture(scope="session")
def played_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs with the run ``taught``."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOMEM_RUNS", str(folder))
        play("taught", "Crafter", "crafter/v0", "7..8", 16)
    return folder


@pytest.fixture
def folder(played_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A search's folder; `AUTOMEM_RUNS` is a folder of this test's own that holds ``taught``."""
    for name in ("OPENAI_API_KEY", "HOSTED_VLLM_API_KEY", "HOSTED_VLLM_API_BASE", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "taught").symlink_to(played_folder / "taught")
    monkeypatch.setenv("AUTOMEM_RUNS", str(runs))
    search = runs / "search"
    search.mkdir()
    return search


@pytest.fixture
def taught(folder: Path) -> RunTrace:
    """The run."""
    return RunTrace("taught")


@pytest.fixture
def episode(taught: RunTrace) -> EpisodeTrace:
    """Its first episode."""
    return taught.episodes[0]


@pytest.fixture
def found(episode: EpisodeTrace) -> list[Candidate]:
    """The episode's candidates."""
    return list(candidates("taught", episode))
