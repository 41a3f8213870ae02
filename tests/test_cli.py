"""The command line: what it says when something is wrong, and what it leaves behind."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from automem import runs
from tests.commands import caller

ROOT = Path(__file__).resolve().parent.parent

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def automem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process, in an empty folder; returns exit code and everything printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    call = caller(monkeypatch, capfd)

    def run(*arguments: str) -> tuple[int, str]:
        code, out, err = call(*arguments)
        return code, out + err

    return run


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["eval", "nosuchsuite"], "no task is called 'nosuchsuite'"),
        (["play", "Crafter-Nope"], "Crafter-Nope"),
        (["eval", "crafter", "--scaffold", "crafter/v99"], "no scaffold 'crafter/v99'"),
        (["eval", "crafter", "--scaffold", "nethack/v0"], "plays nethack"),
        (["eval", "crafter", "--model", "nosuch/model/"], "nosuch"),
        (["eval", "crafter", "--model", "gpt"], "gpt"),
        (["eval", "crafter", "--seeds", "5..1"], "backwards"),
        (["eval", "crafter", "--seeds", "x"], "'x'"),
        (["eval", "crafter", "--seeds", "-3"], "-3"),
        (["eval", "crafter", "--steps", "-3"], "--steps -3"),
        (["eval", "crafter", "--steps", "0"], "--steps 0"),
        (["eval", "crafter", "--episodes", "0"], "--episodes 0"),
        (["eval", "crafter", "--episodes", "11"], "--episodes 11"),
        (["eval", "crafter", "--run", "../up"], "run name"),
        (["eval", "crafter", "--resume"], "--run NAME"),
        (["eval", "crafter", "--model", "openai/x", "--api-base", "localhost:8000"], "write a URL"),
        (["eval", "crafter", "--model", "openai/x", "--api-base", "https://me:secret@host/v1"], "out of the URL"),
        (["eval", "crafter", "--model", "openai/x", "--api-base", "https://host/v1?key=secret"], "out of the URL"),
        (["nosuchcommand"], "No such command"),
    ],
)
def test_bad_input_is_one_message_and_code_2(automem: Command, tmp_path: Path, arguments: list[str], says: str) -> None:
    code, said = automem(*arguments)
    assert code == 2
    assert says in said and "Traceback" not in said and "secret" not in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:9/v1", "http://127.0.0.1:abc/v1", "http://[::1/v1", "http://127.0.0.1:9/ v1", "ftp://x"],
)
def test_a_server_that_is_not_there_is_told_before_a_run_is_made(
    automem: Command, tmp_path: Path, address: str
) -> None:
    code, said = automem("eval", "crafter", "--model", "hosted_vllm/x", "--api-base", address)
    assert code == 2 and ("127.0.0.1:9 " in said or "127.0.0.1:9/v1" in said or "write a URL" in said)
    assert "Traceback" not in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [("scaffold.toml", "[scaffold]\ngame = 3", "scaffold.game"), ("prompts/plan.j2", "{{ nonsense }}", "plan.j2:1")],
)
def test_a_broken_scaffold_is_told_before_a_run_is_made(
    automem: Command, tmp_path: Path, path: str, text: str, says: str
) -> None:
    shutil.copytree(ROOT / "scaffolds" / "crafter" / "v0", tmp_path / "mine")
    (tmp_path / "mine" / path).write_text(text)
    code, said = automem("eval", "crafter", "--scaffold", "mine")
    assert code == 2 and says in said
    assert not (tmp_path / "runs").exists()


def test_an_evaluation_leaves_a_run_that_can_be_listed_and_is_not_overwritten(automem: Command, tmp_path: Path) -> None:
    asked = ("eval", "crafter", "--model", "scripted", "--seeds", "7..8", "--steps", "12", "--run", "first")
    code, said = automem(*asked)
    assert code == 0 and "overall" in said and "runs/first" in said
    summary = json.loads((tmp_path / "runs" / "first" / "summary.json").read_text())
    assert summary["complete"] and summary["episodes"] == 2 and summary["model"] == "scripted"
    assert "first" in automem("runs")[1]
    before = (tmp_path / "runs" / "first" / "summary.json").read_bytes()
    code, said = automem(*asked)
    assert code == 2 and "--resume" in said
    assert automem(*asked, "--resume")[0] == 0
    assert (tmp_path / "runs" / "first" / "summary.json").read_bytes() == before
    code, said = automem(*asked[:6], "--steps", "13", "--run", "first", "--resume")
    assert code == 2 and "tasks:" in said


def test_a_scaffold_changed_inside_a_run_is_noticed(automem: Command, tmp_path: Path) -> None:
    asked = ("eval", "crafter", "--model", "scripted", "--seeds", "7", "--steps", "3", "--run", "first")
    assert automem(*asked)[0] == 0
    goals = tmp_path / "runs" / "first" / "scaffolds" / "crafter" / "v0" / "files" / "goals.txt"
    goals.write_text("cheat")
    code, said = automem(*asked, "--resume")
    assert code == 2 and "was changed since the run began" in said


def test_a_full_disk_is_one_message_and_the_run_can_be_resumed(tmp_path: Path) -> None:
    asked = [
        sys.executable,
        "-m",
        "automem.cli",
        "eval",
        "crafter",
        "--model",
        "scripted",
        "--seeds",
        "7",
        "--steps",
        "40",
        "--run",
        "first",
    ]

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, resource.RLIM_INFINITY))

    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    full = subprocess.run(
        asked, cwd=tmp_path, env=environment, preexec_fn=small_files, capture_output=True, text=True, timeout=300
    )
    assert full.returncode == 2, full.stderr
    assert "Traceback" not in full.stderr and "first" in full.stderr
    folder = tmp_path / "runs" / "first"
    assert not (folder / "summary.json").exists() and not list(folder.rglob("episode.json"))
    again = subprocess.run(
        [*asked, "--resume"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert again.returncode == 0, again.stderr
    assert (folder / "summary.json").exists()


def in_session(leader: int) -> list[int]:
    """Living processes of the session that this process leads, from /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, _group, session = stat.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found.append(int(stat.parent.name))
    return found


