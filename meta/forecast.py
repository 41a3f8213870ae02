"""What a budget buys, before anything is spent: revisions, episodes, tokens, money, hours.

Costs are those of episodes that were seen: of the same model on the same tasks, in any run or loop here.
Where none was seen, the forecast says so instead of guessing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.text import Text

from automem import runs
from automem.episode import RESULT, EpisodeResult, load_result
from automem.errors import UserError
from automem.statistics import mean
from meta import storage
from meta.reviewer import Spent
from meta.settings import LoopConfig
from meta.storage import COPIED

MOST_SEEN = 400
"""Episodes that a forecast is made from, at most."""

EVALUATIONS = "evaluations"

LONG_REST = 10
"""Times the usual gap between two episodes, beyond which nobody was playing."""

FEWEST = 3
"""Revisions below which a search is none: one may fail for any reason."""

TYPICAL = 0.75
"""Of a candidate's most seeds, what one takes until the gate decides: some are settled early, most are not."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The mean cost of an episode.

    Attributes:
        episodes: how many were looked at.
        steps: steps of one.
        tokens: prompt and completion tokens of the task model.
        usd: dollars.
        seconds: wall-clock seconds that one takes when `workers` play side by side; None when nobody measured it.
    """

    episodes: int
    steps: float
    tokens: float
    usd: float
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the budget buys.

    Attributes:
        revisions: that can be tried, about.
        episodes: of all of them, the first version's and the held-out ones.
        seen: what an episode costs; None when none was seen.
        review: what a review costs; None when none was seen.
        tokens: of the task model and the reviewer; None where not known.
        usd, hours: likewise.
        warnings: why the search may not be worth its name.
    """

    revisions: int
    episodes: int
    seen: Seen | None
    review: Spent | None
    tokens: float | None
    usd: float | None
    hours: float | None
    warnings: tuple[str, ...]


def of(config: LoopConfig) -> Forecast:
    """The forecast for a loop, from what lies in the runs folder."""
    seen, review = _episodes(config), _reviews(config)
    width = len(config.tasks) * config.replicates
    fixed = width * (len(config.gate_seeds) + 2 * len(config.held_out))
    # An accepted candidate spares the attempts after it; a loop that accepts nothing makes them all.
    attempts = config.search.attempts * (1 + config.search.continuations)
    typical = 1.0 if config.gate.kind == "paper" else TYPICAL  # the paper's gate plays all seeds, always
    unjudged = len(config.gate_seeds) - config.gate.most
    per_revision = width * (config.gate.most * typical + unjudged) * attempts
    revisions = _affordable(config, fixed, per_revision, attempts, seen, review)
    episodes = round(fixed + revisions * per_revision)
    reviews = revisions * attempts
    known = review is not None or config.reviewer.kind == "rules"
    each = review or Spent()
    complete = seen is not None and known
    tokens = episodes * seen.tokens + reviews * (each.prompt_tokens + each.completion_tokens) if seen else 0.0
    usd = episodes * seen.usd + reviews * each.usd if seen else 0.0
    seconds = None if seen is None or seen.seconds is None else episodes * seen.seconds + reviews * each.seconds
    return Forecast(
        revisions=revisions,
        episodes=episodes,
        seen=seen,
        review=review,
        tokens=tokens if complete else None,
        usd=usd if complete else None,
        hours=None if seconds is None or not known else seconds / 3600,
        warnings=tuple(_warnings(config, revisions, seen)),
    )


def show(found: Forecast, config: LoopConfig, console: Console) -> None:
    """Say it in a few lines."""
    search, gate = config.search, config.gate
    lines = [
        f"plan: up to {search.iterations} revisions of {search.attempts} attempts with {search.continuations} "
        f"continuation(s) each; a candidate plays up to {gate.most} seeds of {len(config.tasks)} task(s)",
        f"buys: about {found.revisions} revisions if nothing is accepted, {found.episodes:,} episodes, "
        f"{_known(found.tokens, ',.0f')} tokens, {_known(found.usd, ',.2f')} USD, {_known(found.hours, '.1f')} hours",
    ]
    if found.seen is None:
        lines.append(f"no episode of {config.model.name} on these tasks was seen here, so costs are not known yet")
    else:
        lines.append(
            f"by {found.seen.episodes} episodes seen: {found.seen.steps:.0f} steps, {found.seen.tokens:,.0f} tokens, "
            f"{found.seen.usd:.4f} USD each"
        )
    if found.review is None and config.reviewer.kind != "rules":
        lines.append(f"no review by {config.reviewer.kind} {config.reviewer.model} was seen here; theirs comes on top")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for warning in found.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)


def _known(value: float | None, form: str) -> str:
    return "?" if value is None else f"{value:{form}}"


