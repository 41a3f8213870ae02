"""Prompts for the scripted player of NetHack and MiniHack, made by the real scaffolds and the real agent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import games
from automem import blocks, ops
from automem import scaffold as scaffolds
from automem.agent import Agent
from automem.memory import Memory
from automem.models.protocol import Message, Reply
from automem.models.scripted.nethack import play
from automem.models.scripted.reading import Call, PlannedFile, read_briefing, read_call

ACTIONS = dict.fromkeys(("north", "south", "east", "west", "search", "kick", "pray", "esc", "down"), "an action")
OPERATIONS = ("READ", "SEARCH", "TAIL", "COUNT", "APPEND", "WRITE", "UPSERT")


def observation(rows: Sequence[str], x: int, y: int, message: str = "", seen: str = "", top: int = 1) -> str:
    """A small observation: `rows` are drawn from terminal row `top` on, the player is at x, y."""
    drawn = [""] * (top - 1) + list(rows)
    drawn += [""] * (21 - len(drawn))
    drawn += ["Agent the Stripling", "Dlvl:2 $:0 HP:12(12) Pw:1(1) AC:6 Xp:1/0 T:20"]
    shown = "\n".join(row.ljust(80) for row in drawn)
    text = f"message:\n{message}\n\nlanguage observation:\n{seen}\n\ncursor:\nYourself a valkyrie\n(x={x}, y={y})\n\n"
    return f"{text}map:\n{shown}\n\ninventory:\na: a +1 long sword (weapon in hand)\n"


def call(text: str, phase: str = "plan", files: Sequence[PlannedFile] = (), **facts) -> Call:
    """One call about an observation, with the files that a scaffold plans for."""
    system = "\n".join([blocks.actions(ACTIONS), blocks.file_reference(_shown(files)), ops.reference(OPERATIONS)])
    defaults = {"step": 7, "last_action": "east"}
    return Call(phase=phase, observation=text, briefing=read_briefing(system), **{**defaults, **facts})


def _shown(files: Sequence[PlannedFile]) -> list:
    @dataclass
    class Shown:
        name: str
        kind: str
        describe: str
        entry: str
        key: str
        block: int
        pin: bool
        changes: bool

    return [Shown(f.name, f.kind, f.describe, f.entry, f.key, f.block, f.pinned, f.changes) for f in files]


@dataclass
class Recorder:
    """The player as a model; keeps what it was asked and what it answered."""

    name: str = "scripted"
    asked: list[tuple[list[Message], str]] = field(default_factory=list)

    async def complete(self, messages: Sequence[Message]) -> Reply:
        text = play(read_call(messages))
        self.asked.append(([dict(message) for message in messages], text))
        return Reply(text, 0, 0, 0, None, 0.0, self.name)


@dataclass(frozen=True)
class Played:
    """A finished game."""

    progression: float
    steps: int
    achievements: Mapping[str, int]
    memory: Memory
    asked: list[tuple[list[Message], str]]
    errors: tuple[str, ...]


def play_game(task: str, seed: int, steps: int, ref: str = "minihack/v0", forget: bool = False) -> Played:
    """Play a real game through the real agent; `forget` empties the memory before every step."""
    loaded = scaffolds.load(ref)
    specs, limits = [f.spec() for f in loaded.schema.files], loaded.schema.limits.for_memory()
    memory = Memory(None, specs, limits)
    game = games.make(task, max_steps=steps)
    model = Recorder()
    agent = Agent(model, loaded, memory, game)
    text, count, done = game.reset(seed).text, 0, False
    errors: list[str] = []
    while not done:
        if forget:
            agent.memory = Memory(None, specs, limits)
        decision = asyncio.run(agent.decide(text))
        errors += [error for turn in (*decision.log, *decision.plan) for error in turn.errors]
        transition = game.step(decision.action)
        text, done, count = transition.observation.text, transition.done, count + 1
    progress = game.progress()
    game.close()
    return Played(progress.progression, count, progress.achievements, agent.memory, model.asked, tuple(errors))


def log(entry: str, **changes) -> PlannedFile:
    """A planned log with this entry."""
    return replace(PlannedFile("notes.txt", "log", "what happened", entry), **changes)
