"""Two runs, episode against episode: the same task and seed played by both, and what came of it.

Pairing takes out how hard a seed is, which is most of what makes progressions differ; so a difference
shows with far fewer episodes than two intervals that overlap would suggest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import games
from automem import sign_flips
from automem.episode import EpisodeError, EpisodeResult
from automem.errors import UserError
from automem.metric_names import shares
from automem.metrics import Counts, rates
from automem.runs import PlayedModel, PlayedSpecialist, Run, deciding
from automem.statistics import Estimate, combined, estimate, mean, won_tied_lost

Pair = tuple[EpisodeResult, EpisodeResult]


@dataclass(frozen=True, slots=True)
class Paired:
    """A against B over the episodes that both played.

    Attributes:
        name: the task, the game, or "overall".
        pairs: episodes.
        mean_a, mean_b: progression, in [0, 1].
        difference: mean of B minus A.
        error: its standard error; None where a task has fewer than two pairs.
        interval: its 95 % interval: Student's t over the pairs of a task; over several tasks, whose errors are
            independent, the normal one.
        p: how often chance alone would make as large a difference, by `automem.sign_flips`; None for a part.
        won, tied, lost: pairs in which B came further, as far, less far.
    """

    name: str
    pairs: int
    mean_a: float
    mean_b: float
    difference: float
    error: float | None
    interval: tuple[float, float] | None
    p: float | None
    won: int
    tied: int
    lost: int


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A behaviour metric (`automem.metrics.rates`), or the share of an operation; `change` is B over A minus 1."""

    name: str
    a: float | None
    b: float | None
    change: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare` found.

    Attributes:
        a, b: names of the runs.
        tasks: one line a task.
        overall: over all of them: a game's mean is the mean of its tasks', the whole that of the games. It is BALROG's
            where every task of a game has as many pairs.
        behaviour: metrics of both, over all paired episodes.
        operations: how large a part of all operations each was, in [0, 1]; None where there were none at all.
        per_task: task -> `behaviour` of its paired episodes alone.
        achievements: task -> achievement -> in how many paired episodes A and B reached it, where that differs.
        warnings: why the two may not be comparable.
    """

    a: str
    b: str
    tasks: tuple[Paired, ...]
    overall: Paired
    behaviour: tuple[Behaviour, ...]
    operations: tuple[Behaviour, ...]
    per_task: Mapping[str, tuple[Behaviour, ...]]
    achievements: Mapping[str, Mapping[str, tuple[int, int]]]
    warnings: tuple[str, ...]


def compare(a: Run, b: Run) -> Comparison:
    """Compare two runs. Raises `UserError` when no episode was finished by both."""
    (finished_a, wrong_a), (finished_b, wrong_b) = _finished(a), _finished(b)
    wrong = [_told_wrong(run, found) for run, found in ((a, wrong_a), (b, wrong_b)) if found]
    shared = sorted(finished_a.keys() & finished_b.keys())
    if not shared:
        raise UserError(
            f"{a.config.name} and {b.config.name} have no finished episode of the same task and seed in common; "
            + ("; ".join(wrong) or "play the same seeds: automem eval … --seeds")
        )
    by_task: dict[str, list[Pair]] = {}
    for episode in shared:
        by_task.setdefault(episode[0], []).append((finished_a[episode], finished_b[episode]))
    tasks = {task: _task(task, pairs) for task, pairs in by_task.items()}
    by_game: dict[str, list[Paired]] = {}
    for task, paired in tasks.items():
        by_game.setdefault(games.game_of(task), []).append(paired)
    totals = {task: _totals(pairs) for task, pairs in by_task.items()}
    of_a, of_b = (reduce(Counts.merged, (found[i] for found in totals.values())) for i in (0, 1))
    per_game = [_over(game, parts) for game, parts in by_game.items()]
    return Comparison(
        a=a.config.name,
        b=b.config.name,
        tasks=tuple(tasks.values()),
        overall=replace(_over("overall", per_game), p=sign_flips.p_value(_weighted(by_task))),
        behaviour=_side_by_side(rates(of_a), rates(of_b)),
        operations=_operations(of_a, of_b),
        per_task={task: _side_by_side(rates(a), rates(b)) for task, (a, b) in totals.items()},
        achievements={task: changed for task, pairs in by_task.items() if (changed := _achievements(pairs))},
        warnings=(
            *wrong,
            *_warnings(a, b, by_task, (finished_a.keys() ^ finished_b.keys()) - wrong_a.keys() - wrong_b.keys()),
        ),
    )


def _finished(run: Run) -> tuple[dict[tuple[str, int], EpisodeResult], dict[tuple[str, int], str]]:
    """Finished episodes by task and seed, and what is wrong with those whose result counts for nothing."""
    found, wrong = {}, {}
    for job in run.jobs():
        try:
            result = run.result(job)
        except EpisodeError as error:
            wrong[job.task, job.seed] = str(error)
            continue
        if result is not None:
            found[job.task, job.seed] = result
    return found, wrong


def _told_wrong(run: Run, wrong: Mapping[tuple[str, int], str]) -> str:
    one, *more = wrong.values()
    others = f"; and {len(more)} more" if more else ""
    return f"{run.config.name}: left out is what holds no result of its own: {one}{others}"


def _task(name: str, pairs: Sequence[Pair]) -> Paired:
    differences = [b.progression - a.progression for a, b in pairs]
    found = estimate(differences)
    won, tied, lost = won_tied_lost(differences)
    return Paired(
        name=name,
        pairs=len(pairs),
        mean_a=mean([a.progression for a, _ in pairs]),
        mean_b=mean([b.progression for _, b in pairs]),
        difference=found.mean,
        error=found.error,
        interval=found.interval,
        p=sign_flips.p_value(differences),
        won=won,
        tied=tied,
        lost=lost,
    )


def _weighted(by_task: Mapping[str, Sequence[Pair]]) -> list[float]:
    """Differences of all episodes, each by its part in the overall mean."""
    tasks_of = Counter(games.game_of(task) for task in by_task)
    return [
        (b.progression - a.progression) / (len(tasks_of) * tasks_of[games.game_of(task)] * len(pairs))
        for task, pairs in by_task.items()
        for a, b in pairs
    ]


def _over(name: str, parts: Sequence[Paired]) -> Paired:
    """The mean of parts whose errors are independent."""
    found = combined([Estimate(part.difference, part.error, part.interval) for part in parts])
    return Paired(
        name=name,
        pairs=sum(part.pairs for part in parts),
        mean_a=mean([part.mean_a for part in parts]),
        mean_b=mean([part.mean_b for part in parts]),
        difference=found.mean,
        error=found.error,
        interval=found.interval,
        p=None,
        won=sum(part.won for part in parts),
        tied=sum(part.tied for part in parts),
        lost=sum(part.lost for part in parts),
    )


def _totals(pairs: Sequence[Pair]) -> tuple[Counts, Counts]:
    of_a, of_b = (reduce(Counts.merged, (pair[i].counts for pair in pairs), Counts()) for i in (0, 1))
    return of_a, of_b


def _side_by_side(a: Mapping[str, float | None], b: Mapping[str, float | None]) -> tuple[Behaviour, ...]:
    return tuple(
        Behaviour(name, a[name], b[name], _change(a[name], b[name]))
        for name in a
        if a[name] is not None or b[name] is not None
    )


def _operations(a: Counts, b: Counts) -> tuple[Behaviour, ...]:
    parts = [shares(counts.operations) for counts in (a, b)]
    names = sorted({name for part in parts for name in part})
    of_a, of_b = ({name: part.get(name, 0.0) if part else None for name in names} for part in parts)
    return _side_by_side(of_a, of_b)


def _change(a: float | None, b: float | None) -> float | None:
    return b / a - 1 if a and b is not None else None


def _achievements(pairs: Sequence[Pair]) -> dict[str, tuple[int, int]]:
    names = sorted({name for pair in pairs for result in pair for name in result.achievements})
    counted = {name: (_reached(pairs, 0, name), _reached(pairs, 1, name)) for name in names}
    return {name: counts for name, counts in counted.items() if counts[0] != counts[1]}


def _reached(pairs: Sequence[Pair], which: int, achievement: str) -> int:
    return sum(bool(pair[which].achievements.get(achievement)) for pair in pairs)


def _warnings(a: Run, b: Run, by_task: Mapping[str, Sequence[Pair]], unpaired: set[tuple[str, int]]) -> list[str]:
    """Everything but the scaffold that differs."""
    found = []
    if unpaired:
        found.append(f"{len(unpaired)} episodes were finished by one of the runs only and are left out")
    if a.config.agent != b.config.agent:
        found.append(f"other agents: {a.config.agent} and {b.config.agent}")
    mine, theirs = (run.config.model.model_copy(update={"api_base": ""}) for run in (a, b))
    if mine != theirs:
        found.append(f"other models: {_short(mine)} and {_short(theirs)}")
    specialists = [run.config.specialist and run.config.specialist.decisive for run in (a, b)]
    if specialists[0] != specialists[1]:
        shown = ["none" if one is None else _with_turns(one) for one in specialists]
        found.append(f"other memory specialists: {shown[0]} and {shown[1]}")
    for task, pairs in by_task.items():
        for limits in sorted({(x.steps_limit, y.steps_limit) for x, y in pairs if x.steps_limit != y.steps_limit}):
            found.append(f"{task}: other step limits, {limits[0]} and {limits[1]}")
        for sets in sorted({(str(dict(x.facts)), str(dict(y.facts))) for x, y in pairs if x.facts != y.facts}):
            found.append(f"{task}: other level sets, {sets[0]} and {sets[1]}")
    for package in deciding(a.config, b.config):
        then, now = a.config.versions.get(package), b.config.versions.get(package)
        # That another agent comes from another package goes without saying.
        if then != now and (a.config.agent == b.config.agent or None not in (then, now)):
            found.append(f"other versions of {package}: {then} and {now}")
    if a.config.sandbox.model_copy(update={"unsafe": False}) != b.config.sandbox.model_copy(update={"unsafe": False}):
        found.append("other limits of scaffold code")
    if not found and all(x == y for x, y in _scaffolds(a, b)):
        found.append("both played the same scaffold with the same model: differences are chance")
    return found


def _scaffolds(a: Run, b: Run) -> list[tuple[Any, Any]]:
    return [
        (a.config.scaffolds[game].identity, b.config.scaffolds[game].identity)
        for game in a.config.scaffolds.keys() & b.config.scaffolds.keys()
    ]


def _with_turns(specialist: PlayedSpecialist) -> str:
    return f"{_short(specialist.model)} (consult turns: {specialist.consult_turns})"


def _short(model: PlayedModel) -> str:
    told = model.name + (f" at temperature {model.temperature:g}" if model.temperature else "")
    return told + (f" with replies of {model.max_tokens} tokens" if model.max_tokens else "")
