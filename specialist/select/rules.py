"""The engine `rules`: credit from what the trace shows happened later. No model is asked.

score = min(highest, max(lowest, sum over signals of weight * min(amount, most)))
"""

from __future__ import annotations

from collections.abc import Sequence

from automem.errors import UserError
from automem.records import StepRecord
from automem.trace.episode import EpisodeTrace
from specialist.candidate import Candidate
from specialist.select import weights as stored
from specialist.select.engine import Reason, Verdict
from specialist.select.entries import Layout
from specialist.select.facts import Facts
from specialist.select.signals import SIGNALS
from specialist.select.timeline import timeline
from specialist.select.weights import Weights


class Rules:
    """See the module, and `specialist.select.engine.Engine`."""

    name = "rules"
    local = True

    def __init__(self, weights: Weights | None = None) -> None:
        """Args: weights: those of ``weights.toml`` where none are given."""
        self.weights = weights or stored.load()

    @property
    def version(self) -> str:
        """Of the weights."""
        return self.weights.version

    async def judge(self, episode: EpisodeTrace, candidates: Sequence[Candidate]) -> Sequence[Verdict]:
        """See `Engine.judge`. Raises `UserError` when the trace cannot be read."""
        facts = timeline(_records(episode, candidates), layout_of(episode), self.weights.limits.horizon)
        return [self.verdict(facts[c.place.step, c.place.phase]) for c in candidates]

    def verdict(self, facts: Facts) -> Verdict:
        """The verdict on a phase of which this is known."""
        reasons = []
        for code, signal in SIGNALS.items():
            weight = self.weights.signals[code]
            amount = min(signal(facts, self.weights.limits), weight.most)
            if amount:
                reasons.append(Reason(code, round(amount, 3), round(weight.weight * amount, 3)))
        score = round(min(self.weights.highest, max(self.weights.lowest, sum(r.points for r in reasons))), 3)
        good = score >= self.weights.threshold
        text = ", ".join(f"{r.code} {r.points:+g}" for r in reasons) or "nothing to be said"
        if not good:
            text = f"score {score:g} below {self.weights.threshold:g}: {text}"
        return Verdict(score, good, tuple(reasons), text)


def layout_of(episode: EpisodeTrace) -> Layout:
    """What its scaffold says of files; of an unknown scaffold nothing is known."""
    try:
        return Layout.of(episode.scaffold)
    except UserError:
        return Layout()


def _records(episode: EpisodeTrace, candidates: Sequence[Candidate]) -> list[StepRecord]:
    """All records of the episode; only those that no candidate carries are read again."""
    known = {candidate.place.step: candidate.record for candidate in candidates}
    steps, first = len(episode), 0
    while first < steps:
        if first in known:
            first += 1
            continue
        stop = next((step for step in range(first, steps) if step in known), steps)
        known |= {record.step: record for record in episode.steps(first, stop)}
        first = stop
    return [known[step] for step in range(steps)]
