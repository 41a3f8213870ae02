"""A bench on real games: the same twice, gone on with after any end, and nothing that failed counted as zero."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tomli_w
from rich.console import Console
from typer.testing import CliRunner

from automem import choosing, cli, evaluate, runs
from automem.agents import registry
from automem.agents.protocol import Seat
from automem.balrog.export import export
from automem.bench import entrants, play, results, standing, storage
from automem.bench.play import BenchRequest
from automem.bench.power_view import show
from automem.episode import EpisodeJob
from automem.errors import UserError
from automem.executor import Outcome
from automem.models.fixed import Fixed, first_action
from automem.models.protocol import Message, ModelUnavailable
from automem.progress import Progress
from automem.runs import PlayedModel, PlayedSpecialist
from games.protocol import Observation

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(evaluate, "FIRST_WAIT", 0.01)
    return tmp_path


def asked(agents: str = "random,naive,memory", **more: Any) -> BenchRequest:
    more = {"target" if name == "suite" else name: value for name, value in more.items()}
    given = {"target": "smoke", "model": PlayedModel(name="fixed"), "steps": 6, "name": "b"}
    return BenchRequest(entrants.parse(agents), evaluate.Request(**(given | more)))


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


def small(agents: str, **more: Any) -> BenchRequest:
    return asked(agents, **({"suite": "Crafter", "episodes": 1, "steps": 2} | more))


class Faulty:
    """A package's agent whose code fails at its second step."""

    model = "none"

    def __init__(self, seat: Seat) -> None:
        self.seat = seat

    async def act(self, observation: Observation) -> str:
        if self.seat.last is None:
            return "Noop"
        raise KeyError("here \x1b[2J")


def test_an_agent_whose_code_fails_costs_its_own_episodes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = metadata.EntryPoint("faulty", f"{__name__}:Faulty", registry.ENTRY_POINTS)
    monkeypatch.setattr(choosing, "entry_points", lambda group: [entry])
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda self: Faulty)
    monkeypatch.setattr(evaluate, "FIRST_WAIT", 10**6)  # such an episode is not tried again
    _, found, told = benched(small("faulty,random"))
    faulty, random = found["agents"]
    assert not told and random["complete"] and not faulty["complete"]
    assert faulty["overall"]["progression"] is None and faulty["overall"]["planned"] == 1
    assert "agent faulty failed at step 1: KeyError" in faulty["failed"][0]["error"]


def test_a_result_of_another_episode_is_missing_and_named_once(here: Path) -> None:
    bench, _, _ = benched(small("random", episodes=4))
    folder = here / "runs/b/random/episodes/Crafter"
    (folder / "seed-43/episode.json").write_bytes((folder / "seed-42/episode.json").read_bytes())
    wrong = json.loads((folder / "seed-44/episode.json").read_text()) | {"progression": 1.5}
    (folder / "seed-44/episode.json").write_text(json.dumps(wrong))
    (folder / "seed-45/episode.json").write_text(json.dumps(wrong | {"seed": 45, "progression": None}))
    for found in (results.gather(bench, {}, {}), benched(small("random", episodes=4, resume=True))[1]):
        (random,) = found["agents"]
        assert list(random["per_task"]["Crafter"]["by_seed"]) == ["42"]
        assert not found["complete"] and random["overall"]["episodes"] == 1
        assert [one["seed"] for one in random["failed"]] == [43, 44, 45]
        assert "result of another episode" in random["failed"][0]["error"]
        assert "not between 0 and 1" in random["failed"][1]["error"]
        assert "another kind in progression" in random["failed"][2]["error"]
    # Spreads and exports count none of them either.
    show("Crafter", 20, "b", console := Console(file=io.StringIO(), width=200))
    assert "1 seeds" in console.file.getvalue()  # type: ignore[attr-defined]
    (done,) = export("b", here / "out")
    assert done.episodes == 1 and "result of another episode" in done.left_out[0].why


class Closing(Fixed):
    """Says when it is closed."""

    def __init__(self, said: list[str]) -> None:
        super().__init__(first_action)
        self._said = said

    async def ready(self) -> None:
        self._said.append("ready")

    async def close(self) -> None:
        self._said.append("closed")


def test_a_model_stays_open_until_nobody_plays_with_it_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    real = evaluate.make_model

    def make(chosen: PlayedModel, processes: int) -> Any:
        said.append(f"made {chosen.name}")
        return Closing(said) if chosen.name == "fixed" else real(chosen, processes)

    monkeypatch.setattr(evaluate, "make_model", make)
    benched(small("naive,cot,random"))
    assert said == ["made fixed", "ready", "ready", "closed", "made none"]


