"""The loop: revision after revision, each tried in several attempts, the accepted ones becoming parents.

The order of everything follows from the settings and from how attempts ended, never from time, so that a
loop that was killed and resumed takes the same way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from automem import compare
from automem.episode import write_json
from automem.scaffold import Scaffold
from meta import parents, storage
from meta.arena import Arena
from meta.evidence import Attempt, Outcome
from meta.gate.errors import ErrorBudget
from meta.parents import Accepted
from meta.reviewer import Reviewer
from meta.storage import LoopFolder
from meta.trial import Gates, Trial
from meta.watching import LoopWatcher

T = TypeVar("T")


class Search:
    """Runs a loop to its end."""

    def __init__(self, loop: LoopFolder, arena: Arena, reviewer: Reviewer, gates: Gates, watcher: LoopWatcher) -> None:
        self._loop = loop
        self._arena = arena
        self._watcher = watcher
        self._trial = Trial(loop, arena, reviewer, gates, watcher)
        self._settings = loop.config.search
        slots = self._settings.attempts * (1 + self._settings.continuations)
        self._errors = ErrorBudget(loop.config.gate.error, self._settings.iterations, slots)
        self._began = time.monotonic()

    async def run(self) -> dict[str, Any]:
        """Search, then play the best version on held-out seeds. Returns ``result.json``, as written.

        Raises `UserError` for what is no candidate's doing; the loop can be resumed then.
        """
        root = self._loop.root()
        accepted = [Accepted(root, 0.0, 0)]
        revisions: list[list[Attempt]] = []
        stopped = ""
        for revision in range(1, self._settings.iterations + 1):
            stopped = self._out_of_budget()
            if stopped:
                break
            parent = parents.choose(accepted, revision, self._settings)
            attempts = await self._revision(revision, parent.scaffold, revisions)
            revisions.append(attempts)
            accepted = [Accepted(a.scaffold, a.gain, a.tried + (a is parent)) for a in accepted]
            winner = _better([attempt for attempt in attempts if attempt.outcome == "accepted"])
            if winner is not None:
                accepted.append(Accepted(winner.scaffold(), parent.gain + winner.looks[-1].mean, 0))
            elif self._settings.parents == "best" and any(a.outcome == "exhausted" for a in attempts):
                stopped = "the reviewer has nothing more to propose"
                break
        return await self._finish(root, accepted, revisions, stopped)

    async def _revision(self, number: int, parent: Scaffold, before: Sequence[Sequence[Attempt]]) -> list[Attempt]:
        """All attempts at a revision, in order: side by side as far as the settings say, until one is accepted."""
        earlier = [attempt for attempts in before for attempt in attempts]
        alpha = self._errors.alpha_of(number, [_judged(attempts) for attempts in before])
        self._watcher.began(number, parent, alpha)
        made: list[Attempt] = []
        for first in range(1, self._settings.attempts + 1, self._settings.side_by_side):
            last = min(first + self._settings.side_by_side, self._settings.attempts + 1)
            chains = (self._chain(f"{number}.{a}", parent, alpha, [*earlier, *made]) for a in range(first, last))
            made += [attempt for chain in await _all(chains) for attempt in chain]
            if any(attempt.outcome == "accepted" for attempt in made):
                break
        return made

    async def _chain(self, number: str, parent: Scaffold, alpha: float, earlier: Sequence[Attempt]) -> list[Attempt]:
        """A fresh attempt, and what goes on from it when it failed."""
        made: list[Attempt] = []
        for continuation in range(1 + self._settings.continuations):
            before = made[-1] if made else None
            attempt = await self._trial.attempt(f"{number}.{continuation}", parent, alpha, [*earlier, *made], before)
            made.append(attempt)
            if attempt.outcome in ("accepted", "exhausted"):
                break
        return made

    def _out_of_budget(self) -> str:
        """Why no further revision is begun; empty when one is."""
        budget = self._loop.config.budget
        minutes = (time.monotonic() - self._began) / 60
        if budget.minutes is not None and minutes >= budget.minutes:
            return f"the budget of {budget.minutes:g} minutes is used up"
        spent = self._loop.spent().usd + self._arena.cost()
        if budget.usd is not None and spent >= budget.usd:
            return f"the budget of {budget.usd:g} USD is used up: {spent:.2f} were spent"
        episodes = self._arena.episodes()
        if budget.episodes is not None and episodes >= budget.episodes:
            return f"the budget of {budget.episodes} episodes is used up: {episodes} were played"
        return ""

    async def _finish(
        self, root: Scaffold, accepted: Sequence[Accepted], revisions: Sequence[Sequence[Attempt]], stopped: str
    ) -> dict[str, Any]:
        """The best version against the first one, on gate seeds that both have played and on held-out ones."""
        best = parents.best(accepted).scaffold
        result: dict[str, Any] = {
            "best": {"ref": best.ref, "identity": best.identity},
            "accepted": [{"ref": a.scaffold.ref, "identity": a.scaffold.identity} for a in accepted],
            "revisions": len(revisions),
            "attempts": sum(len(attempts) for attempts in revisions),
            "stopped": stopped,
            "gate": None,
            "held_out": None,
        }
        if best.identity != root.identity:
            seeds = self._loop.config.held_out
            for version in (root, best):
                self._watcher.playing("held-out", version, len(seeds))
            await _all(self._arena.play(version, seeds, "held-out") for version in (root, best))
            for version in (root, best):
                self._arena.summarise(version, "held-out")
            for purpose in ("gate", "held-out"):
                found = compare.compare(self._arena.run(root, purpose), self._arena.run(best, purpose))
                result[purpose.replace("-", "_")] = asdict(found)
            result["gap"] = _gap(result["gate"]["overall"], result["held_out"]["overall"])
        result["spent"] = asdict(self._loop.spent())
        result["episodes"] = self._arena.episodes()
        result["cost"] = self._arena.cost()
        write_json(self._loop.folder / storage.RESULT, result)
        return result


async def _all(parts: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Results of all coroutines, in order; when one fails, the others are stopped and its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part) for part in parts]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return [task.result() for task in tasks]


def _judged(attempts: Sequence[Attempt]) -> list[Outcome]:
    """How the candidates that came before the gate ended; one that was stopped after a look had its chance, too."""
    return ["accepted" if a.outcome == "accepted" else "rejected" for a in attempts if a.looks]


def _better(accepted: Sequence[Attempt]) -> Attempt | None:
    """Of several that were accepted side by side, the one with the best lower bound."""

    def rank(attempt: Attempt) -> tuple[float, float]:
        look = attempt.looks[-1]
        return (look.mean if look.lower is None else look.lower, look.mean)

    return max(accepted, key=rank, default=None)


def _gap(gate: dict[str, Any], held_out: dict[str, Any]) -> dict[str, Any]:
    """How much less was gained on held-out seeds, and whether that is more than chance allows."""
    gap = gate["difference"] - held_out["difference"]
    errors = (gate["error"], held_out["error"])
    error = None if None in errors else (errors[0] ** 2 + errors[1] ** 2) ** 0.5
    interval = held_out["interval"]
    return {
        "gap": gap,
        "error": error,
        "flagged": error is not None and gap > 2 * error,
        "confirmed": interval is not None and interval[0] > 0,
    }
