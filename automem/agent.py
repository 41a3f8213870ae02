"""One step of the agent, top to bottom, in the order in which it happens.

    observation -> hooks.observe -> LOG (from step 1): model <-> memory, at most log_turns
                -> hooks.maintain
                -> PLAN: model <-> memory (read only), at most plan_turns -> action
                -> hooks.check_action -> the game

With a memory specialist, LOG and the consulting part of PLAN are its; the model is then handed what was found
and commits the action.

LOG at step t records the outcome of the action of step t-1, because only the observation of
step t has shown it; PLAN at step t chooses the action of step t. The agent knows nothing of how
many episodes run or where the game lives: it gets an observation and returns a decision.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from automem import blocks, ops
from automem.actions import Actions
from automem.conversation import Conversation
from automem.hooks import Step
from automem.hooks.session import Hooks, NoHooks
from automem.memory import Memory
from automem.models.protocol import Model, Reply
from automem.records import Executed, HookEvent, Phase, StepRecord, Turn
from automem.replay import RecordedModel
from automem.scaffold import Scaffold
from automem.vocabulary import one_line

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
class Specialist:
    """A second model that does all memory work of an episode.

    Attributes:
        model: answers in LOG, and in PLAN until memory was consulted.
        consult_turns: replies of a PLAN phase in which it may read, 1 or more; the scaffold's limit holds, too.
    """

    model: Model
    consult_turns: int = 1


@dataclass(frozen=True, slots=True)
class Decision:
    """What a step decided, and how.

    Attributes:
        action: what to play; always an action that the game has.
        raw_action: as the model wrote it; None when it committed none.
        invalid: how many actions it wrote that the game does not have.
        fallback: it committed none, and `action` is the game's default.
        log, plan: the turns.
        warnings: what was noticed about the memory folder, the context or a template.
        maintained: operations of the scaffold's `maintain`, as they were run.
        hooks: what the scaffold's hooks did beyond answering.
    """

    action: str
    raw_action: str | None
    invalid: int
    fallback: bool
    log: tuple[Turn, ...]
    plan: tuple[Turn, ...]
    warnings: tuple[str, ...]
    maintained: tuple[Executed, ...] = ()
    hooks: tuple[HookEvent, ...] = ()


class Agent:
    """A frozen task model, a scaffold and a memory folder, playing one episode."""

    def __init__(
        self,
        model: Model,
        scaffold: Scaffold,
        memory: Memory,
        rules: Rules,
        listener: Listener | None = None,
        hooks: Hooks | None = None,
        specialist: Specialist | None = None,
    ) -> None:
        self.model = model
        self.specialist = specialist
        self.scaffold = scaffold
        self.memory = memory
        self.rules = rules
        self.listener = listener
        self.hooks = hooks or NoHooks()
        self.limits = scaffold.schema.limits
        self.enabled = frozenset(scaffold.schema.ops.names)
        self.own = {operation.name: operation for operation in scaffold.schema.ops.own}
        self.step = 0
        self.history: deque[str] = deque(maxlen=HISTORY)
        self.raw_action: str | None = None
        self._warnings: list[str] = []
        self._past: StepRecord | None = None
        self._texts: dict[str, str] = dict.fromkeys(scaffold.schema.hooks.shows, "")
        self._fixed: dict[str, Any] = {
            "game": scaffold.game,
            "task": rules.task,
            "instructions": rules.instructions,
            "actions": blocks.actions(rules.actions),
            "files": blocks.file_reference(scaffold.schema.files),
            "operations": ops.reference(
                scaffold.schema.ops.enabled, {name: own.reference for name, own in self.own.items()}
            ),
            "limits": self.limits.model_dump(),
            "specialist": specialist is not None,
        }
        self.system = scaffold.prompts.render("system.j2", self._fixed)
        self._actions = Actions(rules.actions)

    async def decide(self, observation: str, past: StepRecord | None = None) -> Decision:
        """LOG and PLAN for one observation. The action counts as played once this returns.

        With `past`, a recorded step, everything happens again with the recorded replies and hook answers:
        memory, hooks and agent come to where they were, and no model is asked.
        """
        self._warnings, self._past = [], past
        await self.hooks.begin(past)
        step = self._view(observation)
        self._texts = await self.hooks.observe(step)
        log = await self._log(observation) if self.step > 0 else ()
        maintained = self._carry_out_for("maintain", await self.hooks.maintain(step, self.memory))
        self._warnings += self.memory.flush()
        plan, action, raw, invalid = await self._plan(observation)
        played = action or self.rules.default_action
        self.history.append(played)
        self.raw_action = raw
        self.step += 1
        return Decision(
            action=played,
            raw_action=raw,
            invalid=invalid,
            fallback=action is None,
            log=log,
            plan=plan,
            warnings=tuple(dict.fromkeys(self._warnings)),
            maintained=maintained,
            hooks=tuple(self.hooks.events),
        )

    async def _log(self, observation: str) -> tuple[Turn, ...]:
        """Record the outcome of the last action: turns until DONE."""
        talk = self._converse("log", observation, self.limits.log_turns)
        while (reply := await talk.reply()) is not None:
            parsed = ops.parse(reply.text, "log", self.enabled)
            await self._carry_out(talk, reply, parsed)
            if parsed.done:
                break
        self._warnings += talk.warnings
        return tuple(talk.turns)

    async def _plan(self, observation: str) -> tuple[tuple[Turn, ...], str | None, str | None, int]:
        """Choose an action: turns, the action or None, how it was last written, how many were not the game's."""
        talk = self._converse("plan", observation, self.limits.plan_turns)
        if self.specialist is not None:
            await self._consult(talk, self.specialist)
        action = raw = None
        doubted: dict[str, tuple[str | None, str]] = {}
        invalid = 0
        while action is None and (reply := await talk.reply()) is not None:
            parsed = ops.parse(reply.text, "plan", self.enabled)
            problems = []
            if self.specialist is not None and parsed.ops:
                parsed = replace(parsed, ops=())
                problems.append("memory has been consulted already: its operations were not run; commit with ACTION")
            if parsed.action is not None:
                raw = parsed.action
                action, problem = await self._checked(observation, raw, doubted, talk.is_last)
                invalid += action is None and self._actions.meant(raw) is None
                problems += [] if problem is None else [problem]
            await self._carry_out(talk, reply, parsed, tuple(problems))
        self._warnings += talk.warnings
        if action is None:
            # What a hook doubted is played when the model could not be told, or said nothing else.
            kept = [pair for pair in doubted.values() if pair[0] is not None]
            action, raw = kept[-1] if kept else (None, raw)
        return tuple(talk.turns), action, raw, invalid

    async def _consult(self, talk: Conversation, specialist: Specialist) -> None:
        """The specialist reads until it has what it wants, or has had its turns; then the model is to act."""
        most = min(specialist.consult_turns, self.limits.plan_turns)
        while len(talk.turns) < most and (reply := await talk.reply()) is not None:
            parsed = ops.parse(reply.text, "plan", self.enabled)
            await self._carry_out(talk, reply, parsed)
            if parsed.action is not None or not parsed.ops:
                break
        talk.hand_over(self._acting())

    async def _checked(
        self, observation: str, written: str, doubted: dict[str, tuple[str | None, str]], last: bool
    ) -> tuple[str | None, str | None]:
        """The action to play for what was written, or None and why not.

        A hook may change it or ask once to think again; an action that the model then insists on, or
        for which there is no further reply, is played: the model decides.
        """
        action = self._actions.meant(written)
        named = action or written
        refusal = None if action is not None else self._actions.unknown(written)
        if named in doubted:
            return action, refusal
        said = await self.hooks.check_action(self._view(observation), named, self._actions.meant, last)
        if said is None:
            return action, refusal
        if said.kind == "repaired":
            return self._actions.meant(said.text), None
        doubted[named] = (action, written)
        told = f"ACTION {one_line(named, 40)} was not played yet" if refusal is None else refusal
        return None, f"{told}: {said.text or 'think again'}"

    def _converse(self, phase: Phase, observation: str, most: int) -> Conversation:
        values = self._values(phase, observation)
        return Conversation(self._answering(phase), self.scaffold.prompts, phase, self.system, values, most)

    def _answering(self, phase: Phase) -> Model:
        """Who is asked in this phase, and in PLAN with a specialist until memory was consulted."""
        if self._past is not None:
            turns = self._past.log if phase == "log" else self._past.plan
            return RecordedModel([turn for turn in turns if turn.specialist == (self.specialist is not None)])
        return self.model if self.specialist is None else self.specialist.model

    def _acting(self) -> Model:
        """Who is handed what a specialist found."""
        if self._past is None:
            return self.model
        return RecordedModel([turn for turn in self._past.plan if not turn.specialist])

    async def _carry_out(
        self, talk: Conversation, reply: Reply, parsed: ops.Parsed, problems: tuple[str, ...] = ()
    ) -> None:
        """Run the operations of a reply, in the order in which they were written, and keep the turn."""
        most = self.limits.reply_ops
        executed = [done for op in parsed.ops[:most] for done in await self._run(op, talk.phase)]
        by_specialist = self.specialist is not None and not talk.handed_over
        if len(parsed.ops) > most:
            problems = (
                *problems,
                f"only the first {most} operations of a reply are run; {len(parsed.ops)} were written",
            )
        elif not (parsed.ops or parsed.errors or parsed.done or parsed.action is not None or problems):
            problems = (*problems, f"no operation was found in this reply; {talk.phase.upper()} goes on")
        turn = Turn(
            model=reply.model,
            prompt=talk.prompt,
            text=reply.text,
            ops=tuple(executed),
            errors=(*parsed.errors, *problems),
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cached_tokens=reply.cached_tokens,
            cost=reply.cost,
            seconds=reply.seconds,
            specialist=by_specialist,
            handed=parsed.action_span[0] if by_specialist and parsed.action_span is not None else None,
        )
        talk.turns.append(turn)
        if self.listener is not None and self._past is None:
            self.listener.turn(talk.phase, turn)

    async def _run(self, op: ops.Op, phase: Phase) -> list[Executed]:
        """Run an operation that the model wrote: the memory folder's, or one that the scaffold adds."""
        own = self.own.get(op.name)
        if own is None:
            return [self._executed(op)]
        if own.phase not in ("both", phase):
            refused = f"{op.name} was not run: it can be used in {own.phase.upper()} only"
            return [Executed(op.name, op.args, op.span, op.label, refused, ok=False)]
        text, ok, wanted = await self.hooks.operation(op, self.memory, phase)
        most = self.limits.result_chars
        asked = Executed(op.name, op.args, op.span, op.label, text[:most], ok, truncated=len(text) > most)
        return [asked, *self._carry_out_for(f"op_{op.name}", wanted, op.span)]

    def _carry_out_for(self, hook: str, wanted: list[ops.Op], span: tuple[int, int] = (0, 0)) -> tuple[Executed, ...]:
        """Run the memory operations that a hook asked for."""
        return tuple(self._executed(ops.Op(op.name, op.args, span), hook) for op in wanted)

    def _executed(self, op: ops.Op, by: str = "") -> Executed:
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
            file=self.memory.target(op) if result.ok else "",
            by=by,
        )

    def _view(self, observation: str) -> Step:
        last = self.history[-1] if self.history else None
        return Step(self.step, observation, last, self.raw_action, tuple(self.history))

    def _values(self, phase: Phase, observation: str) -> dict[str, Any]:
        step = self._view(observation)
        return {
            **self._fixed,
            "phase": phase.upper(),
            "step": step,
            "observation": blocks.observation(step.number, step.action, observation),
            "memory": blocks.memory_listing(self.memory.listing()),
            "pinned": blocks.pinned(self.memory.pinned()),
            "hooks": self._texts,
        }
