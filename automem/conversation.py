"""The exchange of one phase: ask, let the reply be carried out, ask again with what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from automem import blocks
from automem.models.protocol import ContextTooLong, Message, Model, Reply
from automem.prompts import LARGEST_PROMPT, Prompts, PromptTooLong, TemplateProblem, plain
from automem.records import Phase, Prompt, Turn, shown_results
from automem.storable import storable


class Conversation:
    """One phase of one step with a model.

    A template that fails does not end an episode: a plain text takes its place (`automem.prompts.plain`).

    Attributes:
        phase: "log" or "plan".
        turns: what has been said and done so far.
        handed_over: another model goes on than the one that began.
        warnings: what a person should know: templates that failed, each once, and why the phase ended before its
            last turn without the model's doing.
    """

    def __init__(
        self, model: Model, prompts: Prompts, phase: Phase, system: str, values: Mapping[str, Any], most: int
    ) -> None:
        """
        Args:
            model: who is asked.
            prompts: the scaffold's templates.
            phase: "log" or "plan".
            system: the system message.
            values: what the phase's templates show (`automem.prompts.BY_STEP`).
            most: replies at most.
        """
        self.turns: list[Turn] = []
        self.warnings: list[str] = []
        self._failed: set[str] = set()
        self._model = model
        self._prompts = prompts
        self.phase: Phase = phase
        self._values = values
        self._most = most
        self.handed_over = False
        user = self._rendered(f"{phase}.j2", values)
        self._messages: list[Message] = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        self._prompt = Prompt.around(user, "observation", values["observation"])

    @property
    def prompt(self) -> Prompt:
        """The user message that the last reply answered."""
        return self._prompt

    @property
    def is_last(self) -> bool:
        """Whether the next turn is the last one that the phase allows."""
        return len(self.turns) + 1 == self._most

    def hand_over(self, model: Model) -> None:
        """Go on with another model: it is told what was consulted, and has one reply at least."""
        self._model = model
        self.handed_over = True
        self._most = max(self._most, len(self.turns) + 1)

    async def reply(self) -> Reply | None:
        """The model's next reply, or None when the phase has had its turns or the context is full.

        Raises `automem.models.protocol.ModelError`; `ContextTooLong` only when not even the first
        message of the phase fits.
        """
        if len(self.turns) == self._most:
            return None
        if not self.turns:
            return _storable(await self._first())
        try:
            self._answer(self.turns[-1])
            return _storable(await self._model.complete(self._messages))
        except (ContextTooLong, PromptTooLong):
            self.warnings.append(
                f"{self.phase.upper()} ended after {len(self.turns)} turns: the next prompt did not fit"
            )
            return None

    async def _first(self) -> Reply:
        """The reply to the first message; to a plain one, when what the scaffold shows is more than the model takes."""
        try:
            return await self._model.complete(self._messages)
        except ContextTooLong:
            name = f"{self.phase}.j2"
            text = plain(name, self._values)
            if len(text) >= len(self._messages[1]["content"]):
                raise
            self._set_first(text)
            reply = await self._model.complete(self._messages)
            self.warnings.append(f"a plain text was used instead of {name}: it did not fit the model's context")
            return reply

    def _set_first(self, text: str) -> None:
        self._messages[1] = {"role": "user", "content": text}
        self._prompt = Prompt.around(text, "observation", self._values["observation"])

    def _answer(self, turn: Turn) -> None:
        """Go on with the last reply and what its operations answered."""
        results = shown_results(turn.ops)
        name = "handoff.j2" if self.handed_over and turn.specialist else "results.j2"
        if name == "handoff.j2":
            text = blocks.handed_over(results, self._rendered(name, self._values))
        else:
            left = self._most - len(self.turns)
            text = self._rendered(name, {**self._values, "results": results, "errors": turn.errors, "turns_left": left})
        if len(text) > LARGEST_PROMPT:
            raise PromptTooLong(f"{name}: more than {LARGEST_PROMPT} characters")
        self._prompt = Prompt.around(text, "results", results)
        self._messages.append({"role": "assistant", "content": turn.passed_on})
        self._messages.append({"role": "user", "content": text})

    def _rendered(self, name: str, values: Mapping[str, Any]) -> str:
        """The scaffold's template, or the plain text where that fails (`render` has bounded what failing costs)."""
        try:
            return self._prompts.render(name, values)
        except TemplateProblem as problem:
            if name not in self._failed:
                self._failed.add(name)
                self.warnings.append(f"a plain text was used instead of {name}: {problem}")
            return plain(name, values)


def _storable(reply: Reply) -> Reply:
    """The reply in characters that can be written down; nearly every one is already."""
    text = storable(reply.text)
    return reply if text == reply.text else replace(reply, text=text)
