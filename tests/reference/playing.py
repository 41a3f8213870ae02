"""What the tests of the reference revisions play with: their code, their memory folder, and whole episodes."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

from automem import memory as folder
from automem import scaffold, trace
from automem.episode import STEPS, EpisodeJob, play
from automem.game_pool import GamePool
from automem.hooks import Again, Memory, Step
from automem.hooks.reading import Reader
from automem.models.scripted.model import Scripted
from automem.ops import Op
from automem.records import StepRecord
from automem.sandbox import Sandbox, SandboxConfig


@cache
def code(ref: str) -> ModuleType:
    """The ``hooks.py`` of a scaffold, run in this process."""
    name = f"{ref.replace('/', '_')}_hooks"
    spec = importlib.util.spec_from_file_location(name, scaffold.find(ref) / "hooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def screens(game: str) -> dict[str, str]:
    """Observations of real games, by what there is to be seen."""
    held = json.loads((Path(__file__).parent / f"{game}.json").read_text())
    return {name: "\n".join(lines) for name, lines in held.items()}


def altered(text: str, *replacements: tuple[str, str]) -> str:
    """A screen with some of its text replaced, each of which has to be there."""
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new)
    return text


class Folder:
    """The memory folder of a scaffold, kept in memory alone, and what its hooks see of it."""

    def __init__(self, ref: str, files: Mapping[str, str] | None = None) -> None:
        loaded = scaffold.load(ref)
        specs = [file.spec() for file in loaded.schema.files]
        initial = {**loaded.initial, **(files or {})}
        self.memory = folder.Memory(None, specs, loaded.schema.limits.for_memory(), initial=initial)
        self.view = Memory(lambda question, *args: Reader(self.memory).answer(question, list(args)))

    def keep(self, asked: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Carry out what hooks ask; nothing of it may be refused."""
        for name, *arguments in asked:
            result = self.memory.run(Op(name, tuple(arguments)))
            assert result.ok, result.text
        return asked


class Player:
    """Hooks that are shown one screen after another, and the memory folder of their scaffold beside them."""

    def __init__(self, ref: str, task: str) -> None:
        self.folder = Folder(ref)
        self.hooks = code(ref).Hooks()
        self.hooks.reset(ref.partition("/")[0], task)
        self.number = 0
        self.history: tuple[str, ...] = ()

    def see(self, text: str, action: str | None = None, raw: str | None = None) -> dict[str, str]:
        """The texts that prompts show after an action led to this observation."""
        self.history = (*self.history, action)[-16:] if action else self.history
        self.step = Step(self.number, text, action, raw or action, self.history)
        self.number += 1
        return self.hooks.observe(self.step)

    def check(self, action: str) -> str | Again | None:
        return self.hooks.check_action(self.step, action)

    def maintain(self) -> list[tuple[str, ...]]:
        """What is asked of memory; it is carried out."""
        return self.folder.keep(self.hooks.maintain(self.step, self.folder.view))


def episode(ref: str, task: str, seed: int, steps: int, to: Path) -> list[StepRecord]:
    """The steps of an episode of the scripted player, its hooks in the sandbox. No hook of it may fail."""
    loaded = scaffold.load(ref)

    async def run() -> None:
        pool, sandbox = GamePool(1), Sandbox(SandboxConfig(call_seconds=20))
        try:
            await play(EpisodeJob(to, task, seed, steps, loaded.folder), loaded, Scripted(), pool, None, sandbox)
        finally:
            pool.close()
            await sandbox.close()

    asyncio.run(asyncio.wait_for(run(), 120))
    records, damage = trace.read(to / STEPS)
    assert damage is None
    failed = ("error", "lost", "off")
    assert [event for record in records for event in record.hooks if event.kind in failed] == []
    return records
