"""An agent without a memory folder at work: its questions recorded, its actions checked."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from automem.actions import Actions
from automem.agent import Decision, Listener, Rules
from automem.agents.protocol import Agent, AgentFailed, Played, Seat
from automem.memory import Memory
from automem.memory.store import Limits
from automem.models.protocol import ContextTooLong, Message, Model, ModelError, Reply
from automem.models.registry import NONE
from automem.records import Prompt, StepRecord, Turn
from automem.replay import RecordedModel
from automem.storable import storable
from automem.vocabulary import one_line
from games.protocol import Observation

TOLD = 300
"""Characters that are told of an error of an agent's code."""


class Simple:
    """Plays an episode with an `Agent` (see `automem.agents.protocol.Player`)."""

    def __init__(
        self,
        make: Callable[[Seat], Agent],
        rules: Rules,
        seed: int,
        model: Model,
        listener: Listener | None = None,
        name: str = "",
    ) -> None:
        """
        Args:
            make: the agent's class.
            rules: of the game.
            seed: of the episode; decides, with the task, how the agent's dice fall.
            model: answers what the agent asks.
            listener: watches.
            name: how people call the agent.

        Raises `AgentFailed` when the class cannot be made.
        """
        self.step = 0
        self.system = ""
        self.memory = Memory(None, [], Limits())
        self._rules = rules
        self._actions = Actions(rules.actions)
        self._model = model
        self._recorded: list[Turn] | None = None
        """Turns of a recorded step that were not asked for yet; None where the model is asked."""
        self._gone: ModelError | None = None
        self._name = name or getattr(make, "__name__", "")
        self._listener = listener
        self._turns: list[Turn] = []
        self._seat = Seat(rules, random.Random(f"{rules.task} {seed}"), self._ask)
        try:
            self._agent = make(self._seat)
        except Exception as error:
            raise self._failed("cannot be made", error) from error

    async def decide(self, observation: Observation, past: StepRecord | None = None) -> Decision:
        """One step; see `automem.agents.protocol.Player.decide`. Raises `AgentFailed`."""
        self._turns = []
        self._recorded = None if past is None else list(past.plan)
        if past is not None and self.step == 0:
            self.system = past.system or ""
        written = await self._act(observation)
        action = None if written is None else self._actions.meant(written)
        if written is not None and action is None and self._turns:
            told = (*self._turns[-1].errors, self._actions.unknown(written))
            self._turns[-1] = replace(self._turns[-1], errors=told)
        if self._listener is not None and past is None:
            for turn in self._turns:
                self._listener.turn("plan", turn)
        played = action or self._rules.default_action
        self._seat.last = Played(written, played, action is not None)
        self.step += 1
        return Decision(
            action=played,
            raw_action=None if written is None else storable(written),
            invalid=int(written is not None and action is None),
            fallback=action is None,
            log=(),
            plan=tuple(self._turns),
            warnings=(),
        )

    async def close(self) -> None:
        """Nothing was started."""
        self.memory.close()

    async def _act(self, observation: Observation) -> str | None:
        """What the agent answers. Whatever its code does wrong is its own failure, and no other episode's."""
        try:
            written = await self._agent.act(observation)
        except ContextTooLong as error:
            if self._recorded is None:
                raise
            raise self._other(str(error)) from error
        except Exception as error:
            if self._gone is not None:
                raise self._gone from None
            if isinstance(error, AgentFailed):
                raise
            raise self._failed(f"failed at step {self.step}", error) from error
        if self._gone is not None:  # an agent may not play on without its model as if nothing had happened
            raise self._gone
        if self._recorded:
            raise self._other("it asks less")
        if written is not None and not isinstance(written, str):
            raise AgentFailed(
                f"agent {self._name} answered step {self.step} with {_kind(written)}: `act` returns the name of an "
                "action, or None"
            )
        return written

    async def _ask(self, messages: Sequence[Message]) -> str:
        asked = self._checked(messages)
        before, last = asked[:-1], asked[-1]
        reply = await self._reply(asked)
        text = storable(reply.text)
        if self.step == 0 and not self._turns and before and before[0]["role"] == "system":
            self.system = before[0]["content"]
        self._turns.append(
            Turn(
                model=reply.model,
                prompt=Prompt(last["content"]),
                text=text,
                ops=(),
                errors=(),
                prompt_tokens=reply.prompt_tokens,
                completion_tokens=reply.completion_tokens,
                cached_tokens=reply.cached_tokens,
                cost=reply.cost,
                seconds=reply.seconds,
                context=self._context(before),
            )
        )
        return text

    async def _reply(self, asked: list[Message]) -> Reply:
        """The model's reply; of a recorded step, that to the same question."""
        if self._recorded is not None:
            prompt, context = Prompt(asked[-1]["content"]), self._context(asked[:-1])
            for turn in self._recorded:
                if (turn.prompt, turn.context) == (prompt, context):
                    self._recorded.remove(turn)
                    return await RecordedModel([turn]).complete(asked)
            # What was asked and is not recorded did not fit the model then, either.
            raise ContextTooLong("it asks what was not answered then")
        if self._model.name == NONE:
            raise AgentFailed(
                f'agent {self._name} asks a model, and its class says `model = "none"`; write "" there to have it '
                "play with the one that --model names"
            )
        if self._gone is not None:
            raise self._gone
        try:
            return await self._model.complete(asked)
        except ContextTooLong:
            raise
        except ModelError as error:
            self._gone = error
            raise

    def _checked(self, messages: Sequence[Message]) -> list[Message]:
        """A copy of a conversation, as it is sent and stored: agents may go on with theirs."""
        given = list(messages)
        if not all(isinstance(one, Mapping) and set(one) == {"role", "content"} for one in given) or not all(
            isinstance(text, str) for one in given for text in one.values()
        ):
            raise AgentFailed(
                f"agent {self._name} asks with something that is no conversation: a list of messages, each "
                '{"role": "system", "user" or "assistant", "content": text}'
            )
        if not given or given[-1]["role"] != "user":
            raise AgentFailed(f"agent {self._name} asks with a conversation that does not end with a user message")
        copied = [{"role": one["role"], "content": storable(one["content"])} for one in given]
        return [one for one in copied if one["content"] or one["role"] != "system"]

    def _failed(self, what: str, error: Exception) -> AgentFailed:
        """What its developer needs to find the mistake."""
        frames = traceback.extract_tb(error.__traceback__)
        where = f" ({PurePath(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
        told = storable(one_line(f"{type(error).__name__}: {error}", TOLD))
        return AgentFailed(f"agent {self._name} {what}: {told}{where}; mend it and resume the run")

    def _other(self, why: str) -> AgentFailed:
        return AgentFailed(
            f"agent {self._name}: step {self.step} does not go as it was recorded: {why}. The run was made with "
            "another version of it, or what it does depends on more than what it is given; start a new run"
        )

    def _context(self, before: list[Message]) -> tuple[Message, ...]:
        """What came before the last message, without the system message where it is the episode's own.

        An empty system message stands for none (`automem.records.messages` reads it so).
        """
        said = before[0]["content"] if before and before[0]["role"] == "system" else ""
        if said == self.system:
            return tuple(before[1:] if said else before)
        return tuple(before if said else [{"role": "system", "content": ""}, *before])


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"