def _affordable(
    config: LoopConfig, fixed: float, per_revision: float, attempts: int, seen: Seen | None, review: Spent | None
) -> int:
    """Revisions that all budgets allow."""
    budget, most = config.budget, config.search.iterations
    each = review or Spent()
    if budget.episodes is not None:
        most = min(most, int((budget.episodes - fixed) / per_revision))
    if seen is not None and budget.usd is not None and (cost := per_revision * seen.usd + attempts * each.usd):
        most = min(most, int((budget.usd - fixed * seen.usd) / cost))
    if seen is not None and seen.seconds and budget.minutes is not None:
        took = per_revision * seen.seconds + attempts * each.seconds
        most = min(most, int((60 * budget.minutes - fixed * seen.seconds) / took))
    return max(most, 0)


def _warnings(config: LoopConfig, revisions: int, seen: Seen | None) -> Iterator[str]:
    if revisions < min(FEWEST, config.search.iterations):
        yield (
            f"the budget buys about {revisions} revision(s); a search needs several, because most revisions fail: "
            "raise it, or lower --attempts, --most-seeds or --steps"
        )
    elif config.search.iterations < FEWEST:
        yield f"{config.search.iterations} revision(s) are few for a search; most revisions fail"
    if config.gate.kind == "sequential" and config.gate.most < 40:
        yield (
            f"{config.gate.most} seeds can show only large gains: with a spread of 15 points, one of 8 points takes "
            "some 70; see benchmarks/gate_errors.py"
        )
    if config.gate.kind == "paper":
        yield "the paper's gate accepts by chance: about every second revision without effect passes it"
    if config.model.temperature > 0 and config.replicates == 1:
        yield "the model is sampled: --replicates takes out part of the chance"
    if seen is None and (config.budget.usd or config.budget.minutes):
        yield "without any episode seen the budgets cannot be turned into revisions; the loop stops when they are used"


def _episodes(config: LoopConfig) -> Seen | None:
    results: list[EpisodeResult] = []
    folders: set[Path] = set()
    tasks = {task.task: task.steps for task in config.tasks}
    for run in _runs():
        if run.config.players != config.model.name or len(results) >= MOST_SEEN:
            continue
        found = [result for result in _results(run) if tasks.get(result.task) == result.steps_limit]
        results += found
        if found:
            # The episodes of a loop take turns on the same processors, whichever version they belong to.
            parts = run.folder.parts
            folders.add(Path(*parts[: parts.index(EVALUATIONS)]) if EVALUATIONS in parts else run.folder)
    if not results:
        return None
    counts = [result.counts for result in results]
    return Seen(
        episodes=len(results),
        steps=mean([result.steps for result in results]),
        tokens=mean([c.prompt_tokens + c.completion_tokens for c in counts]),
        usd=mean([c.cost for c in counts]),
        seconds=median(paces) if (paces := [pace for f in folders if (pace := _pace(f)) is not None]) else None,
    )


def _runs() -> Iterator[runs.Run]:
    for pattern in (f"*/{runs.RUN}", f"*/evaluations/*/gate/{runs.RUN}"):
        for path in sorted(runs.runs_folder().glob(pattern), key=lambda p: -p.stat().st_mtime):
            try:
                yield runs.load(str(path.parent))
            except UserError:
                continue


def _results(run: runs.Run) -> Iterator[EpisodeResult]:
    for path in sorted(run.folder.glob(f"episodes/*/*/{RESULT}"))[:MOST_SEEN]:
        try:
            result = load_result(path.parent)
        except UserError:
            continue
        if result is not None:
            yield result


def _pace(folder: Path) -> float | None:
    """Mean seconds from the end of one episode to that of the next; rests between them do not count.

    None where fewer than two were played there.
    """
    ended = sorted(path.stat().st_mtime for path in folder.rglob(RESULT) if not (path.parent / COPIED).exists())
    gaps = [later - earlier for earlier, later in pairwise(ended)]
    if not gaps:
        return None
    usual = LONG_REST * max(median(gaps), 0.05)
    return mean([gap for gap in gaps if gap <= usual])


def _reviews(config: LoopConfig) -> Spent | None:
    """The mean of what reviews by the same reviewer took."""
    found: list[Spent] = []
    for loop in storage.all_loops():
        theirs = loop.config.reviewer
        if (theirs.kind, theirs.model) != (config.reviewer.kind, config.reviewer.model):
            continue
        for path in loop.folder.glob(f"attempts/*/{storage.REVISION}"):
            try:
                found.append(Spent(**storage.read_json(path)["spent"]))
            except (UserError, TypeError, KeyError):
                continue
    if not found:
        return None
    total = sum(found, Spent())
    n = len(found)
    return Spent(
        turns=round(total.turns / n),
        prompt_tokens=round(total.prompt_tokens / n),
        completion_tokens=round(total.completion_tokens / n),
        usd=total.usd / n,
        seconds=total.seconds / n,
    )
