"""A loop that is killed again and again, and resumed each time, ends with the lineage of one that never was."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from meta import storage
from meta.storage import LoopFolder

ROOT = Path(__file__).resolve().parent.parent.parent
KILLS = 10
LOOP = [
    "loop1",
    "crafter",
    "--model",
    "scripted",
    "--reviewer",
    "rules",
    "--steps",
    "120",
    "--iterations",
    "2",
    "--attempts",
    "1",
    "--continuations",
    "1",
    "--gate",
    "paper",
    "--most-seeds",
    "4",
    "--gate-seeds",
    "10000..10003",
    "--held-out",
    "20000..20001",
    "--shown",
    "2",
    "--workers",
    "2",
]


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "automem.cli", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def size(folder: Path) -> int:
    """Bytes and files: something that grows while a loop is at work."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in found if path.exists()) + len(found)


def grow(process: subprocess.Popen[bytes], folder: Path, by: int) -> None:
    """Wait until the folder has changed by so many bytes, or the process has ended."""
    before, deadline = size(folder), time.monotonic() + 120
    while process.poll() is None and abs(size(folder) - before) < by:
        assert time.monotonic() < deadline, "the loop stands still"
        time.sleep(0.01)


def lineage(loop: LoopFolder) -> list[tuple[Any, ...]]:
    return [
        (a.number, a.parent, a.identity, a.outcome, a.why, a.alpha, a.description, a.analysis, a.looks, a.findings)
        for a in loop.attempts()
    ]


@pytest.mark.slow
def test_ten_kills_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOMEM_RUNS", raising=False)
    assert start(tmp_path, *LOOP, "--run", "whole").wait() == 0
    whole = storage.load("whole")
    # Elsewhere, so that nothing can be taken from the first one; same name, so that versions are called the same.
    other = tmp_path / "other"
    other.mkdir()
    chance = random.Random(7)
    hit = 0
    total = size(whole.folder)
    while hit < KILLS:
        resume = ["--resume"] if (other / "runs" / "whole" / storage.LOOP).exists() else []
        process = start(other, *LOOP, "--run", "whole", *resume)
        grow(process, other, chance.randrange(1, max(2, total // KILLS)))
        ended = process.poll()
        if ended is not None:
            assert ended == 0
            break
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        hit += 1
    assert hit == KILLS, "the loop was over before it was killed often enough"
    resume = ["--resume"] if (other / "runs" / "whole" / storage.LOOP).exists() else []
    assert start(other, *LOOP, "--run", "whole", *resume).wait() == 0
    monkeypatch.chdir(other)
    again = storage.load("whole")
    assert lineage(again) == lineage(whole)
    then, now = whole.result(), again.result()
    assert then is not None and now is not None
    for data in (then, now):
        data["spent"].pop("seconds")
        for purpose in ("gate", "held_out"):
            for row in (data[purpose] or {}).get("behaviour", ()):
                if row["name"] == "seconds_per_step":
                    row.clear()
    assert then == now
