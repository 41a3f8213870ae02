"""Small loops on a real game: prepared revisions instead of a reviewer that thinks, few seeds, short episodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from automem.evaluate import make_model
from automem.runs import PlayedModel
from meta import loop as loops
from meta import reviewers
from meta.evidence import Attempt, Evidence
from meta.gate import Look
from meta.loop import LoopRequest
from meta.reviewer import Desk, NothingLeft, Revision, Spent
from meta.settings import GateSettings, ReviewerSettings, SearchSettings
from meta.storage import LoopFolder

Edit = Callable[[Path], None]
"""Changes the files of a candidate, given its folder."""


class Prepared:
    """A reviewer whose revisions were written before: attempt number -> what it does to the files."""

    name = "prepared"

    def __init__(self, edits: Mapping[str, Edit]) -> None:
        self.edits = edits
        self.seen: dict[str, Evidence] = {}
        self.calls: list[str] = []

    async def ready(self) -> None:
        """Always."""

    async def close(self) -> None:
        """Nothing to close."""

    async def revise(self, evidence: Evidence, desk: Desk) -> Revision:
        """Make the edit of this number."""
        self.calls.append(evidence.number)
        self.seen[evidence.number] = evidence
        if evidence.number not in self.edits:
            raise NothingLeft("that was all")
        self.edits[evidence.number](desk.candidate)
        return Revision(f"edit {evidence.number}", f"because of **{evidence.number}**", Spent(turns=1, usd=0.5))


class Quiet:
    """Watches and keeps what it was told."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.looks: list[tuple[str, Look]] = []
        self.alphas: list[float] = []
        self.steps = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def reaching(self, model: str) -> None: ...

    def opened(self, loop: LoopFolder, done: Any) -> None: ...

    def began(self, revision: int, parent: Any, alpha: float) -> None:
        self.alphas.append(alpha)

    def playing(self, number: str, version: Any, seeds: int) -> None: ...

    def doing(self, number: str, text: str) -> None: ...

    def reviewed(self, number: str, description: str, spent: Spent) -> None: ...

    def looked(self, number: str, look: Look) -> None:
        self.looks.append((number, look))

    def ended(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)

    def turn(self, phase: Any, turn: Any) -> None: ...

    async def stepped(self, *_: Any) -> None:
        self.steps += 1


def request(**changes: Any) -> LoopRequest:
    """A loop on Crafter: four gate seeds judged as in the paper, two held-out ones, 30 steps."""
    small = LoopRequest(
        game="crafter",
        model=PlayedModel(name="scripted"),
        gate_seeds="10000..10003",
        held_out="20000,20001",
        steps=30,
        name="small",
        gate=GateSettings(kind="paper", most=4, batch=4),
        search=SearchSettings(iterations=2, attempts=1, continuations=1, shown=2),
        reviewer=ReviewerSettings(kind="prepared"),
    )
    return replace(small, **changes)


def run(
    edits: Mapping[str, Edit], monkeypatch: Any, asked: LoopRequest | None = None, resume: bool = False
) -> tuple[LoopFolder, dict[str, Any], Prepared, Quiet]:
    """Run a loop with prepared revisions."""
    asked = asked or request()
    asked = replace(asked, resume=resume)
    reviewer, watcher = Prepared(edits), Quiet()
    monkeypatch.setattr(reviewers, "REVIEWERS", {**reviewers.REVIEWERS, "prepared": lambda settings: reviewer})
    planned = loops.plan(asked)
    model = make_model(asked.model, processes=0)
    folder, result = asyncio.run(loops.run(planned, resume, model, watcher, workers=4))
    return folder, result, reviewer, watcher


def setting(name: str, value: object) -> Edit:
    """Changes one line of scaffold.toml."""

    def edit(folder: Path) -> None:
        path = folder / "scaffold.toml"
        lines = path.read_text().split("\n")
        path.write_text("\n".join(f"{name} = {value}" if line.startswith(f"{name} =") else line for line in lines))

    return edit


CHARS = setting("result_chars", 1500)
TURNS = setting("log_turns", 4)
OTHER = setting("plan_turns", 4)


def one(continuations: int = 0) -> SearchSettings:
    """One revision of one attempt."""
    return SearchSettings(iterations=1, attempts=1, continuations=continuations, shown=2)


def alone(iterations: int) -> SearchSettings:
    """Revisions of one attempt each."""
    return SearchSettings(iterations=iterations, attempts=1, continuations=0, shown=2)
