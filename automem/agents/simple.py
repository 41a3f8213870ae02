"""An agent without a memory folder at work: its questions recorded, its actions checked."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from automem.actions import Actions
from automem.agent import Decision, Listener, Rules
from automem.agents.protocol import Agent, Played, Seat
from automem.memory import Memory
from automem.memory.store import Limits
from automem.models.protocol import Message, Model
from automem.records import Prompt, StepRecord, Turn
from automem.replay import RecordedModel
from automem.storable import storable
from games.protocol import Observation


class Simple:
    """Plays an episode with an `Agent` (see `automem.agents.protocol.Player`)."""

    def __init__(
        self, make: Callable[[Seat], Agent], rules: Rules, seed: int, model: Model, listener: Listener | None = None
    ) -> None:
        """
        Args:
            make: the agent's class.
            rules: of the game.
            seed: of the episode; decides, with the task, how the agent's dice fall.
            model: answers what the agent asks.
            listener: watches.
        """
        self.step = 0
        self.system = ""
        self.memory = Memory(None, [], Limits())
        self._rules = rules
        self._actions = Actions(rules.actions)
        self._model = model
        self._answering = model
        self._listener = listener
        self._watched = True
        self._turns: list[Turn] = []
        self._seat = Seat(rules, random.Random(f"{rules.task} {seed}"), self._ask)
        self._agent = make(self._seat)

    async def decide(self, observation: Observation, past: StepRecord | None = None) -> Decision:
        """One step; see `automem.agents.protocol.Player.decide`."""
        self._turns = []
        self._answering = self._model if past is None else RecordedModel(past.plan)
        self._watched = past is None
        written = await self._agent.act(observation)
        action = None if written is None else self._actions.meant(written)
        if written is not None and action is None and self._turns:
            told = (*self._turns[-1].errors, self._actions.unknown(written))
            self._turns[-1] = replace(self._turns[-1], errors=told)
        if self._listener is not None and self._watched:
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

    async def _ask(self, messages: Sequence[Message]) -> str:
        reply = await self._answering.complete(messages)
        text = storable(reply.text)
        before, last = list(messages[:-1]), messages[-1]
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

    def _context(self, before: list[Message]) -> tuple[Message, ...]:
        """What came before the last message, without the system message where it is the episode's own.

        An empty system message stands for none (`automem.records.messages` reads it so).
        """
        said = before[0]["content"] if before and before[0]["role"] == "system" else ""
        if said == self.system:
            return tuple(before[1:] if said else before)
        return tuple(before if said else [{"role": "system", "content": ""}, *before])
