"""The configuration file: limits of scaffold code that no scaffold sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from automem import config
from automem.errors import UserError
from automem.sandbox.limits import SandboxConfig


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOMEM_CONFIG", raising=False)


def test_without_a_file_everything_is_as_it_comes() -> None:
    assert config.load() == config.Config() and config.load().sandbox == SandboxConfig()


def test_a_file_in_the_working_folder_or_a_named_one_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("automem.toml").write_text("[sandbox]\ncall_seconds = 0.5\n")
    assert config.load().sandbox.call_seconds == 0.5
    (tmp_path / "other.toml").write_text("[sandbox]\nmemory_mb = 100\n")
    monkeypatch.setenv("AUTOMEM_CONFIG", str(tmp_path / "other.toml"))
    assert (config.load().sandbox.memory_mb, config.load().sandbox.call_seconds) == (100, 2.0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[sandbox]\nunsafe = true\n", "--unsafe-hooks"),  # a folder that one enters must not be enough
        ("[sandbox]\ncall_seconds = 0\nmemory = 3\n", "2 problem"),
        ("sandbox = 3\n", "problem"),
        ("[sandbox\n", "not valid TOML"),
    ],
)
def test_what_is_wrong_in_it_is_said(text: str, told: str) -> None:
    Path("automem.toml").write_text(text)
    with pytest.raises(UserError, match=told):
        config.load()


def test_a_named_file_has_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, told in ((tmp_path / "none.toml", "no such file"), (tmp_path, "cannot be read")):
        monkeypatch.setenv("AUTOMEM_CONFIG", str(path))
        with pytest.raises(UserError, match=told):
            config.load()
