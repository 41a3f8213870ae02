"""Checking the candidate, and finishing: what has to hold before a revision is handed in."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from automem.check import Report
from automem.errors import UserError
from automem.scaffold import ScaffoldError
from meta import candidate
from meta.dialogue.tool import Arguments, Paged, Tool, page_of
from meta.reviewers.llm import structure
from meta.reviewers.llm.room import CANDIDATE, Room

LONGEST_DESCRIPTION = 200


class Finish(Arguments):
    """A revision in words."""

    analysis: Annotated[str, Field(min_length=40, max_length=20_000)]
    """What was wrong with how memory was used, which steps or figures show it, what you changed, and why that should
    help. Markdown."""
    description: Annotated[str, Field(min_length=8, max_length=LONGEST_DESCRIPTION)]
    """The change in one line."""


async def check(room: Room, asked: Paged) -> str:
    """What the checker says."""
    return page_of(told(await _checked(room)), asked.page)


async def finish(room: Room, asked: Finish) -> str:
    """Hand the revision in, if it is one."""
    description = asked.description.strip()
    if "\n" in description or not description.isprintable():
        raise UserError("not finished: the description has to be one line of text")
    report = room.checked or await _checked(room)
    if not report.ok:
        raise UserError(f"not finished: the candidate cannot be used as it is.\n{page_of(told(report), 1)}")
    try:
        made = room.version(CANDIDATE)
    except ScaffoldError as error:
        raise UserError(f"not finished: the candidate does not load: {error}") from error
    changes = structure.changes(room.evidence.parent, made)
    if not changes.any:
        raise UserError("not finished: the candidate plays exactly as its parent; change something, or check diff")
    if not changes.structural:
        raise UserError(
            "not finished: only wording has changed. At least one change has to be structural: memory files and their "
            "kinds, keys, entries or pins, operations, limits, hooks, or what a template shows and when"
        )
    problem = candidate.problem(made, room.evidence.parent, made.schema.scaffold.version, room.evidence.attempts)
    if problem:
        raise UserError(f"not finished: {problem}")
    room.finished = (description, asked.analysis.strip())
    return f"Finished. Structural changes: {'; '.join(changes.structural)}."


async def _checked(room: Room) -> Report:
    room.checked = await room.desk.check()
    return room.checked


def told(report: Report) -> str:
    """A report as text: a finding and what to do on a line each."""
    lines = []
    for finding in report.findings:
        place = finding.file or "the folder"
        where = place if finding.line is None else f"{place}:{finding.line}"
        lines.append(f"{where}: {finding.severity}: {finding.message} [{finding.code}]")
        lines.append(f"    do: {finding.do}")
    lines += [f"not checked: {note}" for note in report.skipped]
    if report.figures:
        shown = ", ".join(f"{name.replace('_', ' ')} {value:.10g}" for name, value in report.figures.items())
        lines.append(f"smoke episode: {shown}")
    counted = f"{len(report.errors)} errors, {len(report.warnings)} warnings"
    lines.append(f"{counted}: {'it can be played' if report.ok else 'it cannot be used as it is'}")
    return "\n".join(lines)


TOOLS = (
    Tool(
        "check",
        "Check the candidate: everything that is wrong with its files, and a short episode played with it.",
        Paged,
        check,
    ),
    Tool(
        "finish",
        "Hand the candidate in. Refused until it passes the checker and holds at least one structural change.",
        Finish,
        finish,
        True,
    ),
)
