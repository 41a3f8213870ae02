"""The memory agent: a scaffold, a memory folder that it reads and writes, and perhaps a specialist for that."""

from __future__ import annotations

from typing import ClassVar

from automem.agent import Agent, Decision, Listener, Rules, Specialist
from automem.hooks.session import Hooks, HookSession, NoHooks
from automem.memory import Memory
from automem.models.protocol import Model
from automem.records import StepRecord
from automem.sandbox import Sandbox
from automem.scaffold import Scaffold, ScaffoldError
from games.protocol import Observation


class MemoryAgent:
    """Plays an episode with `automem.agent.Agent` (see `automem.agents.protocol.Player`)."""

    model: ClassVar[str] = ""

    def __init__(
        self,
        rules: Rules,
        model: Model,
        scaffold: Scaffold,
        sandbox: Sandbox | None = None,
        listener: Listener | None = None,
        specialist: Specialist | None = None,
    ) -> None:
        """Raises `automem.scaffold.ScaffoldError` when the scaffold has code and there is no sandbox to run it in."""
        files = [file.spec() for file in scaffold.schema.files]
        self.memory = Memory(None, files, scaffold.schema.limits.for_memory(), initial=scaffold.initial)
        self._hooks = _hooks(rules.task, scaffold, sandbox)
        self._agent = Agent(model, scaffold, self.memory, rules, listener, self._hooks, specialist)

    @property
    def step(self) -> int:
        """Steps decided so far."""
        return self._agent.step

    @property
    def system(self) -> str:
        """The system message."""
        return self._agent.system

    async def decide(self, observation: Observation, past: StepRecord | None = None) -> Decision:
        """LOG and PLAN; see `automem.agent.Agent.decide`."""
        return await self._agent.decide(observation.text, past)

    async def close(self) -> None:
        """Close the memory folder and end the scaffold's code."""
        self.memory.close()
        await self._hooks.close()


def _hooks(task: str, scaffold: Scaffold, sandbox: Sandbox | None) -> Hooks:
    if scaffold.hooks is None:
        return NoHooks()
    if sandbox is None:
        raise ScaffoldError(f"{scaffold.folder}: has a hooks.py, and there is no sandbox to run it in")
    schema = scaffold.schema
    return HookSession(sandbox, scaffold.hooks, schema.hooks, schema.ops.own, scaffold.game, task)
