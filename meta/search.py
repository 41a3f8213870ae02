"""The loop: revision after revision, each tried in several attempts, the accepted ones becoming parents.

The order of everything follows from the settings and from how attempts ended, never from time, so that a
loop that was killed and resumed takes the same way.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from automem import compare, sign_flips
from automem.episode import write_json
from automem.errors import UserError
from automem.scaffold import Scaffold
from automem.statistics import estimate, mean, won_tied_lost
from meta import parents, storage
from meta.arena import Arena, Played, Purpose
from meta.evidence import Attempt, Outcome
from meta.gate.errors import ErrorBudget
from meta.parents import Accepted
from meta.reviewer import Reviewer
from meta.storage import LoopFolder
from meta.trial import Gates, Trial
from meta.twins import Twins
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
            # What was begun is gone on with, whatever was spent since: a resumed loop takes the way of one that was
            # never stopped.
            stopped = "" if self._loop.begun(revision) else self._out_of_budget()
            if stopped:
                break
            parent = parents.choose(accepted, revision, self._settings)
            attempts = await self._revision(revision, parent.scaffold, revisions)
            revisions.append(attempts)
            accepted = [Accepted(a.scaffold, a.gain, a.tried + (a is parent)) for a in accepted]
            if any(attempt.parent_failed for attempt in attempts):
                accepted = [a for a in accepted if a.scaffold.identity != parent.scaffold.identity]
            winner = parents.kept(attempts)
            if winner is not None:
                # What was accepted for a leaner memory is preferred to its parent also where it plays no better.
                accepted.append(Accepted(self._loop.version(winner), parent.gain + max(winner.looks[-1].mean, 0.0), 0))
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
            twins = Twins(f"{number}.{a}.0" for a in range(first, last))
            chains = (self._chain(f"{number}.{a}", parent, alpha, [*earlier, *made], twins) for a in range(first, last))
            made += [attempt for chain in await _all(chains) for attempt in chain]
            if any(attempt.outcome == "accepted" or attempt.parent_failed for attempt in made):
                break
        return made

    async def _chain(
        self, number: str, parent: Scaffold, alpha: float, earlier: Sequence[Attempt], twins: Twins
    ) -> list[Attempt]:
        """A fresh attempt, and what goes on from it when it failed."""
        made: list[Attempt] = []
        for continuation in range(1 + self._settings.continuations):
            before = made[-1] if made else None
            attempt = await self._trial.attempt(
                f"{number}.{continuation}", parent, alpha, [*earlier, *made], before, twins
            )
            made.append(attempt)
            if attempt.outcome in ("accepted", "exhausted") or attempt.parent_failed:
                break
        return made

    def _out_of_budget(self) -> str:
        """Why no further revision is begun; empty when one is."""
        budget = self._loop.config.budget
        minutes = (time.monotonic() - self._began) / 60
        if budget.minutes is not None and minutes >= budget.minutes:
            return f"the budget of {budget.minutes:g} minutes is used up"
        spent = self._loop.spent().usd + self._loop.cost()
        if budget.usd is not None and spent >= budget.usd:
            return f"the budget of {budget.usd:g} USD is used up: {spent:.2f} were spent"
        episodes = self._loop.episodes()
        if budget.episodes is not None and episodes >= budget.episodes:
            return f"the budget of {budget.episodes} episodes is used up: {episodes} were played"
        return ""

    async def _finish(
        self, root: Scaffold, accepted: Sequence[Accepted], revisions: Sequence[Sequence[Attempt]], stopped: str
    ) -> dict[str, Any]:
        """The best version against the first one, on gate seeds that both have played and on held-out ones."""
        best, unfit = await self._held_out(root, accepted)
        result: dict[str, Any] = {
            "best": {"ref": best.ref, "identity": best.identity},
            "accepted": [{"ref": a.scaffold.ref, "identity": a.scaffold.identity} for a in accepted],
            "revisions": len(revisions),
            "attempts": sum(len(attempts) for attempts in revisions),
            "judged": sum(bool(attempt.looks) for attempts in revisions for attempt in attempts),
            "stopped": stopped,
            "unfit": unfit,
            "gate": None,
            "held_out": None,
        }
        if best.identity != root.identity:
            for version in (root, best):
                self._arena.summarise(version, "held-out")
            for purpose in ("gate", "held-out"):
                found = asdict(compare.compare(self._arena.run(root, purpose), self._arena.run(best, purpose)))
                found["overall"] |= await self._over_replicates(root, best, purpose)
                result[purpose.replace("-", "_")] = found
            result["gap"] = _gap(result["gate"]["overall"], result["held_out"]["overall"])
        result["spent"] = asdict(self._loop.spent())
        result["episodes"] = self._loop.episodes()
        result["cost"] = self._loop.cost()
        write_json(self._loop.folder / storage.RESULT, result)
        return result

    async def _held_out(self, root: Scaffold, accepted: Sequence[Accepted]) -> tuple[Scaffold, list[dict[str, str]]]:
        """Play held-out seeds: the best version that can be played on all of them, and those that cannot, with why."""
        seeds = self._loop.config.held_out
        left, unfit = list(accepted), []
        while (best := parents.best(left).scaffold).identity != root.identity:
            for version in (root, best):
                self._watcher.playing("held-out", version, len(seeds))
            first, found = await asyncio.gather(
                *(self._arena.play(version, seeds, "held-out") for version in (root, best)), return_exceptions=True
            )
            for failed in (first, found):
                if isinstance(failed, UserError) or not isinstance(failed, Exception | Played):
                    raise failed
            if isinstance(first, Exception):
                raise UserError(f"{root.ref}, which the loop began with, cannot be played: {first}") from first
            if not isinstance(found, Exception):
                break
            unfit.append({"ref": best.ref, "identity": best.identity, "why": str(found)})
            left = [a for a in left if a.scaffold.identity != best.identity]
        return best, unfit

    async def _over_replicates(self, root: Scaffold, best: Scaffold, purpose: Purpose) -> dict[str, Any]:
        """The gain by seed, where a seed has several episodes; nothing where each has one."""
        if self._loop.config.replicates == 1:
            return {}
        seeds = _both_played(self._loop, purpose, root, best)
        before, after = await _all(self._arena.play(version, seeds, purpose) for version in (root, best))
        differences = [after.progression[seed] - before.progression[seed] for seed in seeds]
        found = estimate(differences)
        won, tied, lost = won_tied_lost(differences)
        return {
            "pairs": len(seeds),
            "mean_a": mean([before.progression[seed] for seed in seeds]),
            "mean_b": mean([after.progression[seed] for seed in seeds]),
            "difference": found.mean,
            "error": found.error,
            "interval": found.interval,
            "p": sign_flips.p_value(differences),
            "won": won,
            "tied": tied,
            "lost": lost,
        }


def _both_played(loop: LoopFolder, purpose: Purpose, *versions: Scaffold) -> list[int]:
    """Seeds of which every task and replicate was finished by all versions."""
    seeds = loop.config.gate_seeds if purpose == "gate" else loop.config.held_out
    wanted = len(loop.config.tasks) * loop.config.replicates
    found = [
        Counter(int(path.parent.name.removeprefix("seed-")) for path in loop.results(version.identity, purpose))
        for version in versions
    ]
    return [seed for seed in seeds if all(count[seed] == wanted for count in found)]


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


def _gap(gate: dict[str, Any], held_out: dict[str, Any]) -> dict[str, Any]:
    """How much less was gained on held-out seeds, and whether that is more than chance allows.

    A gain that was accepted as soon as it could be is, on average, a lucky one; so where held-out seeds confirm a gain,
    it has to be smaller by three errors to be flagged, and by two where they do not.
    """
    gap = gate["difference"] - held_out["difference"]
    errors = (gate["error"], held_out["error"])
    error = None if None in errors else (errors[0] ** 2 + errors[1] ** 2) ** 0.5
    interval = held_out["interval"]
    confirmed = interval is not None and interval[0] > 0
    flagged = error is not None and gap > (3 if confirmed else 2) * error
    return {"gap": gap, "error": error, "flagged": flagged, "confirmed": confirmed}
