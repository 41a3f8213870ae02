"""What the meta-LLM is told: templates in ``meta/prompts`` and what they are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from automem.check.folder import NOTES
from automem.metric_names import METRICS, figure, unit
from automem.tables import percent
from automem.trace import stats
from automem.visible import visible_lines
from meta.dialogue.prompting import SHARED, render
from meta.dialogue.tool import Tool
from meta.evidence import Attempt, Evidence
from meta.reviewers.llm import reference

_SYSTEM_SHOWN = 6_000
"""Characters of what the task model is told that are shown at once."""

_ANALYSIS_SHOWN = 4_000
"""Characters of the analysis of the attempt before."""

_EPISODES_SHOWN = 60
_ATTEMPTS_SHOWN = 40


@dataclass(frozen=True)
class Review:
    """What a review is told; see `meta.dialogue.Words`."""

    evidence: Evidence
    tools: tuple[Tool, ...]

    def system(self, in_text: bool) -> str:
        """See `system`."""
        return system(self.evidence.game, self.tools, in_text)

    def opening(self, left: list[str]) -> str:
        """See `opening`."""
        return opening(self.evidence, left)

    def notice(self, left: list[str], last: bool) -> str:
        """How much of the budget is left."""
        return _render("budget.j2", left=left, last=last)

    def no_call(self, in_text: bool) -> str:
        """What a reply without a call is told."""
        return _render("no_call.j2", in_text=in_text)


def system(game: str, tools: tuple[Tool, ...], in_text: bool) -> str:
    """The system message.

    Args:
        game: that is played.
        tools: what is offered.
        in_text: the tools have to be described, and called, in text.
    """
    return _render(
        "system.j2",
        game=game,
        tools=tools,
        in_text=in_text,
        fields=reference.fields(),
        entry_fields=reference.entry_fields(),
        operations=reference.operations(),
        templates=reference.template_names(),
        hooks=reference.hooks(),
        chapters=list(reference.chapters()),
    )


def opening(evidence: Evidence, left: list[str]) -> str:
    """The first user message: the evidence at a glance, and what has been tried."""
    found = stats.of_run(evidence.run.run, evidence.run.episodes)
    first = next((episode for episode in evidence.run.episodes if len(episode)), None)
    told = (first.step(0).system if first is not None else None) or ""
    return _render(
        "opening.j2",
        evidence=evidence,
        parent=evidence.parent,
        files=[(path, len(data)) for path, data in sorted(evidence.parent.sources.items()) if path != NOTES],
        episodes=[_episode(one) for one in found.episodes[:_EPISODES_SHOWN]],
        more_episodes=max(0, len(found.episodes) - _EPISODES_SHOWN),
        progression=percent(found.summary["overall"]["progression"]) if found.episodes else "-",
        behaviour=_behaviour(found),
        told=visible_lines(told[:_SYSTEM_SHOWN]),
        told_more=max(0, len(told) - _SYSTEM_SHOWN),
        attempts=[_attempt(one, evidence) for one in evidence.attempts[-_ATTEMPTS_SHOWN:]],
        more_attempts=max(0, len(evidence.attempts) - _ATTEMPTS_SHOWN),
        before=evidence.before,
        before_analysis=(evidence.before.analysis[:_ANALYSIS_SHOWN] if evidence.before else ""),
        left=left,
    )


def _episode(one: stats.EpisodeStats) -> dict[str, Any]:
    result = one.result
    return {
        "task": result.task,
        "seed": result.seed,
        "steps": result.steps,
        "progression": percent(result.progression),
        "achievements": ", ".join(name for name, count in result.achievements.items() if count),
        "finished": one.finished,
    }


def _behaviour(found: stats.RunStats) -> list[tuple[str, str]]:
    rates = found.summary["overall"]["behaviour"] if found.episodes else {}
    return [
        (f"{known.label} {unit(name)}".strip(), figure(name, rates[name]))
        for name, known in METRICS.items()
        if name in rates
    ]


def _attempt(one: Attempt, evidence: Evidence) -> dict[str, Any]:
    look = one.looks[-1] if one.looks else None
    return {
        "number": one.number,
        "outcome": one.outcome,
        "description": one.description or "(no revision was made)",
        "why": one.why,
        "same_parent": one.parent == evidence.parent.identity,
        "measured": "" if look is None else f"{100 * look.mean:+.2f} % progression over {look.seeds} seeds",
    }


def _render(name: str, **values: Any) -> str:
    return render(SHARED, name, **values)
