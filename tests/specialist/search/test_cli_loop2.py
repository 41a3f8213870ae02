"""``automem loop2`` from outside: what it says before anything starts, and how it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from specialist.search import forecast
from specialist.search.settings import SearchConfig
from tests.commands import caller

BASE = ("loop2", "crafter", "--gameplay", "scripted", "--scaffold", "crafter/small", "--recipe", "tiny")


def automem(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a user would."""
    return subprocess.run(
        [sys.executable, "-m", "automem.cli", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "AUTOMEM_RUNS": str(folder / "runs"), "COLUMNS": "200", "NO_COLOR": "1"},
        check=False,
    )


def test_a_dry_run_says_what_will_be_done_and_does_nothing(tmp_path: Path) -> None:
    done = automem(tmp_path, *BASE, "--steps", "20", "--width", "3", "--most-seeds", "4", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "collect: 4 episodes of at most 20 steps, seeds 30000 to 30003" in done.stdout
    assert "select: 8 examples by rules" in done.stdout
    assert "3 for 0.33 of its epochs and 1 for 1 of its epochs" in done.stdout
    assert "at most 32,768 tokens an epoch" in done.stdout and "230,400 weights are trained" in done.stdout
    assert "GiB of memory" in done.stdout and "-m specialist.train" in done.stdout
    assert "rank 4 on qv" in done.stdout and "at most 8 gate episodes a round" in done.stdout
    assert not (tmp_path / "runs").exists()


def test_a_model_that_we_serve_acts_and_teaches_where_nobody_else_is_named(tmp_path: Path) -> None:
    done = automem(tmp_path, "loop2", "nethack", "--model", "Qwen/Qwen2.5-32B-Instruct", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "Qwen/Qwen2.5-32B-Instruct does the memory work, Qwen/Qwen2.5-32B-Instruct acts" in done.stdout
    other = automem(tmp_path, "loop2", "nethack", "--model", "Qwen/One", "--gameplay", "Qwen/Other", "--dry-run")
    assert other.returncode == 2 and "'Qwen/Other': LiteLLM knows no provider" in other.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--recipe", "nowhere"), "no recipe 'nowhere'"),
        (("--collect-seeds", "50000..50003"), "seed 50000 is a training seed"),
        (("--gate-seeds", "50000..50200"), "is a gate seed and a held-out seed"),
        (("--decider", "fortune"), "no decider 'fortune'; there are halving"),
        (("--engine", "fortune"), "no engine 'fortune'; there are rules"),
        (("--model", "no such model"), "is no model that AutoMem can serve"),
        (("--device", "abacus"), "device"),
        (("--processes", "999"), "999 processes were asked for"),
        (("--scaffold", "nethack/v0"), "plays nethack"),
        (("--resume",), "--resume needs the name"),
        (
            ("--traces", "r", "--teacher", "scripted", "--collect-seeds", "1", "--collect-steps", "9"),
            "with --traces nothing is collected: leave out --teacher, --collect-seeds, --collect-steps",
        ),
        (("--traces", "r", "--consult-turns", "2"), "leave out --consult-turns"),
        (
            ("--no-gate", "--most-seeds", "4", "--batch", "2", "--smallest-gain", "0.1", "--gate-seeds", "1,2"),
            "no gate seeds are played: leave out --most-seeds, --batch, --smallest-gain, --gate-seeds",
        ),
        (("--no-gate", "--margin", "0.1"), "leave out --margin"),
    ],
)
def test_what_cannot_work_is_said_before_anything_starts(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    done = automem(tmp_path, *BASE, *words)
    assert done.returncode == 2, done.stdout
    assert told in " ".join(done.stderr.split()), done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("lora", "told"),
    [("rank = 700", "700"), ('targets = ["w_proj"]', "has no w_proj to adapt")],
)
def test_a_recipe_that_could_not_be_trained_or_served_is_refused_before_anything_is_collected(
    tmp_path: Path, lora: str, told: str
) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(f"[lora]\n{lora}\n")
    done = automem(tmp_path, *BASE, "--recipe", str(recipe))
    assert done.returncode == 2, done.stdout
    assert "nothing can be trained here" in done.stderr and told in " ".join(done.stderr.split())
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., SearchConfig]:
    """From the words of a command to the settings that it makes; nothing is begun."""
    monkeypatch.setenv("AUTOMEM_RUNS", str(tmp_path / "runs"))
    found: list[SearchConfig] = []
    monkeypatch.setattr(forecast, "show", lambda config, console: found.append(config))
    call = caller(monkeypatch, capfd)

    def made(*words: str) -> SearchConfig:
        code, _, told = call(*BASE, *words, "--dry-run")
        assert code == 0, told
        return found[-1]

    return made


def test_an_address_is_that_of_a_server_of_the_users_own(settings: Callable[..., SearchConfig]) -> None:
    address = "http://127.0.0.1:9/v1"
    others = settings("--teacher", "hosted_vllm/large", "--api-base", address)
    assert (others.base.api_base, others.collect.teacher.api_base) == ("", address)
    assert settings("--server", "hosted_vllm/base", "--api-base", address).base.api_base == address


def test_max_tokens_bounds_whoever_replies(settings: Callable[..., SearchConfig]) -> None:
    for words in ((), ("--teacher", "smollm2")):
        found = settings("--max-tokens", "9", *words)
        assert [m.max_tokens for m in (found.base, found.gameplay, found.collect.teacher)] == [9, 9, 9]
