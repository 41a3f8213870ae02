"""One evaluated run for all tests of the reviewer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.meta.reviewers.llm import setting


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose ``runs`` holds what `setting.play` played."""
    folder = tmp_path_factory.mktemp("played")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOMEM_RUNS", str(folder / "runs"))
        setting.play(folder)
    return folder


@pytest.fixture
def loop(played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for a test, with those runs."""
    for name in ("OPENAI_API_KEY", "HOSTED_VLLM_API_KEY", "HOSTED_VLLM_API_BASE", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AUTOMEM_RUNS", str(played / "runs"))
    (tmp_path / "runs").symlink_to(played / "runs")
    return tmp_path
