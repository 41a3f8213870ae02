"""The tools of a decider: it asks about the search, proposes recipes, revises the criteria, and finishes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import Field

from automem.errors import UserError
from automem.storable import storable
from automem.trace import query
from automem.vocabulary import one_line
from meta.dialogue import traces
from meta.dialogue.tool import Arguments, Paged, Tool, page_of
from specialist.search.decider import Proposal
from specialist.search.deciders.llm import showing
from specialist.search.deciders.llm.changes import changed
from specialist.search.deciders.llm.room import COLLECTED, START, Room
from specialist.search.ledger import Row
from specialist.select import decisions as recorded
from specialist.select import statistics as counted
from specialist.select.llm import criteria as written
from specialist.train import curve as curves

LONGEST_WHY = 2_000


class OfRow(Paged):
    """A training run."""

    number: Annotated[str, Field(max_length=100)]
    """Its number in the ledger, such as 1.1.1."""


class OfDecisions(OfRow):
    """Decisions of a selection."""

    accepted: bool = True
    """Those that were accepted, or those that were not."""
    why: Annotated[str, Field(max_length=200)] = ""
    """Only those whose reason holds this text."""


class OfVersion(Paged):
    """A version of the criteria."""

    version: Annotated[str, Field(max_length=40)] = ""
    """Its number; empty for the one in force."""


class Revise(Arguments):
    """A revision of the criteria."""

    text: Annotated[str, Field(max_length=2 * written.LONGEST)]
    """All of the new criteria, in Markdown; each is a heading `## its name` with some lines below it."""
    why: Annotated[str, Field(min_length=10, max_length=1000)]
    """What the change is for."""


class Propose(Arguments):
    """A recipe to train."""

    changes: Annotated[dict[str, Any], Field(max_length=40)]
    """What differs from `base`, by dotted names: {"lora.rank": 32, "train.learning_rate": 0.0001}."""
    why: Annotated[str, Field(min_length=10, max_length=LONGEST_WHY)]
    """What you expect of it, and which figures make you expect it."""
    base: Annotated[str, Field(max_length=100)] = START
    """What is changed: start, or the number of a training run."""
    data: Literal["reuse", "regenerate"] = "reuse"
    """reuse learns from the episodes that are there, regenerate collects further ones first."""
    criteria: Annotated[str, Field(max_length=40)] = ""
    """Version of the criteria to select by, by its number: an earlier one undoes a change. Empty for that in force."""


class Withdraw(Arguments):
    """A proposal that is taken back."""

    number: Annotated[int, Field(ge=1, le=1000)]
    """Which of this round's proposals, from 1."""


class Finish(Arguments):
    """The end of a round's deliberation."""

    why: Annotated[str, Field(min_length=3, max_length=LONGEST_WHY)]
    """In a sentence or two, what this round is to find out; or why there is nothing more to try."""
    stop: bool = False
    """End the whole search; only without proposals."""


def ledger(room: Room, asked: Paged) -> str:
    """All training runs."""
    return page_of(showing.ledger(room.rows, room.start), asked.page)


def training_run(room: Room, asked: OfRow) -> str:
    """All about one."""
    return page_of(showing.row(room.row(asked.number), room.start), asked.page)


def curve(room: Room, asked: OfRow) -> str:
    """How its loss fell."""
    row = room.row(asked.number)
    return page_of(showing.curve(curves.rows(room.search.folder / "trainings" / row.training)), asked.page)


def selection(room: Room, asked: OfRow) -> str:
    """What it learnt from, in figures."""
    return page_of(showing.statistics(counted.read(room.selection(room.row(asked.number)))), asked.page)


def decisions(room: Room, asked: OfDecisions) -> str:
    """Which candidates were accepted or not, with the reason of each."""
    found = recorded.read(room.selection(room.row(asked.number)))
    wanted = asked.why.lower()
    fitting = (one for one in found if one.accepted == asked.accepted and wanted in f"{one.why} {one.reason}".lower())
    most = 2_000
    lines = [f"{one.place}: {one_line(one.why, 80)}: {one_line(one.reason, 240)}" for one in islice(fitting, most)]
    if len(lines) == most:
        lines.append(f"there may be more: the first {most} are listed")
    return page_of("\n".join(lines) or "There is none.", asked.page)


def versions(room: Room, asked: Paged) -> str:
    """Versions of the criteria."""
    kept = room.written()
    now = kept.in_force().number
    lines = [
        f"{one.number}{' (in force)' if one.number == now else ''}, by {one.by}: {one_line(one.why, 300)}"
        for one in kept.versions()
    ]
    return page_of("\n".join(lines), asked.page)


def read_criteria(room: Room, asked: OfVersion) -> str:
    """A version."""
    kept = room.written()
    return page_of((kept.version(asked.version) if asked.version else kept.in_force()).text, asked.page)


