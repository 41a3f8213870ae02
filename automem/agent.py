"""One step of the agent, top to bottom, in the order in which it happens.

    observation -> LOG (from step 1): model <-> memory, at most log_turns
                -> PLAN: model <-> memory (read only), at most plan_turns -> action

LOG at step t records the outcome of the action of step t-1, because only the observation of
step t has shown it; PLAN at step t chooses the action of step t. The agent knows nothing of how
many episodes run or where the game lives: it gets an observation and returns a decision.
"""

from __future__ import annotations

import difflib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from automem import blocks, ops
from automem.conversation import Conversation
from automem.hooks import Step
from automem.memory import Memory
from automem.models.protocol import Model, Reply
from automem.records import Executed, Phase, Turn
from automem.scaffold import Scaffold

HISTORY = 16
"""Actions that a `Step` looks back on."""


class Rules(Protocol):
    """What the agent is told of its game: a part of `games.protocol.Game`, without the game."""

    task: str
    actions: Mapping[str, str]
    instructions: str
    default_action: str


class Listener(Protocol):
    """Somebody who watches an episode. Never part of what is played."""

    def turn(self, phase: Phase, turn: Turn) -> None:
        """A model has answered, and its operations have been run."""
        ...


@dataclass(frozen=True, slots=True)
class Decision:
    """What a step decided, and how.

    Attributes:
        action: what to play; always an action that the game has.
        raw_action: as the model wrote it; None when it committed none.
        invalid: how many actions it wrote that the game does not have.
        fallback: it committed none, and `action` is the game's default.
        log, plan: the turns.
        warnings: what was noticed about the memory folder or the context.
    """

    action: str
    raw_action: str | None
    invalid: int
    fallback: bool
    log: tuple[Turn, ...]
    plan: tuple[Turn, ...]
    warnings: tuple[str, ...]


