"""The exchange of one phase: ask, let the reply be carried out, ask again with what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from automem.models.protocol import ContextTooLong, Message, Model, Reply
from automem.prompts import Prompts, PromptTooLong
from automem.records import Phase, Prompt, Turn, reply_text, shown_results


class Conversation:
    """One phase of one step with a model.

    Attributes:
        phase: "log" or "plan".
        turns: what has been said and done so far.
        cut_short: why the phase ended before its last turn without the model's doing; None if it did not.
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
        user = prompts.render(f"{phase}.j2", values)
        self.turns: list[Turn] = []
        self.cut_short: str | None = None
        self._model = model
        self._prompts = prompts
        self.phase: Phase = phase
        self._values = values
        self._most = most
        self._messages: list[Message] = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        self._prompt = Prompt.around(user, "observation", values["observation"])

    @property
    def prompt(self) -> Prompt:
        """The user message that the last reply answered."""
        return self._prompt

    async def reply(self) -> Reply | None:
        """The model's next reply, or None when the phase has had its turns or the context is full.

        Raises `automem.models.protocol.ModelError`; `ContextTooLong` only when not even the first
        message of the phase fits.
        """
        if len(self.turns) == self._most:
            return None
        try:
            if self.turns:
                self._answer(self.turns[-1])
            return _storable(await self._model.complete(self._messages))
        except (ContextTooLong, PromptTooLong):
            if not self.turns:
                raise
            self.cut_short = f"{self.phase.upper()} ended after {len(self.turns)} turns: the next prompt did not fit"
            return None

    def _answer(self, turn: Turn) -> None:
        """Go on with the last reply and what its operations answered."""
        results = shown_results(turn.ops)
        left = self._most - len(self.turns)
        values = {**self._values, "results": results, "errors": turn.errors, "turns_left": left}
        text = self._prompts.render("results.j2", values)
        self._prompt = Prompt.around(text, "results", results)
        self._messages.append({"role": "assistant", "content": reply_text(turn.text)})
        self._messages.append({"role": "user", "content": text})


def _storable(reply: Reply) -> Reply:
    """The reply with half surrogate pairs replaced: they cannot be stored as UTF-8."""
    try:
        reply.text.encode("utf-8")
    except UnicodeEncodeError:
        return replace(reply, text=reply.text.encode("utf-8", "replace").decode("utf-8"))
    return reply
