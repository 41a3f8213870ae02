"""Measured data that was made up, and what becomes of a scaffold when a proposal is carried out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from automem import scaffold
from automem.metrics import Counts
from automem.scaffold import Scaffold
from meta.reviewers.rules.draft import Draft
from meta.reviewers.rules.findings import FieldFigures, FileFigures, Measured
from meta.reviewers.rules.proposal import Proposal

SHOWS = {"facing": True, "level": False, "message": False, "planted": True, "achieved": True}


def figures(*files: FileFigures, game: str = "crafter", counts: Counts | None = None, **more: Any) -> Measured:
    """Figures of a thousand steps."""
    counts = counts or Counts(steps=1000, prompt_tokens=5_000_000)
    told = {"episodes": 4, "steps": 1000, "first_prompt": 7000.0, "shows": SHOWS, **more}
    return Measured(game=game, counts=counts, files={file.name: file for file in files}, **told)


def of_file(loaded: Scaffold, name: str, **more: Any) -> FileFigures:
    """Figures of a file that this scaffold plans."""
    planned = next(file for file in loaded.schema.files if file.name == name)
    return FileFigures(name, planned, **more)


def verbatim_log(loaded: Scaffold, name: str = "map_notes.txt", **more: Any) -> FileFigures:
    """A log that holds whole observations, is read all the time, and has outgrown every read."""
    told: dict[str, Any] = {
        "writes": 1000, "duplicates": 150, "added_bytes": 400_000, "lines": 1000, "chars": 400_000, "repeated": 0.7,
        "placed": 1.0, "reads": 1000, "truncated": 800, "searches": 4000, "nothing": 400, "read_steps": 0.9,
        "fields": {"observation": FieldFigures(390, 0.75), "action": FieldFigures(7, 0.9), "step": FieldFigures(3, 0)},
        "follows": 1.0, "end_bytes": 100_000, "end_lines": 250,
    }  # fmt: skip
    return of_file(loaded, name, **{**told, **more})


def carried_out(proposal: Proposal, loaded: Scaffold, folder: Path) -> Scaffold:
    """The scaffold after the change, loaded anew."""
    draft = Draft(loaded.sources, "candidate", loaded.identity)
    proposal.edit(draft)
    folder.mkdir(parents=True)
    draft.save(folder, "# notes\n")
    return scaffold.load(str(folder))


def planned(loaded: Scaffold) -> dict[str, Any]:
    """The planned files by name."""
    return {file.name: file for file in loaded.schema.files}
