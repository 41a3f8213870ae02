"""The tools of a judge: it asks about the episode, gives verdicts, and may revise the criteria."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from automem.errors import UserError
from automem.storable import storable
from automem.trace import query
from automem.vocabulary import one_line
from meta.dialogue import traces
from meta.dialogue.tool import Arguments, Paged, Tool, page_of
from specialist.select.llm import criteria as written
from specialist.select.llm.room import EPISODE, Given, Room

LONGEST_REASON = 400


class OneVerdict(Arguments):
    """A verdict."""

    id: Annotated[str, Field(max_length=100)]
    """The candidate, as it was shown: STEP/PHASE."""
    accept: bool
    """It is worth learning from."""
    score: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
    """How good it is, from 0 to 10: of the accepted ones the best are taken first."""
    reason: Annotated[str, Field(min_length=3, max_length=LONGEST_REASON)]
    """Why, in one line: what it did, and what came of it."""
    criterion: Annotated[str, Field(max_length=100)] = ""
    """The criterion that decided, by its heading."""


class Judge(Arguments):
    """Verdicts."""

    verdicts: Annotated[tuple[OneVerdict, ...], Field(max_length=256)]
    """One for each candidate: id, accept, score, reason, criterion."""


class Revise(Arguments):
    """A revision of the criteria."""

    text: Annotated[str, Field(max_length=2 * written.LONGEST)]
    """All of the new criteria, in Markdown; each is a heading `## its name` with some lines below it."""
    why: Annotated[str, Field(min_length=10, max_length=1000)]
    """What the candidates showed that the criteria did not say, or said wrongly."""


def judge(room: Room, asked: Judge) -> str:
    """Take verdicts; say which candidates still have none, once."""
    unknown, new = [], 0
    for one in asked.verdicts:
        name = one.id.strip().lower()
        if name not in room.ids:
            unknown.append(one_line(one.id, 40))
            continue
        new += name not in room.verdicts
        room.verdicts[name] = _given(room, one)
    left = room.left()
    told = [f"{len(asked.verdicts) - len(unknown)} verdicts taken."]
    if unknown:
        told.append(f"These are no candidates here: {', '.join(unknown[:8])}.")
    if not left:
        return " ".join([*told, "Every candidate has one."])
    if room.asked_again and not new:
        room.given_up = True
        return " ".join([*told, f"Rejected without a verdict: {', '.join(left)}."])
    room.asked_again = True
    return " ".join([*told, f"Still without one: {', '.join(left)}. Judge them now; else they are rejected."])


def _given(room: Room, one: OneVerdict) -> Given:
    criterion = one.criterion.strip().strip("#").strip().lower()
    reason = one_line(storable(one.reason), LONGEST_REASON)
    return Given(one.accept, one.score, criterion if criterion in room.version.names else "", reason)


def revise(room: Room, asked: Revise) -> str:
    """Write the next version of the criteria. What was written before a kill is found again, not written twice."""
    mine = [version for version in room.criteria.versions() if version.by == room.author]
    if mine and mine[0].text.strip() != asked.text.strip():
        raise UserError(f"not written: you wrote version {mine[0].number} already; once is enough")
    now, base = room.criteria.in_force(), room.base or room.version
    if not mine and now.hash != base.hash:
        room.base = now
        raise UserError(
            f"not written: another judge has revised the criteria meanwhile ({now.why}). If they still lack "
            f"something, revise this version:\n{now.text}"
        )
    made = room.criteria.add(asked.text, room.author, asked.why)
    return (
        f"Version {made.number} is written, and in force from the next round on. Judge these candidates by version "
        f"{room.version.number}."
    )


def columns(room: Room, asked: Paged) -> str:
    """The views that SQL sees."""
    return page_of(query.schema(), asked.page)


ASKING = traces.tools(EPISODE, "Leave it out: there is one run here.")

COLUMNS = Tool("sql_columns", "The views that sql can ask, and their columns.", Paged, columns)

JUDGE = Tool(
    "judge",
    "Give verdicts. Call it once with all candidates, or several times with some of them.",
    Judge,
    judge,
    True,
)

REVISE = Tool(
    "revise_criteria",
    "Write a better version of the criteria, for later rounds. Only where candidates showed that they are wrong or "
    "silent about something that matters; once.",
    Revise,
    revise,
)


def tools(may_revise: bool) -> Mapping[str, Tool]:
    """All tools by name, in the order in which they are offered."""
    asking = [tool for tool in ASKING if tool.name not in ("compare_runs", "run_stats")]
    offered = [*asking, COLUMNS, JUDGE, *([REVISE] if may_revise else [])]
    return {tool.name: tool for tool in offered}
