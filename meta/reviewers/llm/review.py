"""One review: the meta-LLM asks, edits, checks and finishes."""

from __future__ import annotations

import asyncio

from automem.check.folder import contents
from automem.models.protocol import ChatModel
from meta import storage
from meta.dialogue import Dialogue, DialogueFailed, DialogueUnavailable, LlmOptions
from meta.evidence import Evidence
from meta.reviewer import Desk, ReviewerUnavailable, ReviewFailed, Revision
from meta.reviewers.llm import prompting
from meta.reviewers.llm.room import Room
from meta.reviewers.llm.tools import TOOLS

TRANSCRIPT = "transcript.jsonl"
START = "start"
"""In the attempt's folder: what was said (`meta.dialogue.transcript`), and the candidate's files as they were when the
review began, from which a resumption makes all edits again."""


async def review(model: ChatModel, options: LlmOptions, evidence: Evidence, desk: Desk) -> Revision:
    """The revision, from a review that begins or is taken up again. Raises `ReviewFailed` or `ReviewerUnavailable`."""
    room = Room(evidence, desk)
    whose = {"attempt": evidence.number, "parent": evidence.parent.identity}
    words = prompting.Review(evidence, tuple(TOOLS.values()))
    try:
        dialogue = Dialogue(model, options, TOOLS, words, desk.budget, desk.folder / TRANSCRIPT, whose, desk.said)
        await asyncio.to_thread(_restore, desk)
        spent = await dialogue.run(room)
    except DialogueFailed as failed:
        raise ReviewFailed(str(failed), failed.spent) from None
    except DialogueUnavailable as gone:
        raise ReviewerUnavailable(str(gone)) from None
    assert room.finished is not None
    description, analysis = room.finished
    return Revision(description, analysis, spent)


def _restore(desk: Desk) -> None:
    """Put the candidate's files back to what they were when the review began: edits are made again."""
    start = desk.folder / START
    if start.is_dir():
        storage.write_scaffold(desk.candidate, contents(start).sources)
    else:
        storage.write_scaffold(start, contents(desk.candidate).sources)
