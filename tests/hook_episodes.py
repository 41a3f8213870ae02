"""Scaffolds with hooks, and their episodes in one sandbox."""

from __future__ import annotations

import asyncio
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from automem import scaffold, trace
from automem.episode import STEPS, EpisodeJob, EpisodeResult, play
from automem.game_pool import GamePool
from automem.models.fixed import Fixed
from automem.models.protocol import Message, ModelUnavailable
from automem.records import StepRecord
from automem.sandbox import Sandbox, SandboxConfig
from automem.scaffold import Scaffold

GO = "<|ACTION|>Move West<|END|>"
Child = Callable[..., Scaffold]

OWN = """
[[ops.own]]
name = "MARK"
args = "word|word"
meaning = "remember words"

[[ops.own]]
name = "LATER"
meaning = "in LOG only"
phase = "log"
"""


class Stage:
    """Game processes and a sandbox, on an event loop of their own, for many episodes one after another."""

    def __init__(self, runner: asyncio.Runner, pool: GamePool, sandbox: Sandbox) -> None:
        self._runner = runner
        self._pool = pool
        self._sandbox = sandbox

    def play(
        self, folder: Path, loaded: Scaffold, model: Fixed, steps: int = 8
    ) -> tuple[EpisodeResult, list[StepRecord]]:
        """An episode of Crafter, to its end or to the error that ends it."""
        job = EpisodeJob(folder, "Crafter", 5, steps, loaded.folder)
        playing = play(job, loaded, model, self._pool, None, self._sandbox)
        result = self._runner.run(asyncio.wait_for(playing, 120))
        found, damage = trace.read(folder / STEPS)
        assert damage is None
        return result, found


@contextmanager
def staged(call_seconds: float = 10.0) -> Iterator[Stage]:
    """A stage. Hooks that do not hang on purpose have time enough, however busy the machine is."""
    with asyncio.Runner() as runner:
        pool, sandbox = GamePool(1), Sandbox(SandboxConfig(call_seconds=call_seconds, losses=2))
        try:
            yield Stage(runner, pool, sandbox)
        finally:
            pool.close()
            runner.run(sandbox.close())


def write_child(folder: Path, hooks: str, shows: Sequence[str] = (), own: str = "") -> Scaffold:
    """A Crafter scaffold with these hooks, texts and own operations."""
    shutil.copytree(scaffold.find("crafter/v0"), folder)
    toml = (folder / "scaffold.toml").read_text().replace('"CREATE"]', f'"CREATE"]\n{own}')
    (folder / "scaffold.toml").write_text(f"{toml}\n[hooks]\nshows = {list(shows)}\n")
    for name in ("log.j2", "plan.j2"):
        with (folder / "prompts" / name).open("a") as file:
            file.writelines(f"\n{shown}=[{{{{ hooks.{shown} }}}}]" for shown in shows)
    (folder / "hooks.py").write_text(textwrap.dedent(hooks))
    return scaffold.load(str(folder))


def follow(plan: Sequence[str] = (), log: Sequence[str] = (), fail_at: int | None = None) -> Fixed:
    """Answers each phase with these replies in turn, then with GO and DONE. Fails at a call."""
    calls: Iterator[int] = iter(range(10**6))

    def rule(asked: Sequence[Message]) -> str:
        if next(calls) == fail_at:
            raise ModelUnavailable("gone")
        turn = len(asked) // 2 - 1
        if "# LOG" in asked[1]["content"]:
            return log[turn] if turn < len(log) else "<|DONE|><|END|>"
        return plan[turn] if turn < len(plan) else GO

    return Fixed(rule)


def plan_prompt(record: StepRecord) -> str:
    return record.plan[0].prompt.before + record.plan[0].prompt.after