def test_no_model_is_reached_for_an_agent_that_is_over(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, whole, _ = benched(small("naive,memory"))
    said: list[str] = []
    monkeypatch.setattr(evaluate, "make_model", lambda chosen, processes: Closing(said))
    _, again, _ = benched(small("naive,memory", resume=True))
    assert said == ["closed"] and timeless(again) == timeless(whole)
    (here / "runs/b/memory/episodes/Crafter/seed-42/episode.json").unlink()
    _, again, _ = benched(small("naive,memory", resume=True))
    assert said == ["closed", "ready", "closed"] and timeless(again) == timeless(whole)


def test_the_time_until_ctrl_c_counts(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((100.0, 107.0))

    async def stopped(*_: object) -> None:
        raise asyncio.CancelledError

    with monkeypatch.context() as patched, pytest.raises(asyncio.CancelledError):
        patched.setattr(play, "_agent", stopped)
        patched.setattr(play, "time", SimpleNamespace(monotonic=lambda: next(clock)))
        benched(small("random"))
    assert results.seconds(storage.load("b")) == {"random": 7.0}


def test_one_process_at_a_time_plays_a_bench(here: Path) -> None:
    bench, _, _ = benched(small("random"))
    with bench.exclusive(), pytest.raises(UserError, match="another process is playing"):
        benched(small("random", resume=True))
    assert benched(small("random", resume=True))[1]["complete"]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"times": {"seconds": [1]}, "agents": [1]}', '{"failed": [{}]}'])
def test_results_and_summaries_that_are_damaged_are_written_anew(here: Path, text: str) -> None:
    _, whole, _ = benched(small("random,scripted"))
    for name in ("results.json", "random/summary.json", "scripted/summary.json"):
        (here / "runs/b" / name).write_text(text)
    (here / "runs/b/scripted/episodes/Crafter/seed-42/episode.json").unlink()
    assert CliRunner().invoke(cli.app, ["report", "b", "--no-pictures"], catch_exceptions=False).exit_code == 0
    for name in ("results.json", "random/summary.json", "scripted/summary.json"):
        (here / "runs/b" / name).write_text(text)
    assert timeless(benched(small("random,scripted", resume=True))[1]) == timeless(whole)


def test_a_report_writes_no_results_while_another_process_plays(here: Path) -> None:
    bench, whole, _ = benched(small("random"))
    (bench.folder / "results.json").write_text("{}")
    with bench.exclusive():
        assert timeless(results.refreshed(bench)) == timeless(whole)
    assert (bench.folder / "results.json").read_text() == "{}"
    assert timeless(results.refreshed(bench)) == timeless(whole)
    assert timeless(json.loads((bench.folder / "results.json").read_text())) == timeless(json.loads(json.dumps(whole)))


def test_nobody_has_begun_and_nothing_is_claimed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(Fixed):
        async def ready(self) -> None:
            raise ModelUnavailable("no server there")

    with monkeypatch.context() as away:
        away.setattr(evaluate, "make_model", lambda chosen, processes: Gone(first_action))
        _, found, _ = benched(small("naive", steps=None))
    (naive,) = found["agents"]
    assert standing.labels(naive) == ["incomplete: 0 of 0 episodes"] and standing.who(naive) == "naive"
    assert not any("Not language models" in caution for caution in standing.cautions(found))
    # Its settings are known, though no run has them yet: they cannot become others.
    with pytest.raises(UserError, match=r"command: .* then, .*--steps 2 now"):
        play.plan(small("naive", resume=True))


def test_what_has_not_begun_counts_as_planned_and_later_as_begun(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, whole, _ = benched(small("random,naive"))
    shutil.move(here / "runs/b/naive", here / "kept")
    found = results.write(bench, {}, {})
    naive = found["agents"][1]
    assert (naive["error"], naive["overall"]["planned"], found["complete"]) == (results.NOT_BEGUN, 1, False)
    shutil.move(here / "kept", here / "runs/b/naive")
    assert results.errors(bench) == {}
    assert timeless(results.write(bench, {}, {"naive": "no server there"})) == timeless(whole)


def test_balrogs_mean_of_a_game_is_that_of_all_its_episodes(here: Path) -> None:
    bench, found, _ = benched(asked("random", steps=2))
    folders = [
        here / "runs/b/random/episodes" / task for task in found["agents"][0]["per_task"] if task.startswith("MiniHack")
    ]
    won = {folders[0] / "seed-42": 1.0, folders[0] / "seed-43": 0.5, folders[1] / "seed-42": 1.0}
    for folder, reward in won.items():
        path = folder / "episode.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"last_reward": reward}))
    (folders[1] / "seed-43/episode.json").unlink()
    (random,) = results.gather(bench, {}, {})["agents"]
    assert [random["per_task"][folder.name]["balrog"] for folder in folders] == [0.5, 1.0]
    assert random["per_game"]["minihack"]["balrog"] == pytest.approx(2 / 3)


def test_versions_are_those_of_every_agent(here: Path) -> None:
    bench, _, _ = benched(small("random,naive"))
    path = here / "runs/b/naive/run.toml"
    changed = tomllib.loads(path.read_text())
    changed["versions"] |= {"crafter": "0.1", "steady": "3.2"}
    path.write_text(tomli_w.dumps(changed))
    found = results.gather(bench, {}, {})["versions"]
    assert found["steady"] == "3.2" and found["crafter"].endswith(", 0.1")


@pytest.mark.parametrize(("old", "new"), [("format", "["), ('task = "Crafter"', 'task = "Chess"')])
def test_a_run_that_cannot_be_read_does_not_hide_the_others(here: Path, old: str, new: str) -> None:
    benched(small("random"))
    benched(small("random", name="other"))
    path = here / "runs/b/random/run.toml"
    path.write_text(path.read_text().replace(old, new))
    listed = CliRunner().invoke(cli.app, ["runs"])
    assert listed.exit_code == 0 and "other" in listed.output and "cannot be" in " ".join(listed.output.split())


def test_the_command_of_a_bench_names_all_of_its_specialist(tmp_path: Path) -> None:
    specialist = PlayedSpecialist(
        model=PlayedModel(name="hosted_vllm/Q/b+specialist-0"), adapter="/home/me/small", merged=True, consult_turns=3
    )
    command = play.plan(small("specialist", specialist=specialist)).config.command
    base = "hosted_vllm/Q/b"
    assert command.endswith(f"--specialist {base}+specialist-0 --specialist-base {base} --consult-turns 3 --merged")
    untrained = PlayedSpecialist(model=PlayedModel(name="smollm2"))
    command = play.plan(small("specialist", specialist=untrained)).config.command
    assert command.endswith("--specialist smollm2 --consult-turns 1")
    with pytest.raises(UserError, match="no agent plays with it"):
        play.plan(small("memory", specialist=specialist))


def test_an_adapter_that_was_moved_is_the_same_and_another_is_not() -> None:
    def planned(name: str, adapter: str) -> storage.BenchConfig:
        played = PlayedSpecialist(model=PlayedModel(name=name), adapter=adapter)
        return play.plan(small("specialist", specialist=played)).config

    then = planned("smollm2+specialist-0", "/a/small")
    assert then.differences(planned("smollm2+specialist-0", "/b/moved"), whole=False) == []
    (told,) = then.differences(planned("smollm2+specialist-1", "/a/small"), whole=False)
    assert told.startswith("command: ") and "+specialist-1" in told


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


def test_how_many_seeds_are_enough_is_told_from_what_was_played() -> None:
    def told(words: str) -> str:
        return " ".join(CliRunner().invoke(cli.app, words.split(), catch_exceptions=False).output.split())

    with pytest.raises(UserError, match="has been played here"):
        told("bench crafter --power 5")
    benched(asked("random,scripted", suite="Crafter", seeds="42..44", steps=40))
    both = told("bench Crafter --power 20 --run b")
    assert "b/random and b/scripted: a difference of 20 points" in both
    assert {"pairs", "(few)"} <= set(both.split())
    assert "b/random: a difference of 20 points" in told("bench crafter --power 20 --run b/random")
    assert both == told("bench crafter --power 20")  # the latest of the suite
    # A later bench in which nothing is finished, and an agent that finished nothing, hide nothing.
    benched(asked("random", suite="Crafter", seeds="42", name="later"))
    shutil.rmtree("runs/later/random/episodes")
    shutil.copytree("runs/b/random", "runs/b/naive")
    shutil.rmtree("runs/b/naive/episodes")
    listed = tomllib.loads(Path("runs/b/bench.toml").read_text())
    listed["agents"].append({"label": "naive", "agent": "naive"})
    Path("runs/b/bench.toml").write_text(tomli_w.dumps(listed))
    assert both == told("bench crafter --power 20")
    with pytest.raises(UserError, match="later: no finished episode"):
        told("bench crafter --power 20 --run later")
    for points in ("0", "101", "-3"):
        with pytest.raises(UserError, match="above 0 and at most 100"):
            told(f"bench crafter --power {points} --run b")