class Agent:
    """A frozen task model, a scaffold and a memory folder, playing one episode."""

    def __init__(
        self,
        model: Model,
        scaffold: Scaffold,
        memory: Memory,
        rules: Rules,
        listener: Listener | None = None,
    ) -> None:
        self.model = model
        self.scaffold = scaffold
        self.memory = memory
        self.rules = rules
        self.listener = listener
        self.limits = scaffold.schema.limits
        self.enabled = frozenset(scaffold.schema.ops.enabled)
        self.step = 0
        self.history: deque[str] = deque(maxlen=HISTORY)
        self.raw_action: str | None = None
        self._warnings: list[str] = []
        self._fixed: dict[str, Any] = {
            "game": scaffold.game,
            "task": rules.task,
            "instructions": rules.instructions,
            "actions": blocks.actions(rules.actions),
            "files": blocks.file_reference(scaffold.schema.files),
            "operations": ops.reference(scaffold.schema.ops.enabled),
            "limits": self.limits.model_dump(),
        }
        self.system = scaffold.prompts.render("system.j2", self._fixed)
        self._loose = _loose_names(rules.actions)

    async def decide(self, observation: str) -> Decision:
        """LOG and PLAN for one observation. The action counts as played once this returns."""
        self._warnings = []
        log = await self._log(observation) if self.step > 0 else ()
        self._warnings += self.memory.flush()
        plan, action, raw, invalid = await self._plan(observation)
        played = action or self.rules.default_action
        self.played(played, raw)
        return Decision(played, raw, invalid, action is None, log, plan, tuple(self._warnings))

    def played(self, action: str, raw_action: str | None) -> None:
        """Count an action as played and go on to the next step (also used when a trace is replayed)."""
        self.history.append(action)
        self.raw_action = raw_action
        self.step += 1

    async def _log(self, observation: str) -> tuple[Turn, ...]:
        """Record the outcome of the last action: turns until DONE."""
        talk = self._converse("log", observation, self.limits.log_turns)
        while (reply := await talk.reply()) is not None:
            parsed = ops.parse(reply.text, "log", self.enabled)
            self._carry_out(talk, reply, parsed)
            if parsed.done:
                break
        self._note(talk)
        return tuple(talk.turns)

    async def _plan(self, observation: str) -> tuple[tuple[Turn, ...], str | None, str | None, int]:
        """Choose an action: turns, the action or None, how it was last written, how many were not the game's."""
        talk = self._converse("plan", observation, self.limits.plan_turns)
        action = raw = None
        invalid = 0
        while action is None and (reply := await talk.reply()) is not None:
            parsed = ops.parse(reply.text, "plan", self.enabled)
            problems: tuple[str, ...] = ()
            if parsed.action is not None:
                raw, action = parsed.action, self._action(parsed.action)
                if action is None:
                    invalid += 1
                    problems = (self._unknown_action(parsed.action),)
            self._carry_out(talk, reply, parsed, problems)
        self._note(talk)
        return tuple(talk.turns), action, raw, invalid

    def _converse(self, phase: Phase, observation: str, most: int) -> Conversation:
        values = self._values(phase, observation)
        return Conversation(self.model, self.scaffold.prompts, phase, self.system, values, most)

    def _note(self, talk: Conversation) -> None:
        if talk.cut_short is not None:
            self._warnings.append(talk.cut_short)

    def _carry_out(self, talk: Conversation, reply: Reply, parsed: ops.Parsed, problems: tuple[str, ...] = ()) -> None:
        """Run the operations of a reply, in the order in which they were written, and keep the turn."""
        most = self.limits.reply_ops
        executed = tuple(self._run(op) for op in parsed.ops[:most])
        if len(parsed.ops) > most:
            problems = (
                *problems,
                f"only the first {most} operations of a reply are run; {len(parsed.ops)} were written",
            )
        elif not (parsed.ops or parsed.errors or parsed.done or parsed.action is not None):
            problems = (*problems, f"no operation was found in this reply; {talk.phase.upper()} goes on")
        turn = Turn(
            model=reply.model,
            prompt=talk.prompt,
            text=reply.text,
            ops=executed,
            errors=(*parsed.errors, *problems),
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cached_tokens=reply.cached_tokens,
            cost=reply.cost,
            seconds=reply.seconds,
        )
        talk.turns.append(turn)
        if self.listener is not None:
            self.listener.turn(talk.phase, turn)

    def _run(self, op: ops.Op) -> Executed:
        result = self.memory.run(op)
        return Executed(
            name=op.name,
            args=op.args,
            span=op.span,
            label=op.label,
            result=result.text,
            ok=result.ok,
            found=result.found,
            added=result.bytes_added,
            duplicate=result.duplicate,
            truncated=result.truncated,
        )

    def _values(self, phase: Phase, observation: str) -> dict[str, Any]:
        last = self.history[-1] if self.history else None
        return {
            **self._fixed,
            "phase": phase.upper(),
            "step": Step(self.step, observation, last, self.raw_action, tuple(self.history)),
            "observation": blocks.observation(self.step, last, observation),
            "memory": blocks.memory_listing(self.memory.listing()),
            "pinned": blocks.pinned(self.memory.pinned()),
            "hooks": {},
        }

    def _action(self, written: str) -> str | None:
        """The game's action that was meant: the exact name, else one that differs in case or quotes only."""
        if written in self.rules.actions:
            return written
        return self._loose.get(_loosely(written))

    def _unknown_action(self, written: str) -> str:
        near = difflib.get_close_matches(written[:40], self.rules.actions, n=3) or list(self.rules.actions)[:3]
        return f"ACTION {written[:40]!r} is not an action of this game; near it are {', '.join(near)}"


def _loosely(name: str) -> str:
    return name.strip().strip("\"'`.").casefold()


def _loose_names(actions: Mapping[str, str]) -> dict[str, str]:
    """Loosely written name -> action, for names that stay unambiguous."""
    loose: dict[str, str] = {}
    twice = set()
    for name in actions:
        key = _loosely(name)
        if key in loose:
            twice.add(key)
        loose[key] = name
    return {key: name for key, name in loose.items() if key and key not in twice}
