"""What the page says first: what was searched, how much was tried and spent, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from automem.report import figures
from meta.page.attempts import OUTCOMES
from meta.page.history import History
from meta.page.words import counted, seeds
from meta.settings import GateSettings, LoopConfig, SearchSettings


def head(history: History) -> dict[str, Any]:
    """Everything above the lineage."""
    config = history.loop.config
    return {
        "facts": _facts(history),
        "sentence": sentence(history),
        "warnings": warnings(history),
        "scripted": config.model.name == "scripted",
        "finished": history.result is not None,
    }


def sentence(history: History) -> str:
    """The result of the loop in one sentence."""
    result, root = history.result, history.versions[0]
    if result is None:
        kept = len(history.versions) - 1
        kept_words = "no version has been accepted yet" if not kept else f"{counted(kept, 'version')} accepted so far"
        return f"This loop is not finished: {counted(len(history.attempts), 'attempt')} over, {kept_words}."
    if result["held_out"] is None and len(history.versions) > 1:
        return f"No accepted version gains over {root.ref}, the version that the loop began with; it stays the best."
    if result["held_out"] is None:
        return f"Nothing that was tried was accepted; {root.ref}, the version that the loop began with, stays the best."
    gate, held_out = result["gate"]["overall"], result["held_out"]["overall"]
    on_gate = f"{_points(gate)} on {counted(_seeds(history), 'gate seed')}"
    on_held_out = f"{_points(held_out)} on {counted(len(history.loop.config.held_out), 'held-out seed')}"
    return f"{result['best']['ref']} gains {on_gate} over {root.ref}, and {on_held_out}, which the loop never used."


def warnings(history: History) -> list[str]:
    """What a reader must not miss about the result."""
    found = []
    result = history.result
    if result is not None and result["held_out"] is not None:
        gap, held_out = result["gap"], result["held_out"]["overall"]
        if gap["flagged"]:
            found.append(
                f"The gain on held-out seeds is {100 * gap['gap']:.1f} points smaller than that on gate seeds, more "
                "than chance allows. What was found fits the seeds that it was judged on: a map or a route that was "
                "written into the scaffold looks like this."
            )
        if not gap["confirmed"]:
            found.append(f"The gain is not confirmed on held-out seeds: {_unconfirmed(held_out)}.")
    if history.loop.config.sandbox.unsafe:
        found.append("Code of scaffolds ran without containment.")
    return found


def _unconfirmed(held_out: Mapping[str, Any]) -> str:
    if held_out["interval"] is None:
        return "too few were played for an interval"
    low, high = held_out["interval"]
    if high < 0:
        return "the version plays worse there"
    return f"its 95 % interval there, {figures.signed(low)} to {figures.signed(high)} points, holds 0"


def _facts(history: History) -> list[tuple[str, str]]:
    config, result = history.loop.config, history.result
    model = config.model.name
    if config.model.temperature:
        model += f", temperature {config.model.temperature:g}"
    if model == "scripted":
        model += ": a program, not a language model"
    reviewer = " ".join(part for part in (config.reviewer.kind, config.reviewer.model) if part)
    stopped = result["stopped"] if result is not None else ""
    return [
        ("game", f"{config.game}: {_tasks(config)}"),
        ("task model", model),
        ("reviewer", reviewer),
        ("began with", f"{config.root.ref} ({config.root.identity[:12]})"),
        ("gate", _gate(config.gate)),
        ("seeds", f"{seeds(config.gate_seeds)} for the gate, {seeds(config.held_out)} held out"
                  + (f"; {config.replicates} episodes of each" if config.replicates > 1 else "")),
        ("search", _search(config.search)),
        ("tried", _tried(history) + (f"; stopped because {stopped}" if stopped else "")),
        ("spent", _spent(history)),
        ("created", config.created.replace("T", " ").replace("+00:00", " UTC")),
    ]  # fmt: skip


def _tasks(config: LoopConfig) -> str:
    names = [task.task for task in config.tasks]
    listed = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    return f"{listed}, at most {config.steps} steps"


def _gate(gate: GateSettings) -> str:
    if gate.kind == "paper":
        return f"paper: accepted when the mean over {gate.most} seeds is higher; no error is controlled"
    return (
        f"{gate.kind}: looks after every {gate.batch} seeds, at most {gate.most}; smallest gain worth having "
        f"{100 * gate.smallest_gain:g} points{_margin(gate.margin)}; chance that a loop without any effect accepts "
        f"something at most {100 * gate.error:g} %"
    )


def _margin(margin: float) -> str:
    return f", or, with a leaner memory, no loss of more than {100 * margin:g} points" if margin else ""


def _search(search: SearchSettings) -> str:
    return (
        f"at most {counted(search.iterations, 'revision')}, each with up to {counted(search.attempts, 'fresh attempt')}"
        f"{_continued(search.continuations)}; made from {_PARENTS[search.parents]}; reviewers may read the episodes of "
        f"{counted(search.shown, 'gate seed')}"
    )


_PARENTS = {"best": "the best version", "archive": "a version drawn by gain and novelty"}


def _tried(history: History) -> str:
    revisions = {attempt.number.partition(".")[0] for attempt in history.attempts}
    outcomes = Counter(attempt.outcome for attempt in history.attempts)
    listed = ", ".join(f"{outcomes[outcome]} {word}" for outcome, word in OUTCOMES.items() if outcomes[outcome])
    played = sum(bool(attempt.looks) for attempt in history.attempts)
    words = (
        f"{counted(len(revisions), 'revision')}, {counted(len(history.attempts), 'attempt')}, {played} of them played"
    )
    return f"{words} ({listed})" if listed else words


def _spent(history: History) -> str:
    reviews = history.loop.spent()
    tokens = reviews.prompt_tokens + reviews.completion_tokens
    played = [*history.gate.values(), *history.held_out.values()]
    episodes, cost = sum(len(one.results) for one in played), sum(one.cost for one in played)
    return (
        f"reviews: {reviews.usd:.2f} USD, {tokens:,} tokens in {counted(reviews.turns, 'call')}, "
        f"{reviews.seconds / 60:.0f} minutes; play: {counted(episodes, 'episode')}, {cost:.2f} USD"
    )


def _seeds(history: History) -> int:
    """Gate seeds that the first version and the best have both played."""
    root, best = history.versions[0], history.best
    if best is None or root.gate is None or best.gate is None:
        return 0
    return len(root.gate.seeds & best.gate.seeds)


def _points(paired: Mapping[str, Any]) -> str:
    span = paired["interval"]
    interval = "" if span is None else f" [{figures.signed(span[0])}, {figures.signed(span[1])}]"
    return f"{figures.signed(paired['difference'])} points{interval}"


def _continued(continuations: int) -> str:
    if not continuations:
        return ""
    return f", gone on with {'once' if continuations == 1 else f'up to {continuations} times'} when it fails"
