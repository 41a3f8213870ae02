"""Many episodes at once: one that fails does not stop the others, and what stops all is raised once."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from automem import scaffold
from automem.episode import RESULT, STEPS, EpisodeJob
from automem.errors import UserError
from automem.executor import LocalExecutor, Outcome
from automem.models.fixed import Fixed
from automem.models.protocol import Message, ModelUnavailable
from automem.progress import Progress
from automem.trace import TraceWriteFailed, TraceWriter

GO = "<|ACTION|>Move West<|END|>"


def rule(messages: Sequence[Message]) -> str:
    return f"<|DONE|><|END|>{GO}" if "<|DONE|>" in messages[1]["content"].rpartition("===")[2] else GO


def jobs(folder: Path, seeds: range, steps: int = 4) -> list[EpisodeJob]:
    root = scaffold.find("crafter/v0")
    return [EpisodeJob(folder / str(seed), "Crafter", seed, steps, root) for seed in seeds]


def run(model: Fixed, asked: list[EpisodeJob], concurrency: int = 4) -> list[Outcome]:
    async def collect() -> list[Outcome]:
        executor = LocalExecutor(model, lambda path: scaffold.load(str(path)), concurrency, 2)
        return [outcome async for outcome in executor.run(asked)]

    return asyncio.run(asyncio.wait_for(collect(), 120))


def test_all_jobs_are_played_whatever_the_concurrency(tmp_path: Path) -> None:
    for concurrency in (1, 3, 50):
        outcomes = run(Fixed(rule), jobs(tmp_path / str(concurrency), range(5)), concurrency)
        assert sorted(o.job.seed for o in outcomes) == list(range(5))
        assert all(o.result is not None and o.result.steps == 4 for o in outcomes)


def test_an_episode_whose_model_goes_away_is_reported_and_goes_on_later(tmp_path: Path) -> None:
    def moody(messages: Sequence[Message]) -> str:
        # Seed 1 starts in another place than the others: its model is gone for good.
        if moody.gone in messages[1]["content"]:  # type: ignore[attr-defined]
            raise ModelUnavailable("the server went away")
        return rule(messages)

    probe = run(Fixed(rule), jobs(tmp_path / "probe", range(1, 2), 1))[0].result
    assert probe is not None
    from automem import trace

    moody.gone = trace.read(tmp_path / "probe" / "1" / STEPS)[0][0].observation  # type: ignore[attr-defined]
    outcomes = {o.job.seed: o for o in run(Fixed(moody), jobs(tmp_path / "run", range(3)))}
    assert outcomes[1].result is None and "the server went away" in (outcomes[1].error or "")
    assert outcomes[0].result is not None and outcomes[2].result is not None
    assert not (tmp_path / "run" / "1" / RESULT).exists()
    again = run(Fixed(rule), jobs(tmp_path / "run", range(3)))
    assert all(o.result is not None for o in again)


def test_a_damaged_result_fails_its_episode_only(tmp_path: Path) -> None:
    run(Fixed(rule), jobs(tmp_path, range(3)))
    (tmp_path / "1" / RESULT).write_text("{")
    outcomes = {o.job.seed: o for o in run(Fixed(rule), jobs(tmp_path, range(3)))}
    assert outcomes[1].result is None and str(tmp_path / "1" / RESULT) in (outcomes[1].error or "")
    assert outcomes[0].result is not None and outcomes[2].result is not None


def test_a_result_of_another_episode_is_not_counted(tmp_path: Path) -> None:
    run(Fixed(rule), jobs(tmp_path, range(2)))
    (tmp_path / "1" / RESULT).write_bytes((tmp_path / "0" / RESULT).read_bytes())
    outcomes = {o.job.seed: o for o in run(Fixed(rule), jobs(tmp_path, range(2)))}
    assert outcomes[1].result is None and "another episode (Crafter, seed 0" in (outcomes[1].error or "")


def test_a_full_disk_is_raised_once_and_leaves_no_task_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(self: TraceWriter, record: object) -> None:
        raise TraceWriteFailed("no space left")

    monkeypatch.setattr(TraceWriter, "append", full)
    with pytest.raises(UserError, match="no space left"):
        run(Fixed(rule), jobs(tmp_path, range(6)))
    assert "never retrieved" not in caplog.text
    assert not list(tmp_path.rglob(RESULT))


def test_what_a_server_says_is_shown_and_not_obeyed() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)
    job = EpisodeJob(Path("x"), "Crafter", 1, 4, Path("s"))
    with console.capture() as shown:
        Progress(console).ended(Outcome(job, None, "bad [/INST] and \x1b]0;owned\x07 and \x9b31m"))
    assert "bad [/INST] and" in shown.get()
    assert "\x1b]0" not in shown.get() and "\x9b" not in shown.get() and "\x07" not in shown.get()
