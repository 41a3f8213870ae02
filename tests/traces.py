"""Traces to test with: from real episodes, and written step by step without a game."""

from __future__ import annotations

import asyncio
import itertools
import random
import shutil
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from automem import evaluate, scaffold, trace
from automem.episode import STEPS, EpisodeJob
from automem.episode import play as play_episode
from automem.game_pool import GamePool, RemoteGame
from automem.memory import Memory
from automem.models.fixed import Fixed
from automem.models.protocol import Message, ModelUnavailable
from automem.ops import Op
from automem.records import Executed, HookEvent, Prompt, StepRecord, Turn
from automem.runs import PlayedModel, Run
from automem.sandbox import Sandbox, SandboxConfig
from automem.scaffold import Scaffold
from automem.trace.tally import Tally

REPLIES = (
    "<|APPEND|>map_notes.txt|{n} tree \x1b[31mred\x1b[0m [bold]<|END|>",
    "<|WRITE|>goals.txt|goal {n}<|END|><|MARK|>a|b{n}<|END|>",
    "<|APPEND|>goals.txt|more {n}<|END|><|SEARCH|>*|tree<|END|>",
    "<|CREATE|>new{n}.txt<|END|><|APPEND|>nowhere.txt|two\nlines<|END|>",
    "<|UPSERT_MAP|>{n},3|water<|END|><|UPSERT|>places.txt|lake|{n}<|END|>",
    "<|DELETE|>map_notes.txt|0 tree<|END|><|DELETE|>goals.txt<|END|>",
)

HOOKS = """
    from automem.hooks import append, upsert, write

    class Hooks:
        def observe(self, step):
            if step.number == 4:
                raise ValueError("[red]no\\x1b[31m")
        def maintain(self, step, memory):
            if step.number % 3 == 0:
                return [write("state.txt", f"step {step.number}"), append("a/b", "x")]
        def check_action(self, step, action):
            return "Noop" if action == "go" else None
        def op_MARK(self, args, memory):
            return f"marked {args}", [append("marks.txt", args[0]), upsert("places.txt", args[0], "marked")]
"""

TOML = """
[[ops.own]]
name = "MARK"
args = "word|word"
meaning = "remember words"

[[files]]
name = "places.txt"
kind = "map"
key = "a place"
describe = "places"

[[files]]
name = "grid_{block}.txt"
kind = "map"
key = "{x},{y}"
block = 8
describe = "what is where"

[[files]]
name = "marks.txt"
kind = "log"
max_lines = 2
describe = "marks"

[hooks]
shows = []
"""


def mapping_scaffold(folder: Path) -> Scaffold:
    """A Crafter scaffold with maps, a short log, hooks and an own operation."""
    shutil.copytree(scaffold.find("crafter/v0"), folder)
    toml = (folder / "scaffold.toml").read_text()
    enabled = '"CREATE", "UPSERT", "UPSERT_MAP", "DELETE"]\n'
    (folder / "scaffold.toml").write_text(toml.replace('"CREATE"]', enabled) + TOML)
    (folder / "hooks.py").write_text(textwrap.dedent(HOOKS))
    return scaffold.load(str(folder))


def player() -> Fixed:
    """Answers by a fixed random series."""
    numbers = itertools.count()

    def rule(asked: Sequence[Message]) -> str:
        n = next(numbers)
        chosen = random.Random(n)
        if "# LOG" in asked[1]["content"]:
            return f"{chosen.choice(REPLIES).format(n=n)}<|DONE|><|END|>"
        return f"<|ACTION|>{chosen.choice(['Move West', 'Do', 'go', 'nonsense'])}<|END|>"

    return Fixed(rule)


@dataclass
class Live:
    """Keeps the memory folder of every step as it was when the episode was played."""

    folders: list[dict[str, str]] = field(default_factory=list)

    def turn(self, *_: object) -> None:
        """Nothing to keep."""

    async def stepped(self, job: EpisodeJob, game: RemoteGame, memory: Memory, record: StepRecord) -> None:
        self.folders.append(memory.snapshot())


def failing(calls: int) -> Fixed:
    """`player`, out of reach after so many calls."""
    inner, left = player(), [calls]

    def rule(asked: object) -> str:
        left[0] -= 1
        if left[0] < 0:
            raise ModelUnavailable("gone")
        return inner._rule(asked)  # type: ignore[arg-type]

    return Fixed(rule)


