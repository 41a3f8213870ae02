"""The decider `llm` as the search knows it.

Each round is a dialogue, kept in ``decided/<round>/transcript.jsonl``: one that was killed goes on where it was, and no
reply is paid for twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from automem.models.protocol import ChatModel
from meta.dialogue import Dialogue, DialogueFailed
from meta.dialogue.model import make as make_model
from meta.dialogue.model import options_of
from meta.reviewer import Budget
from specialist.recipe import Recipe
from specialist.search import storage
from specialist.search.decider import Proposal
from specialist.search.deciders.llm import tools
from specialist.search.deciders.llm.options import LlmDeciderOptions
from specialist.search.deciders.llm.prompting import Words
from specialist.search.deciders.llm.room import Room
from specialist.search.ledger import Row
from specialist.search.settings import DeciderSettings
from specialist.select.llm.criteria import Criteria

TRANSCRIPT = "transcript.jsonl"

WRITTEN = "llm"
"""The engine that judges by written criteria."""


class LlmDecider:
    """See `specialist.search.decider.Decider`."""

    name = "llm"

    def __init__(self, model: ChatModel, options: LlmDeciderOptions, folder: Path) -> None:
        """Nothing is reached or read yet.

        Args:
            model: whom to ask.
            options: how, and how much.
            folder: of the search.
        """
        self._model = model
        self._options = options
        self._folder = folder

    async def ready(self) -> None:
        """Check key and server. Raises `automem.models.protocol.ModelError`."""
        await self._model.ready()

    async def propose(self, number: int, ledger: Sequence[Row], start: Recipe) -> Sequence[Proposal]:
        """What the model proposes.

        Where its dialogue fails, what it had proposed by then; in the first round the recipe of the start, if that is
        nothing. Raises `UserError` when the model cannot be reached.
        """
        search = storage.load(str(self._folder))
        criteria = Criteria(self._folder) if search.config.engine.kind == WRITTEN else None
        shown = search.config.gate_seeds[: self._options.shown]
        room = Room(search, number, tuple(ledger), start, criteria, shown)
        offered = tools.tools(criteria is not None)
        words = Words(room, tuple(offered.values()))
        options = self._options
        budget = Budget(options.turns, options.tokens, options.usd, options.minutes)
        transcript = self._folder / "decided" / str(number) / TRANSCRIPT
        whose = {"round": number, "rows": len(ledger)}
        dialogue = Dialogue(self._model, options, offered, words, budget, transcript, whose)
        try:
            await dialogue.run(room)
        except DialogueFailed as failed:
            if not room.proposals and not ledger:
                return [Proposal(recipe=start, why=f"the recipe of the start: the decider came to nothing: {failed}")]
        return room.proposals

    async def close(self) -> None:
        """Let go of connections."""
        await self._model.close()


def make(settings: DeciderSettings, folder: Path) -> LlmDecider:
    """The decider of these settings; reaches nothing. Raises `UserError`."""
    whose = "decider llm"
    options = options_of(LlmDeciderOptions, settings.options, whose)
    return LlmDecider(make_model(settings.model, settings.api_base, options, whose), options, folder)
