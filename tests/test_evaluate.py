"""What an evaluation plays: the version that was named, however it was named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from automem import evaluate
from automem.errors import UserError
from automem.evaluate import Request
from automem.runs import PlayedModel
from automem.scaffold import Scaffold
from tests.versions import edit, write_run, write_version


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test in an empty folder, with the runs in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOMEM_RUNS", raising=False)


def chosen(named: str) -> Scaffold:
    """The scaffold of Crafter that would be played."""
    request = Request("Crafter", PlayedModel(name="scripted"), (named,), seeds="1", steps=1, name="new")
    return evaluate.plan(request).scaffolds["crafter"]


@pytest.mark.parametrize("named", ["runs/first", "identity", "runs/first/scaffolds/crafter/a"])
def test_a_version_that_only_a_run_has_is_played_however_it_is_named(named: str) -> None:
    played = write_version("crafter/a")
    write_run("first", played, {1: 0.5})
    shutil.rmtree(played.folder)
    found = chosen(played.identity[:8] if named == "identity" else named)
    assert found.identity == played.identity
    assert found.folder == Path("runs/first/scaffolds/crafter/a")


@pytest.mark.parametrize("named", ["crafter/a", "scaffolds/crafter/a", "mine"])
def test_a_name_and_a_folder_mean_what_is_there_now(named: str) -> None:
    written = edit(write_version("crafter/a"), "log_turns = 5", "log_turns = 4")
    shutil.copytree(written.folder, "mine")
    assert chosen(named).identity == written.identity


def test_a_run_that_cannot_be_read_is_named_since_what_it_played_is_not_known(
    caplog: pytest.LogCaptureFixture,
) -> None:
    played = write_version("crafter/a")
    write_run("first", played, {1: 0.5})
    chosen("crafter/a")
    assert not caplog.messages
    Path("runs/first/run.toml").write_text("format = 99")
    chosen("crafter/a")
    (said,) = caplog.messages
    assert said.startswith("runs/first/run.toml cannot be read")


def test_a_version_that_is_not_there_is_told_in_one_message() -> None:
    with pytest.raises(UserError, match=r"^no scaffold 'runs/nope'\. Name a version, a folder"):
        chosen("runs/nope")