def test_ctrl_c_stops_everything_and_says_how_to_go_on(tmp_path: Path) -> None:
    asked = ["eval", "crafter", "--model", "scripted", "--seeds", "7", "--steps", "5000", "--run", "first"]
    process = subprocess.Popen(
        [sys.executable, "-m", "automem.cli", *asked],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    steps = tmp_path / "runs/first/episodes/Crafter/seed-7/steps.jsonl.zst"
    while not (steps.exists() and steps.stat().st_size > 5000):
        assert process.poll() is None
        time.sleep(0.02)
    assert len(in_session(process.pid)) > 1
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"automem {' '.join(asked)} --resume" in said and "Traceback" not in said
    # Everything that it started is in its session, and none of it is left.
    until = time.monotonic() + 10
    while in_session(process.pid):
        assert time.monotonic() < until, "something that it started is still there"
        time.sleep(0.05)


def test_a_run_that_is_being_played_cannot_be_played_by_another(automem: Command, tmp_path: Path) -> None:
    asked = ("eval", "crafter", "--model", "scripted", "--seeds", "7", "--steps", "3", "--run", "first")
    assert automem(*asked)[0] == 0
    with runs.load("first").exclusive():
        code, said = automem(*asked, "--resume")
    assert code == 2 and "another process is playing this run" in said


def test_generated_and_official_levels_are_not_mixed(
    automem: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("AUTOMEM_BOXOBAN_LEVELS", raising=False)
    asked = (
        "eval",
        "MiniHack-Boxoban-Hard-v0",
        "--model",
        "scripted",
        "--seeds",
        "7",
        "--steps",
        "2",
        "--run",
        "first",
    )
    code, said = automem(*asked)
    assert code == 0 and "levels: generated" in said
    level = "##########\n" + "#        #\n" * 5 + "# $$$$   #\n# .... @ #\n#        #\n##########\n"
    for folder in ("hard", "medium/train"):
        (tmp_path / "levels" / folder).mkdir(parents=True)
        (tmp_path / "levels" / folder / "000.txt").write_text(f"; 0\n{level}\n")
    monkeypatch.setenv("AUTOMEM_BOXOBAN_LEVELS", str(tmp_path / "levels"))
    code, said = automem(*asked, "--resume")
    assert code == 2 and "official" in said and "generated" in said


def test_a_damaged_run_does_not_hide_the_others(automem: Command, tmp_path: Path) -> None:
    for name in ("good", "bad"):
        asked = ("eval", "crafter", "--model", "scripted", "--seeds", "7", "--steps", "2", "--run", name)
        assert automem(*asked)[0] == 0
    (tmp_path / "runs" / "bad" / "summary.json").write_text("{")
    code, said = automem("runs")
    assert code == 0 and "good" in said and "damaged" in said
    (tmp_path / "runs" / "bad" / "run.toml").write_bytes(b"\xff\xfe")
    code, said = automem("runs")
    assert code == 0 and "good" in said


def test_play_prints_steps_and_keeps_the_run(automem: Command, tmp_path: Path) -> None:
    code, said = automem(
        "play", "minihack-corridor-r3-v0", "--model", "scripted", "--seed", "3", "--steps", "4", "--run", "one"
    )
    assert code == 0 and "MiniHack-Corridor-R3-v0" in said
    assert (tmp_path / "runs" / "one" / "episodes" / "MiniHack-Corridor-R3-v0" / "seed-3" / "episode.json").exists()


def test_every_command_shows_an_example(automem: Command) -> None:
    for command in (["play"], ["eval"], ["demo"], ["runs"], ["doctor"], ["games", "list"], ["games", "fetch"]):
        code, said = automem(*command, "--help")
        assert code == 0
        assert f"automem {' '.join(command)}" in said.partition("Example:")[2], command


def test_games_are_listed(automem: Command) -> None:
    code, said = automem("games", "list")
    assert code == 0 and "NetHackChallenge-v0" in said and "balrog" in said
