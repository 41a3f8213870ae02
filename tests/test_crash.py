"""An evaluation that is killed again and again, and resumed each time, ends like one that never was."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from automem import trace
from automem.records import StepRecord, Turn

ROOT = Path(__file__).resolve().parent.parent
LONG = ("eval", "crafter", "--model", "scripted", "--seeds", "301..304", "--steps", "400")
WITH_HOOKS = (
    "eval",
    "crafter",
    "--scaffold",
    "crafter/v1",
    "--model",
    "scripted",
    "--seeds",
    "301..302",
    "--steps",
    "90",
)


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "automem.cli", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def written(run: Path) -> int:
    """Bytes of all traces of a run."""
    return sum(path.stat().st_size for path in run.glob("episodes/*/*/steps.jsonl.zst"))


def without_times(record: StepRecord) -> StepRecord:
    def turns(phase: Sequence[Turn]) -> tuple[Turn, ...]:
        return tuple(replace(turn, seconds=0.0) for turn in phase)

    return replace(record, log=turns(record.log), plan=turns(record.plan))


def played(run: Path) -> dict[str, list[StepRecord]]:
    found = {}
    for path in sorted(run.glob("episodes/*/*/steps.jsonl.zst")):
        records, damage = trace.read(path)
        assert damage is None
        found[str(path.relative_to(run))] = [without_times(record) for record in records]
    return found


def summary(run: Path) -> Any:
    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if k not in ("run", "model_seconds", "seconds_per_step")}
        return value

    return strip(json.loads((run / "summary.json").read_text()))


def memory(run: Path) -> dict[str, bytes]:
    return {str(p.relative_to(run)): p.read_bytes() for p in sorted(run.glob("episodes/*/*/memory/*"))}


@pytest.mark.parametrize(("asked", "kills"), [(LONG, 20), (WITH_HOOKS, 4)], ids=["long", "with hooks"])
def test_killed_again_and_again_and_resumed_equals_never_killed(
    tmp_path: Path, asked: tuple[str, ...], kills: int
) -> None:
    assert start(tmp_path, *asked, "--run", "whole").wait(600) == 0
    total = written(tmp_path / "runs" / "whole")
    chosen = random.Random(0)
    run = tmp_path / "runs" / "killed"
    killed = 0
    for kill in range(kills):
        before = written(run)
        # A moment of its own for each kill: while it starts, or after so many more bytes of trace.
        wanted = chosen.randrange(0, 2 * total // kills) if kill % 5 else 0
        process = start(tmp_path, *asked, "--run", "killed", "--resume")
        while process.poll() is None and written(run) - before <= wanted and not (wanted == 0 and run.exists()):
            time.sleep(0.005)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
    assert killed == kills, "the evaluation ended before it could be killed so often; give it more to do"
    assert start(tmp_path, *asked, "--run", "killed", "--resume").wait(600) == 0
    assert summary(run) == summary(tmp_path / "runs" / "whole")
    assert played(run) == played(tmp_path / "runs" / "whole")
    assert memory(run) == memory(tmp_path / "runs" / "whole")
    assert (run / "run.toml").exists()
