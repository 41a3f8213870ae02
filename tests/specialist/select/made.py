"""Traces for tests of selection: real runs of `scripted`, and episodes whose replies a test writes itself."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from automem import evaluate, scaffold, trace
from automem.agent import Agent
from automem.episode import STEPS
from automem.memory import Memory
from automem.models.fixed import Fixed
from automem.records import StepRecord
from automem.runs import PlayedModel
from automem.scaffold import Scaffold
from automem.trace import EpisodeTrace, RunTrace
from specialist.candidate import Candidate, candidates

DONE = "<|DONE|><|END|>"

TOML = """
[[files]]
name = "places.txt"
kind = "map"
key = "a place"

[[files]]
name = "now.txt"
kind = "note"
pin = true

[[files]]
name = "grid_{block}.txt"
kind = "map"
key = "at {x},{y}"
block = 8
"""


def some_scaffold(folder: Path) -> Scaffold:
    """A Crafter scaffold with maps and a pinned note, in which everything can be written and deleted."""
    shutil.copytree(scaffold.find("crafter/v0"), folder)
    toml = (folder / "scaffold.toml").read_text()
    more = '"CREATE", "UPSERT", "UPSERT_MAP", "DELETE"]'
    (folder / "scaffold.toml").write_text(toml.replace('"CREATE"]', more) + TOML)
    return scaffold.load(str(folder))


class _Rules:
    task = "Crafter"
    actions: Mapping[str, str] = {"west": "go west", "east": "go east"}
    instructions = "go"
    default_action = "west"


class Made:
    """An episode of which a test writes the replies: agent, memory and trace are the real ones, the game is not."""

    def __init__(self, folder: Path, played: Scaffold) -> None:
        self.folder = folder / "Crafter" / "seed-1"
        self.folder.mkdir(parents=True)
        self._scaffold = played
        self._replies: list[str] = []
        files = [file.spec() for file in played.schema.files]
        memory = Memory(None, files, played.schema.limits.for_memory(), initial=played.initial)
        self._agent = Agent(Fixed(lambda _: self._replies.pop(0)), played, memory, _Rules())
        self._reached: dict[str, int] = {}
        self._writer = trace.TraceWriter(self.folder / STEPS)
        self.step()

    def step(
        self, *log: str, plan: Sequence[str] = (), action: str = "west", reached: str = "", seen: str = "nothing"
    ) -> int:
        """Play a step: replies of LOG (DONE if none is given), consulting replies of PLAN, the action.

        Args:
            reached: an achievement that the action reaches.
        Returns: its number.
        """
        number = self._agent.step
        self._replies = [*((log or (DONE,)) if number else ()), *plan, f"<|ACTION|>{action}<|END|>"]
        decision = asyncio.run(self._agent.decide(seen))
        assert not self._replies, f"step {number}: {self._replies} not asked for"
        if reached:
            self._reached[reached] = 1
        self._writer.append(
            StepRecord(
                number,
                seen,
                decision.log,
                decision.plan,
                decision.raw_action,
                decision.action,
                decision.invalid,
                decision.fallback,
                0.0,
                0.0,
                dict(self._reached),
                False,
                False,
                decision.warnings,
                self._agent.system if number == 0 else None,
            )
        )
        return number

    def rest(self, steps: int) -> None:
        """Play steps in which nothing happens."""
        for _ in range(steps):
            self.step()

    def episode(self) -> EpisodeTrace:
        """The episode, to ask."""
        self._writer.close()
        return EpisodeTrace(self.folder, self._scaffold)

    def candidates(self) -> list[Candidate]:
        """Its candidates."""
        return list(candidates("made", self.episode()))


class _Nobody:
    def __enter__(self) -> _Nobody:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None

    async def stepped(self, *_: object) -> None: ...


def play(name: str, task: str, version: str, seeds: str, steps: int) -> RunTrace:
    """A finished run of `scripted` in the folder of runs."""
    request = evaluate.Request(
        task, PlayedModel(name="scripted"), scaffolds=(version,), seeds=seeds, steps=steps, name=name
    )
    planned = evaluate.plan(request)
    model = evaluate.make_model(request.model, processes=1)
    run, _ = asyncio.run(evaluate.run(planned, False, model, _Nobody(), 2))  # type: ignore[arg-type]
    return RunTrace(run)
