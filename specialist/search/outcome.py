"""What came of a specialist: the same episodes before and after, paired, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from automem.episode import EpisodeResult
from automem.metrics import Counts, rates
from automem.statistics import Estimate, estimate, mean, won_tied_lost
from specialist.train.curve import Row

Value = Callable[[EpisodeResult], float | None]

BEHAVIOUR = tuple(rates(Counts()))
"""Names of the behaviour metrics that are compared."""


def outcome(before: Sequence[EpisodeResult], after: Sequence[EpisodeResult]) -> dict[str, Any]:
    """Progression and behaviour of both, over the episodes that both finished.

    Returns plain values: ``pairs``; ``progression`` and, by name, ``behaviour``, each with ``before`` and ``after``
    (means over episodes with their 95 % intervals), the paired ``difference`` with its interval, and for behaviour
    ``pooled_before`` and ``pooled_after``: all episodes' counts together. None where nothing was measured.
    """
    mine = {(result.task, result.seed): result for result in before}
    theirs = {(result.task, result.seed): result for result in after}
    shared = sorted(mine.keys() & theirs.keys())
    pairs = [(mine[key], theirs[key]) for key in shared]
    pooled = [rates(reduce(Counts.merged, (r.counts for r in side), Counts())) for side in zip(*pairs, strict=True)]
    behaviour = {}
    for name in BEHAVIOUR:
        found = _paired(pairs, lambda result, name=name: rates(result.counts)[name])  # type: ignore[misc]
        behaviour[name] = (
            {**found, "pooled_before": pooled[0][name], "pooled_after": pooled[1][name]} if pairs else found
        )
    progression = _paired(pairs, lambda result: result.progression)
    won = won_tied_lost([b.progression - a.progression for a, b in pairs])
    return {"pairs": len(pairs), "progression": {**progression, "won_tied_lost": won}, "behaviour": behaviour}


def losses(curve: Sequence[Row]) -> dict[str, Any] | None:
    """Held-out loss before and after training, means over examples with their intervals; None where none was measured.

    A target's loss is the mean negative log-likelihood of its tokens, in nats.
    """
    measured = [row.each for row in curve if row.each]
    if not measured:
        return None
    before, after = measured[0], measured[-1]
    return {
        "before": _shown(before),
        "after": _shown(after),
        "difference": _shown([b - a for a, b in zip(before, after, strict=True)]),
    }


def summary(results: Sequence[EpisodeResult]) -> dict[str, float | None]:
    """Progression and pooled behaviour of some episodes, for the ledger."""
    if not results:
        return {}
    pooled = rates(reduce(Counts.merged, (result.counts for result in results), Counts()))
    return {"progression": mean([result.progression for result in results]), **pooled}


def _paired(pairs: Sequence[tuple[EpisodeResult, EpisodeResult]], value: Value) -> dict[str, Any]:
    values = [(value(a), value(b)) for a, b in pairs]
    differences = [b - a for a, b in values if a is not None and b is not None]
    return {
        "before": _shown([a for a, _ in values if a is not None]),
        "after": _shown([b for _, b in values if b is not None]),
        "difference": _shown(differences),
    }


def _shown(values: Sequence[float]) -> dict[str, Any] | None:
    if not values:
        return None
    found: Estimate = estimate(values)
    return {"mean": found.mean, "interval": found.interval, "values": len(values)}
