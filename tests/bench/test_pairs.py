"""``automem compare`` on benches: whose run is held against whose, and what is said where there is nothing to hold."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from automem import cli
from tests.commands import Called, caller

BENCHED = ("Crafter", "--model", "fixed", "--seeds", "42,43", "--steps", "4")


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two benches that share two agents."""
    folder = tmp_path_factory.mktemp("benches")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("AUTOMEM_RUNS", str(folder))
        for name, agents in (("b", "random,naive,memory"), ("other", "memory,random")):
            played = CliRunner().invoke(cli.app, ["bench", *BENCHED, "--agents", agents, "--run", name])
            assert played.exit_code == 0, played.output
    return folder


@pytest.fixture
def call(benches: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Called:
    shutil.copytree(benches, tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOMEM_RUNS", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    return caller(monkeypatch, capfd)


def sides(output: str) -> list[tuple[str, str]]:
    return [(one["a"], one["b"]) for one in json.loads(output)]


def test_the_agents_of_a_bench_are_held_against_its_first(call: Called) -> None:
    code, output, _ = call("compare", "b", "--json")
    assert code == 0 and sides(output) == [("b/random", "b/naive"), ("b/random", "b/memory")]
    code, output, _ = call("compare", "b")
    assert code == 0 and output.count("p by sign flips") == 2


def test_two_benches_are_compared_agent_by_agent(call: Called) -> None:
    code, output, _ = call("compare", "b", "other", "--json")
    assert code == 0 and sides(output) == [("b/random", "other/random"), ("b/memory", "other/memory")]
    assert all(one["overall"]["difference"] == 0 and one["overall"]["p"] == 1 for one in json.loads(output))


def test_an_agent_that_finished_nothing_keeps_nobody_from_seeing_the_others(call: Called) -> None:
    shutil.rmtree("runs/b/naive/episodes")
    code, output, errors = call("compare", "b", "--json")
    assert code == 0 and sides(output) == [("b/random", "b/memory")]
    assert "b/random and b/naive have no finished episode" in errors
    shutil.rmtree("runs/b/memory/episodes")
    code, output, errors = call("compare", "b")
    assert code == 2 and not output
    assert "b/naive" in errors and "b/memory" in errors


def test_what_cannot_be_held_against_each_other_is_said(call: Called) -> None:
    for words, said in (
        (("b", "b/random"), "b is a bench and b/random is none: name a run of it, such as b/random"),
        (("b/random",), "is no bench: name two runs to compare, or one bench"),
    ):
        code, _, errors = call("compare", *words)
        assert code == 2 and said in " ".join(errors.split())
