"""What a judge is told: templates in ``specialist/prompts``, and how candidates are shown in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from automem.records import Executed, StepRecord, Turn
from automem.tables import percent
from automem.trace import EpisodeTrace
from automem.visible import visible_lines
from automem.vocabulary import one_line
from meta.dialogue.prompting import render
from meta.dialogue.tool import Tool
from specialist.candidate import Candidate
from specialist.select.engine import Verdict
from specialist.select.llm.criteria import Version

FOLDER = Path(__file__).resolve().parents[2] / "prompts"

_OBSERVATION, _REPLY, _RESULT, _HINT = 700, 2_000, 240, 240
"""Characters of a candidate's parts that are shown; the tools show the rest."""

_TURNS, _OPERATIONS = 4, 12
"""Replies of a candidate, and operations of a reply, that are shown."""

_LATER = 12
"""Steps within which it is told what came of it."""


@dataclass(frozen=True)
class Words:
    """What one dialogue tells the judge; see `meta.dialogue.Words`.

    Attributes:
        episode: that is judged.
        version: of the criteria.
        shown: the candidates as templates take them.
        tools: what is offered.
        may_revise: the criteria may be revised.
    """

    episode: EpisodeTrace
    version: Version
    shown: Sequence[Mapping[str, Any]]
    tools: Sequence[Tool]
    may_revise: bool

    def system(self, in_text: bool) -> str:
        """The system message."""
        return render(
            FOLDER,
            "judge_system.j2",
            task=self.episode.task,
            version=self.version,
            tools=self.tools,
            may_revise=self.may_revise,
            in_text=in_text,
        )

    def opening(self, left: list[str]) -> str:
        """The candidates."""
        result = self.episode.result
        return render(
            FOLDER,
            "judge_opening.j2",
            task=self.episode.task,
            seed=self.episode.seed,
            steps=len(self.episode),
            progression="" if result is None else percent(result.progression),
            shown=self.shown,
            left=left,
        )

    def notice(self, left: list[str], last: bool) -> str:
        """How much of the budget is left."""
        return render(FOLDER, "judge_budget.j2", left=left, last=last)

    def no_call(self, in_text: bool) -> str:
        """What a reply without a call is told."""
        return render(FOLDER, "judge_no_call.j2", in_text=in_text)


def id_of(candidate: Candidate) -> str:
    """How the model knows a candidate of its episode."""
    return f"{candidate.place.step}/{candidate.place.phase}"


def shown(candidate: Candidate, hint: Verdict | None, records: Mapping[int, StepRecord]) -> dict[str, Any]:
    """A candidate as the templates take it.

    Args:
        candidate: it.
        hint: what `rules` says of it.
        records: of its episode, by step, as far as they are known.
    """
    more = len(candidate.turns) - _TURNS
    return {
        "id": id_of(candidate),
        "hint": "" if hint is None else one_line(hint.text, _HINT),
        "last_action": one_line(candidate.last_action or "", 80),
        "observation": _cut(candidate.record.observation, _OBSERVATION),
        "turns": [_turn(turn) for turn in candidate.turns[:_TURNS]],
        "then": _then(candidate.record, records) + (f"; {more} more replies are not shown" if more > 0 else ""),
    }


def _turn(turn: Turn) -> dict[str, Any]:
    own = [op for op in turn.ops if not op.by]
    told = [_operation(op) for op in own[:_OPERATIONS]]
    if len(own) > _OPERATIONS:
        told.append(f"and {len(own) - _OPERATIONS} more operations")
    errors = [one_line(error, _RESULT) for error in turn.errors[:_OPERATIONS]]
    return {"text": _cut(turn.text, _REPLY) or "(no reply)", "operations": told, "errors": errors}


def _operation(op: Executed) -> str:
    marks = [*([] if op.ok else ["refused"]), *(["duplicate"] if op.duplicate else [])]
    marks += [f"found {op.found}"] if op.found is not None else []
    marked = f" [{', '.join(marks)}]" if marks else ""
    return f"{one_line(op.label, 120)}{marked} -> {one_line(op.result, _RESULT)}"


def _then(record: StepRecord, records: Mapping[int, StepRecord]) -> str:
    """The action, and what was reached soon after."""
    later = [records[step] for step in range(record.step, record.step + _LATER) if step in records]
    last = later[-1] if later else record
    before = records.get(record.step - 1)
    had = set() if before is None else {name for name, count in before.achievements.items() if count}
    new = [name for name, count in last.achievements.items() if count and name not in had]
    told = f"it played {one_line(record.action, 80)}; progression {percent(record.progression)} %"
    told += f", {percent(last.progression)} % by step {last.step}"
    return told + (f"; reached by then: {one_line(', '.join(new), 300)}" if new else "")


def _cut(text: str, most: int) -> str:
    """A text made safe to show, cut, with a word on how much there is."""
    seen = visible_lines(text[:most]).strip("\n")
    return seen if len(text) <= most else f"{seen}\n(cut: {len(text) - most} more characters; read_steps shows them)"
