"""What a decider is told: templates in ``specialist/prompts`` and what they are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from automem.errors import UserError
from meta.dialogue.prompting import render
from meta.dialogue.tool import Tool
from specialist.recipe import GROUPS
from specialist.search.deciders.llm import showing
from specialist.search.deciders.llm.changes import LARGEST, flat
from specialist.search.deciders.llm.room import Room
from specialist.select import statistics as counted
from specialist.select.llm.prompting import FOLDER

_LEDGER = 12_000
"""Characters of the ledger that are shown at once; the tool shows all."""


@dataclass(frozen=True)
class Words:
    """What a round's dialogue tells the decider; see `meta.dialogue.Words`."""

    room: Room
    tools: Sequence[Tool]

    def system(self, in_text: bool) -> str:
        """The system message."""
        return render(
            FOLDER,
            "decider_system.j2",
            config=self.room.search.config,
            criteria=self.room.criteria is not None,
            largest={name: f"{value:g}" for name, value in LARGEST.items()},
            groups=list(GROUPS),
            fields=list(flat(self.room.start)),
            tools=self.tools,
            in_text=in_text,
        )

    def opening(self, left: list[str]) -> str:
        """The search so far."""
        room = self.room
        told = showing.ledger(room.rows, room.start)
        kept = room.criteria.in_force() if room.criteria is not None else None
        return render(
            FOLDER,
            "decider_opening.j2",
            config=room.search.config,
            number=room.number,
            start=flat(room.start),
            ledger=told[-_LEDGER:],
            cut=max(0, len(told) - _LEDGER),
            criteria=kept,
            statistics=self._statistics(),
            runs=room.names(),
            left=left,
        )

    def notice(self, left: list[str], last: bool) -> str:
        """How much of the budget is left."""
        return render(FOLDER, "decider_budget.j2", left=left, last=last)

    def no_call(self, in_text: bool) -> str:
        """What a reply without a call is told."""
        return render(FOLDER, "decider_no_call.j2", in_text=in_text)

    def _statistics(self) -> str:
        """Of the latest selection; empty while there is none, or it is gone."""
        selected = [row for row in self.room.rows if row.data]
        if not selected:
            return ""
        try:
            return showing.statistics(counted.read(self.room.selection(selected[-1])))
        except UserError as error:
            return str(error)
