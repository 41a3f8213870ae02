"""`automem loop1` as a person meets it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from meta import forecast
from tests.commands import caller

ROOT = Path(__file__).resolve().parent.parent.parent
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name != "AUTOMEM_RUNS"},
    "PYTHONPATH": str(ROOT),
    "COLUMNS": "200",
}
SMALL = (
    "--model scripted --steps 25 --gate paper --most-seeds 2 --held-out 20000,20001 --iterations 1 --attempts 1 "
    "--continuations 0 --shown 2"
)


def automem(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "automem.cli", *text.split()],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_loop_from_plan_to_page(tmp_path: Path) -> None:
    planned = automem(tmp_path, f"loop1 crafter {SMALL} --dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "plan: up to 1 revisions" in planned.stdout and "costs are not known yet" in planned.stdout
    assert "accepts by chance" in planned.stdout
    assert not (tmp_path / "runs").exists()
    done = automem(tmp_path, f"loop1 crafter {SMALL} --run one")
    assert done.returncode == 0, done.stderr
    assert "1.1.0 log-becomes-map" in done.stdout and "1 revisions, 1 attempts were tried" in done.stdout
    page = (tmp_path / "runs" / "one" / "loop.html").read_text()
    assert "log-becomes-map" in page and "src=" not in page
    assert "one" in automem(tmp_path, "runs").stdout
    again = automem(tmp_path, f"loop1 crafter {SMALL} --run one")
    assert again.returncode == 2 and "--resume" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("crafter --reviewer oracle", "no reviewer 'oracle'; there are rules, llm, command"),
        ("crafter --reviewer llm", "meta-model"),
        ("crafter --reviewer command", "command"),
        ("crafter --reviewer rules --reviewer-option depth=3", "takes no depth"),
        ("crafter --reviewer-option depth", "NAME=VALUE"),
        ("crafter --gate coin", "coin"),
        ("crafter --gate paper --batch 5 --error 0.1", "accepts whatever rose: leave out --batch, --error"),
        ("crafter --parents random", "best"),
        ("crafter --held-out 10001", "10001 is a gate seed and a held-out seed"),
        ("crafter --batch 20 --most-seeds 10", "more than the 10"),
        ("chess", "chess"),
        ("balrog", "name a game or a task"),
        ("crafter --scaffold nethack/v0", "plays nethack"),
        ("crafter --resume", "--run"),
        ("crafter --resume --run none", "no loop 'none'"),
    ],
)
def test_mistakes_are_told_before_anything_starts(arguments: str, message: str, tmp_path: Path) -> None:
    told = automem(tmp_path, f"loop1 {arguments} --model scripted")
    assert told.returncode == 2, told.stdout + told.stderr
    assert message in told.stderr and "Traceback" not in told.stderr
    assert not (tmp_path / "runs").exists()


def test_limits_of_a_review_that_are_not_named_are_left_to_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOMEM_RUNS", raising=False)
    found: list[Any] = []
    monkeypatch.setattr(forecast, "show", lambda made, config, console: found.append(config.reviewer))
    call = caller(monkeypatch, capfd, "loop1", "crafter", "--model", "scripted", "--dry-run")
    assert call()[0] == 0
    assert call("--review-turns", "7")[0] == 0
    whole, some = found
    assert (whole.turns, whole.tokens, whole.usd, whole.minutes) == (60, 2_000_000, None, 30.0)
    assert (some.turns, some.model_fields_set) == (7, {"kind", "model", "turns"})


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    arguments = f"loop1 crafter {SMALL.replace('--steps 25', '--steps 3000')} --run long"
    process = subprocess.Popen(
        [sys.executable, "-m", "automem.cli", *arguments.split()],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    traces = tmp_path / "runs" / "long" / "evaluations"
    deadline = time.monotonic() + 120
    while not any(traces.rglob("steps.jsonl.zst")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "go on with: automem loop1 crafter" in stderr and "--resume" in stderr and "Traceback" not in stderr