def revise(room: Room, asked: Revise) -> str:
    """Write a version, which is in force once a proposal names it."""
    kept = room.written()
    mine = [version for version in kept.versions() if version.by == room.author]
    if len(mine) >= room.width and all(one.text.strip() != asked.text.strip() for one in mine):
        listed = ", ".join(str(one.number) for one in mine)
        raise UserError(f"not written: you wrote {listed} in this round; a proposal can have no more")
    made = kept.add(asked.text, room.author, asked.why, adopt=False)
    return f"Version {made.number} is written. Name it in a proposal (criteria: {made.number}); else it stays unused."


def propose(room: Room, asked: Propose) -> str:
    """Take a proposal, if it can be trained."""
    if len(room.proposals) >= room.width:
        raise UserError(
            f"not taken: a round has {room.width} proposals at most, and there are {len(room.proposals)}; withdraw "
            "one, or finish"
        )
    recipe = changed(room.recipe(asked.base), asked.changes).model_copy(update={"name": room.start.name})
    if asked.data == "regenerate" and room.search.config.collect.traces:
        raise UserError("not taken: this search learns from runs that are there; it collects none (data: reuse)")
    version = _version(room, asked.criteria)
    proposal = Proposal(
        recipe=recipe, why=one_line(storable(asked.why), LONGEST_WHY), data=asked.data, criteria=version
    )
    known = _known(room, proposal)
    if known:
        raise UserError(f"not taken: {known}; propose something else")
    room.proposals.append(proposal)
    return f"Taken as proposal {len(room.proposals)} of {room.width} at most."


def _version(room: Room, asked: str) -> str:
    if room.criteria is None:
        if asked.strip():
            room.written()
        return ""
    kept = room.criteria
    return str((kept.version(asked.strip()) if asked.strip() else kept.in_force()).number)


def _known(room: Room, proposal: Proposal) -> str:
    """Where just that was tried already; empty when it was not."""
    for number, other in enumerate(room.proposals, start=1):
        if _key(other) == _key(proposal) and other.data == proposal.data:
            return f"it is proposal {number} of this round"
    latest = next((row.data for row in reversed(room.rows) if row.data), "")
    for row in room.rows:
        if _key(row) == _key(proposal) and proposal.data == "reuse" and row.data in ("", latest):
            return f"it was tried as {row.number}, and would come out the same"
    return ""


def _key(one: Proposal | Row) -> tuple[str, str]:
    return one.recipe.model_dump_json(exclude={"name"}), one.criteria


def withdraw(room: Room, asked: Withdraw) -> str:
    """Take a proposal back."""
    if asked.number > len(room.proposals):
        raise UserError(f"there is no proposal {asked.number}; there are {len(room.proposals)}")
    del room.proposals[asked.number - 1]
    return f"Withdrawn; {len(room.proposals)} left."


def finish(room: Room, asked: Finish) -> str:
    """Come to an end."""
    if not room.proposals and not asked.stop:
        raise UserError("not finished: propose a recipe first; stop: true ends the search without one")
    if room.proposals and asked.stop:
        raise UserError("not finished: stop ends the search, and there are proposals; withdraw them, or do not stop")
    room.closing = one_line(storable(asked.why), LONGEST_WHY)
    return "Finished."


def columns(room: Room, asked: Paged) -> str:
    """The views that SQL sees."""
    return page_of(query.schema(), asked.page)


ASKING = traces.tools(
    f"{COLLECTED}1",
    f"{COLLECTED}1 and so on for what is learnt from; base for the untrained model, and the number of a training run "
    "for its specialist, on some gate seeds.",
)

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("ledger", "All training runs so far: what was changed, losses, play, cost.", Paged, ledger),
        Tool("training_run", "All about one training run, with every behaviour metric.", OfRow, training_run),
        Tool("curve", "Its training curve.", OfRow, curve),
        Tool("selection", "What it learnt from: figures by phase, reason and episode.", OfRow, selection),
        Tool("decisions", "Which candidates were accepted or rejected for it, and why.", OfDecisions, decisions),
        Tool("criteria_versions", "All versions of the criteria: who wrote them, and why.", Paged, versions),
        Tool("read_criteria", "One version of the criteria.", OfVersion, read_criteria),
        *ASKING,
        Tool("sql_columns", "The views that sql can ask, and their columns.", Paged, columns),
        Tool("revise_criteria", "Write a new version of the criteria, for a proposal to name.", Revise, revise),
        Tool("propose", "Propose a recipe to train in this round.", Propose, propose, True),
        Tool("withdraw", "Take one of this round's proposals back.", Withdraw, withdraw, True),
        Tool("finish", "End the deliberation: this round's proposals are trained.", Finish, finish, True),
    )
}
"""Every tool by name, in the order in which they are offered."""

OF_CRITERIA = ("criteria_versions", "read_criteria", "revise_criteria")


def tools(criteria: bool) -> Mapping[str, Tool]:
    """The tools that are offered; those about criteria where there are any."""
    return {name: tool for name, tool in TOOLS.items() if criteria or name not in OF_CRITERIA}
