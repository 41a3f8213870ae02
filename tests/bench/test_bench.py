"""A bench on real games: the same twice, gone on with after any end, and nothing that failed counted as zero."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from automem import cli, evaluate, runs
from automem.bench import entrants, play, results, storage
from automem.bench.play import BenchRequest
from automem.episode import EpisodeJob
from automem.errors import UserError
from automem.executor import Outcome
from automem.models.fixed import Fixed, first_action
from automem.models.protocol import Message, ModelUnavailable
from automem.progress import Progress
from automem.runs import PlayedModel

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(evaluate, "FIRST_WAIT", 0.01)
    return tmp_path


def asked(agents: str = "random,naive,memory", **more: Any) -> BenchRequest:
    given = {"suite": "smoke", "model": PlayedModel(name="fixed"), "steps": 6, "name": "b"}
    return BenchRequest(entrants=entrants.parse(agents), **(given | more))


def benched(request: BenchRequest, retries: int = 2) -> tuple[storage.Bench, dict[str, Any], list[tuple[str, str]]]:
    told: list[tuple[str, str]] = []
    quiet = Console(quiet=True)
    planned = play.plan(request)
    bench, found = asyncio.run(
        play.play(planned, lambda: Progress(quiet), lambda label, why: told.append((label, why)), 4, None, retries)
    )
    return bench, found, told


def timeless(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name not in ("times", "bench")}


def renamed(found: dict[str, Any]) -> str:
    return json.dumps(timeless(found), sort_keys=True).replace('"other/', '"b/')


def test_two_benches_of_the_same_are_the_same(here: Path) -> None:
    _, first, _ = benched(asked(suite="Crafter", episodes=2))
    _, second, _ = benched(asked(suite="Crafter", episodes=2, name="other"))
    assert renamed(first) == renamed(second)
    assert first["complete"] and [agent["label"] for agent in first["agents"]] == ["random", "naive", "memory"]
    stored = json.loads((here / "runs" / "b" / storage.RESULTS).read_text())
    assert stored == json.loads(json.dumps(first))
    assert [agent["per_task"]["Crafter"]["episodes"] for agent in first["agents"]] == [2, 2, 2]
    assert [agent["usage"]["calls"] for agent in first["agents"]] == [0, 12, 22]
    # Runs of a bench are runs like others.
    assert runs.load("b/naive").config.agent == "naive"
    assert {run.config.name for run in runs.all_runs()} >= {"b/random", "other/memory"}


class Flaky(Fixed):
    """Fails in the game whose prompt holds a mark, until it has been asked so often there."""

    def __init__(self, mark: str, failures: int) -> None:
        self.failures = failures

        def rule(messages: Sequence[Message]) -> str:
            if mark in messages[0]["content"] and self.failures:
                self.failures -= 1
                raise ModelUnavailable("the server is gone")
            return first_action(messages)

        super().__init__(rule)


def flaky(monkeypatch: pytest.MonkeyPatch, failures: int) -> Flaky:
    made = Flaky("- Move West: ", failures)
    monkeypatch.setattr(evaluate, "make_model", lambda chosen, processes: made)
    return made


def test_what_failed_is_tried_again_and_then_is_like_what_did_not(monkeypatch: pytest.MonkeyPatch) -> None:
    _, whole, _ = benched(asked("naive", suite="Crafter", episodes=2, name="other"))
    made = flaky(monkeypatch, 3)
    _, found, told = benched(asked("naive", suite="Crafter", episodes=2))
    assert made.failures == 0 and not told
    assert renamed(found) == renamed(whole)


def test_what_fails_to_the_end_is_missing_and_never_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    _, whole, _ = benched(asked("naive", name="other"))
    made = flaky(monkeypatch, 10**9)
    _, found, _ = benched(asked("naive"), retries=1)
    assert 10**9 - made.failures == 4  # two episodes, twice
    (naive,) = found["agents"]
    crafter = naive["per_game"]["crafter"]
    assert (crafter["episodes"], crafter["planned"], crafter["complete"]) == (0, 2, False)
    assert crafter["progression"] is None and crafter["interval"] is None
    assert not found["complete"] and not naive["complete"] and not naive["overall"]["complete"]
    assert [(one["task"], one["seed"]) for one in naive["failed"]] == [("Crafter", 42), ("Crafter", 43)]
    assert "the server is gone" in naive["failed"][0]["error"]
    rest = [row["progression"] for game, row in whole["agents"][0]["per_game"].items() if game != "crafter"]
    assert naive["overall"]["progression"] == pytest.approx(sum(rest) / 2)
    # The cause is mended: the bench goes on and becomes what it would have been.
    made.failures = 0
    _, after, _ = benched(asked("naive", resume=True))
    assert renamed(after) == renamed(whole)


def test_an_agent_without_its_model_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(Fixed):
        async def ready(self) -> None:
            raise ModelUnavailable("no server there")

    real = evaluate.make_model
    monkeypatch.setattr(
        evaluate,
        "make_model",
        lambda chosen, processes: Gone(first_action) if chosen.name == "fixed" else real(chosen, processes),
    )
    _, found, told = benched(asked("naive,random", suite="Crafter", episodes=1))
    assert told == [("naive", "no server there")]
    naive, random = found["agents"]
    assert (naive["complete"], naive["error"], random["complete"]) == (False, "no server there", True)
    assert naive["overall"]["progression"] is None


def test_a_damaged_result_is_missing_and_named(here: Path) -> None:
    bench, _, _ = benched(asked("random", suite="Crafter", episodes=2))
    (here / "runs/b/random/episodes/Crafter/seed-42/episode.json").write_text("{")
    found = results.gather(bench, {}, {})
    (random,) = found["agents"]
    assert not found["complete"] and random["per_task"]["Crafter"]["episodes"] == 1
    assert "seed-42" in random["failed"][0]["error"]


def test_a_killed_bench_goes_on_to_the_same_results(here: Path) -> None:
    words = "bench smoke --agents random,naive,scripted --model fixed --steps 60 --run"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def command(name: str, *more: str) -> list[str]:
        return [sys.executable, "-m", "automem.cli", *words.split(), name, *more]

    killed = subprocess.Popen(command("cut"), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while not list(here.glob("runs/cut/naive/episodes/*/seed-42/steps.jsonl.zst")) and time.monotonic() < deadline:
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert list(here.glob("runs/cut/naive/episodes/*/seed-42/steps.jsonl.zst"))
    assert not list(here.glob("runs/cut/scripted/run.toml"))
    for name, more in (("cut", ["--resume"]), ("whole", [])):
        done = subprocess.run(command(name, *more), env=environment, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stderr
    cut, whole = (json.loads((here / "runs" / name / "results.json").read_text()) for name in ("cut", "whole"))
    assert json.dumps(timeless(cut)).replace('"cut/', '"whole/') == json.dumps(timeless(whole))
    assert (here / "runs/whole/scoreboard.html").is_file() and (here / "runs/whole/results.md").is_file()


def test_another_bench_is_not_gone_on_with() -> None:
    benched(asked("random", suite="Crafter"))
    with pytest.raises(UserError, match="agents: random then, random, naive now"):
        play.plan(asked("random,naive", suite="Crafter", resume=True))
    with pytest.raises(UserError, match=r"b.random cannot be resumed"):
        play.plan(asked("random", suite="Crafter", resume=True, steps=7))
    with pytest.raises(UserError, match="is there already"):
        play.plan(asked("random", suite="Crafter"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("smoke --agents somebody", "no agent 'somebody'"),
        ("nowhere --agents random", "no task is called 'nowhere'"),
        ("smoke --agents specialist", "needs to know which"),
        ("smoke --agents naive --model none", "asks a model"),
        ("smoke --agents memory:minihack/v0+minihack/v1", "both play minihack"),
        ("crafter --agents memory:nethack/v0", "plays nethack"),
        ("smoke --agents random --run a/b", "run name"),
        ("smoke --agents random --resume", "--resume needs the name"),
    ],
)
def test_mistakes_are_told_before_anything_starts(here: Path, words: str, told: str) -> None:
    with pytest.raises((UserError, ValueError)) as raised:
        CliRunner().invoke(cli.app, ["bench", *words.split()], catch_exceptions=False)
    assert told in str(raised.value)
    assert not (here / "runs").exists()


def test_the_command_shows_the_scoreboard_and_lists_the_bench(here: Path) -> None:
    made = CliRunner().invoke(cli.app, ["bench", "smoke", "--agents=random,scripted", "--steps=4", "--run=first"])
    assert made.exit_code == 0, made.output
    assert {"scripted", "random", "language", "NetHack", "overall"} <= set(made.output.replace(";", "").split())
    assert "scoreboard.html" in made.output
    listed = CliRunner().invoke(cli.app, ["runs"])
    assert "benches" in listed.output and "complete" in listed.output


def test_outcomes_of_scaffolds_are_not_tried_again() -> None:
    job = EpisodeJob(Path("x"), "Crafter", 1, 1, None)
    assert Outcome(job, None, "x", "scaffold").fault not in evaluate.OUTSIDE
