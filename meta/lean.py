"""Whether a version keeps a leaner memory than another: less is written again or piled up, at no more tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from automem.episode import EpisodeResult
from automem.metrics import Counts, rates

HALF = 0.5
"""Of the other version's duplicates or growth that a leaner one has at most."""


def leaner(candidate: Sequence[EpisodeResult], parent: Sequence[EpisodeResult]) -> bool:
    """Whether the candidate needs no more tokens a step, and half the growth or half the duplicate writes at most.

    Args:
        candidate, parent: episodes of both, of the same tasks and seeds.
    """
    mine, theirs = (
        rates(reduce(Counts.merged, (r.counts for r in results), Counts())) for results in (candidate, parent)
    )

    def of(found: dict[str, float | None], *names: str) -> float:
        return sum(found[name] or 0.0 for name in names)

    tokens = ("prompt_tokens_per_step", "completion_tokens_per_step")
    if of(mine, *tokens) > of(theirs, *tokens):
        return False
    wasted = ("added_bytes_per_step", "duplicate_write_share")
    no_more = all(of(mine, name) <= of(theirs, name) for name in wasted)
    return no_more and any(of(mine, name) <= HALF * of(theirs, name) for name in wasted if of(theirs, name) > 0)