def play(folder: Path, loaded: Scaffold, steps: int, model: Fixed | None = None, live: Live | None = None) -> Live:
    """Play an episode of Crafter."""
    live = live or Live()

    async def once() -> None:
        pool, sandbox = GamePool(1), Sandbox(SandboxConfig(call_seconds=5))
        try:
            job = EpisodeJob(folder, "Crafter", 5, steps, loaded.folder)
            await play_episode(job, loaded, model or player(), pool, live, sandbox)
        finally:
            pool.close()
            await sandbox.close()

    asyncio.run(asyncio.wait_for(once(), 120))
    return live


class Written:
    """An episode that is written step by step: memory and trace are real, game and model are made up.

    Attributes:
        folders: the memory folder at each step, as it stood when PLAN began.
        records: the steps.
    """

    def __init__(self, folder: Path, loaded: Scaffold) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.scaffold = loaded
        files = [file.spec() for file in loaded.schema.files]
        self.memory = Memory(None, files, loaded.schema.limits.for_memory(), initial=loaded.initial)
        self.records: list[StepRecord] = []
        self.folders: list[dict[str, str]] = []
        self.tally = Tally()
        self.writer = trace.TraceWriter(folder / STEPS, self.memory, loaded.identity, self.tally)

    def step(
        self, ops: Sequence[tuple[str, ...]] = (), maintained: Sequence[tuple[str, ...]] = (), note: str = ""
    ) -> None:
        """Write a step in which LOG and `maintain` do these things."""
        number = len(self.records)
        done = tuple(self._run(*op) for op in ops)
        turn = Turn(
            "fixed", Prompt("before ", "observation", f" after {note}"), f"reply {note}", done, (), 10, 5, 2, None, 0.5
        )
        kept = tuple(self._run(*op, by="maintain") for op in maintained)
        events = (HookEvent(0, "maintain", "error", note),) if note else ()
        record = StepRecord(
            number, f"observation {number} {note}", (turn,), (turn,), "west", "Move West", 0, False, 0.5,
            number / 100, {"wood": number}, False, False, (), "be good" if number == 0 else None, kept, events,
        )  # fmt: skip
        self._tell(record.observation)
        self.folders.append(self.memory.snapshot())
        self.records.append(record)
        self.writer.append(record)

    def _run(self, name: str, *args: str, by: str = "") -> Executed:
        result = self.memory.run(Op(name, args))
        return Executed(name, args, (0, 9), f"{name} {args}", result.text, result.ok, result.found, by=by)

    def _tell(self, next_observation: str) -> None:
        """Tell the tally of the last step, unless it was told."""
        if self.records and self.tally.steps < len(self.records):
            self.tally.add(self.records[-1], next_observation)

    def reopen(self) -> None:
        """Close the writer and go on with another one."""
        self.writer.close()
        self.writer = trace.TraceWriter(self.folder / STEPS, self.memory, self.scaffold.identity, self.tally)

    def resume(self) -> None:
        """Go on with another writer and another tally, as an episode does that was killed."""
        if self.writer._index is not None:
            self.writer._index._give_up()
        self.writer.close()
        self.tally = Tally()
        for record, after in pairwise(self.records):
            self.tally.add(record, after.observation)
        self.writer = trace.TraceWriter(self.folder / STEPS, self.memory, self.scaffold.identity, self.tally)

    def asked(self) -> trace.EpisodeTrace:
        """The episode, to ask."""
        return trace.EpisodeTrace(self.folder, self.scaffold)


def a_run(name: str, seeds: str = "7..8", steps: int = 12, task: str = "crafter") -> Run:
    """A run of `scripted` in the runs folder, finished."""
    request = evaluate.Request(task, PlayedModel(name="scripted"), seeds=seeds, steps=steps, name=name)
    planned = evaluate.plan(request)
    model = evaluate.make_model(request.model, processes=1)

    class Nobody:
        def __enter__(self) -> Nobody:
            return self

        def __exit__(self, *_: object) -> None: ...

        def __getattr__(self, name: str) -> Callable[..., None]:
            return lambda *_: None

        async def stepped(self, *_: object) -> None: ...

    run, _ = asyncio.run(evaluate.run(planned, False, model, Nobody(), 2))  # type: ignore[arg-type]
    return run
