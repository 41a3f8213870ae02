"""Whether a candidate kept the two invariants in the episodes that count, not only in the checker's short one.

Code can behave for a few steps and take over later; so the same questions are asked of what the gate played.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from automem.check.played import MOST, undone_writes
from automem.episode import EpisodeResult
from automem.metrics import WRITES, Counts
from automem.scaffold import Scaffold
from automem.trace import RunTrace

LEAST_OWN = 0.1
"""The model's own writes a step, as a share of those under the parent, below which code writes in its stead."""

EPISODES, STEPS = 2, 400
"""Traces that are looked through for removed writes: so many episodes, so many steps of each."""


def violation(candidate: Sequence[EpisodeResult], parent: Sequence[EpisodeResult]) -> str:
    """How figures of episodes break what every scaffold promises; empty when they do not.

    Args:
        candidate, parent: episodes of both, of the same tasks and seeds.
    """
    mine, before = (reduce(Counts.merged, (r.counts for r in results), Counts()) for results in (candidate, parent))
    if mine.steps and mine.repaired > MOST * mine.steps:
        return (
            f"hooks changed the model's action at {mine.repaired} of {mine.steps} steps: the model does not decide "
            "any more"
        )
    if not mine.steps or not before.steps:
        return ""
    own, was = mine.writes / mine.steps, before.writes / before.steps
    by_hooks = min(mine.hook_ops, sum(mine.operations.get(name, 0) for name in WRITES) - mine.writes)
    if own < LEAST_OWN * was and by_hooks > mine.writes:
        return (
            f"the model wrote {own:.2f} entries a step, {was:.2f} under the parent, and hooks {by_hooks}: code keeps "
            "the memory in its stead"
        )
    return ""


def removed_writes(run: Path, version: Scaffold) -> str:
    """Whether `maintain` takes out what the model has just written, by the traces of a run; empty when it does not."""
    if version.hooks is None:
        return ""
    written = undone = 0
    for episode in RunTrace(run).episodes[:EPISODES]:
        found = undone_writes(episode.steps(0, STEPS), version)
        written, undone = written + found[0], undone + found[1]
    if undone > MOST * written:
        return (
            f"maintain removed {undone} of {written} entries that the model had written in the same step: code keeps "
            "the memory in its stead"
        )
    return ""
