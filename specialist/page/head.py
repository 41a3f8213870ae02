"""What the page says first: what was searched, with which seeds, what it took, and what came of it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from automem.report import figures
from automem.runs import PlannedTask, PlayedModel
from meta.page.words import counted, seeds
from specialist.page.found import Found, Played
from specialist.page.outcome import TOO_FEW, UNSURE, verdict
from specialist.page.trainings import OUTCOMES, duration
from specialist.search.rungs import rungs
from specialist.search.settings import SearchConfig

PROGRAM = "scripted"
"""The one model that is none."""


def head(found: Found) -> dict[str, Any]:
    """Everything above the ledger."""
    config = found.search.config
    return {
        "facts": _facts(found),
        "seeds": _seeds(found),
        "both_roles": _both_roles(found),
        "sentence": sentence(found),
        "warnings": warnings(found),
        "missing": missing(found),
        "program": _program(config),
        "finished": found.result is not None,
    }


def sentence(found: Found) -> str:
    """The result of the search in one sentence."""
    result = found.result
    if result is None:
        over = sum(row.outcome != "trained" for row in found.rows)
        kept = sum(row.outcome == "accepted" for row in found.rows)
        accepted = f", {counted(kept, 'specialist')} accepted so far" if kept else ", none of them accepted yet"
        if found.search.config.gate is None:
            accepted = ""
        return f"This search is not finished: {counted(over, 'training run')} over{accepted}."
    if result["best"] is None:
        return f"{counted(result['trainings'], 'training run')} gave no adapter: there is nothing to compare."
    best, progression = result["best"], result["held_out"]["progression"]
    difference = progression["difference"]
    if difference is None:
        return f"{_chosen(found)} No held-out episode was finished by both."
    points = f"{figures.signed(difference['mean'])} points"
    if difference["interval"]:
        low, high = difference["interval"]
        points += f" [{figures.signed(low)}, {figures.signed(high)}]"
    return (
        f"{_chosen(found)} On {counted(result['held_out']['pairs'], 'held-out episode')}, which the search never used, "
        f"{best['number']} gains {points} of progression over the untrained base model."
    )


def _chosen(found: Found) -> str:
    assert found.result is not None
    best = found.result["best"]
    if found.result["accepted"]:
        return f"The gate accepted {best['number']}."
    if found.search.config.gate is None:
        return f"{best['number']} has the lowest held-out loss; this search has no gate."
    return f"The gate accepted nothing; {best['number']} is only the one of the lowest held-out loss."


def warnings(found: Found) -> list[str]:
    """What a reader must not miss about the result."""
    told = []
    result = found.result
    if result is not None and result["best"] is not None:
        if not result["accepted"] and found.search.config.gate is not None:
            outcome = OUTCOMES[result["best"]["outcome"]]
            told.append(f"Nothing was accepted: the gate calls {result['best']['number']} {outcome}.")
        told += _unsure(result["held_out"]["progression"]["difference"])
    both = _both_roles(found)
    if both:
        told.append(f"Seed {both[0]} was learnt from and is one of an evaluation: what was learnt is no test.")
    if found.search.config.sandbox.unsafe:
        told.append("Code of scaffolds ran without containment.")
    return told


def _unsure(difference: Mapping[str, Any] | None) -> list[str]:
    found = verdict(difference)
    if difference is None or found == "higher":
        return []
    if found == TOO_FEW:
        return ["Too few held-out episodes were played for an interval: the difference in progression proves nothing."]
    if found == UNSURE:
        low, high = difference["interval"]
        return [
            "The difference in progression on held-out seeds cannot be told from chance: its 95 % interval, "
            f"{figures.signed(low)} to {figures.signed(high)} points, holds 0."
        ]
    if found == "lower":
        return ["The specialist comes less far on held-out seeds than the untrained base model."]
    return ["Both come as far in every held-out episode."]


def missing(found: Found) -> list[str]:
    """What a search that is not over still lacks, in the order in which it will come."""
    if found.result is not None:
        return []
    config = found.search.config
    lacks = []
    for one in found.collected:
        if len(one.results) < one.planned and one.run.summary() is None:
            lacks.append(f"collecting: {len(one.results)} of {one.planned} episodes of {one.name} are finished")
    if not found.collected and not config.collect.traces:
        lacks.append("collecting has not begun")
    if not any(data.statistics for data in found.data):
        lacks.append("nothing is selected yet")
    for data in found.data:
        if data.statistics is not None and data.facts is None:
            lacks.append(f"data {data.key}: no dataset was made of what is selected")
    for training in found.trainings:
        if training.manifest is None and not training.failure:
            last = training.curve[-1] if training.curve else None
            came = f"step {last.step:,} of {last.steps:,}" if last else "before its first step"
            lacks.append(f"training {training.number}: {came}")
    rounds = config.decider.rounds - len(found.rounds)
    if rounds:
        lacks.append(f"{counted(rounds, 'round')} of {config.decider.rounds} not proposed yet")
    lacks += [f"{row.number} is trained, and not judged yet" for row in found.rows if row.outcome == "trained"]
    planned = 2 * len(config.held_out) * len(config.tasks)
    done = sum(len(one.results) for one in found.played if one.purpose == "held-out")
    lacks.append(f"held-out seeds: {done} of {planned} episodes are played, so nothing says yet what it is worth")
    return lacks


def _program(config: SearchConfig) -> list[str]:
    """Roles that a program has, and no language model."""
    roles = {"teacher": config.collect.teacher.name, "gameplay model": config.gameplay.name}
    if config.collect.traces:
        del roles["teacher"]
    return [role for role, name in roles.items() if name == PROGRAM]


def _facts(found: Found) -> list[tuple[str, str]]:
    config = found.search.config
    base = config.base
    served = "as a merged copy of it" if base.merged else "as an adapter beside it"
    learnt = (
        f"runs that were there: {', '.join(config.collect.traces)}"
        if config.collect.traces
        else f"{_model(config.collect.teacher)} does the memory work; {_tasks(config.collect.tasks)}"
    )
    return [
        ("game", f"{config.game}: {_tasks(config.tasks)}"),
        ("base model", f"{base.name}; the specialist plays {served}" + (f", on {base.server}" if base.server else "")),
        ("gameplay model", f"{_model(config.gameplay)}; it commits every action"),
        ("learnt from", learnt),
        ("scaffold", f"{config.scaffold.ref} ({config.scaffold.identity[:12]})"),
        ("selects", " ".join(part for part in (config.engine.kind, config.engine.model) if part)),
        ("proposes", _decider(config)),
        ("gate", _gate(config)),
        ("recipe", config.recipe.name or "of its own"),
        ("tried", _tried(found)),
        ("spent", _spent(found)),
        ("created", config.created.replace("T", " ").replace("+00:00", " UTC")),
    ]  # fmt: skip


def _model(model: PlayedModel) -> str:
    if model.name == PROGRAM:
        return f"{PROGRAM} (a program, not a language model)"
    return model.name + (f", temperature {model.temperature:g}" if model.temperature else "")


def _tasks(tasks: Sequence[PlannedTask]) -> str:
    names = [task.task for task in tasks]
    listed = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    return f"{listed}, at most {max((task.steps for task in tasks), default=0):,} steps"


def _decider(config: SearchConfig) -> str:
    decider = config.decider
    named, rounds = f"{decider.kind} {decider.model}".strip(), counted(decider.rounds, "round")
    if decider.width == 1:
        return f"{named}: {rounds} of one recipe"
    parts = [f"{counted(rung.recipes, 'recipe')} for {_part(rung.part)}" for rung in rungs(decider.width, decider.keep)]
    return f"{named}: {rounds}; in each {', then '.join(parts)}"


def _part(part: float) -> str:
    return "all of its epochs" if part == 1 else f"{100 * part:.2g} % of the epochs"


def _gate(config: SearchConfig) -> str:
    gate = config.gate
    if gate is None:
        return "none: the lowest held-out loss counts"
    margin = f", or no loss of more than {100 * gate.margin:g} points" if gate.margin else ""
    return (
        f"{gate.kind}: looks after every {gate.batch} seeds, at most {gate.most}; smallest gain worth having "
        f"{100 * gate.smallest_gain:g} points{margin}"
    )


def _tried(found: Found) -> str:
    outcomes = Counter(row.outcome for row in found.rows)
    listed = ", ".join(f"{outcomes[outcome]} {word}" for outcome, word in OUTCOMES.items() if outcomes[outcome])
    return counted(len(found.rows), "training run") + (f" ({listed})" if listed else "")


def _spent(found: Found) -> str:
    seconds = sum(one.curve[-1].seconds for one in found.trainings if one.curve)
    tokens = sum(one.curve[-1].tokens for one in found.trainings if one.curve)
    played = [*found.collected, *found.played]
    episodes = sum(len(one.results) for one in played)
    cost = sum(result.counts.cost for one in played for result in one.results)
    steps = sum(result.steps for one in played for result in one.results)
    return (
        f"training: {duration(seconds)}, {tokens:,} tokens; play: {counted(episodes, 'episode')}, "
        f"{counted(steps, 'step')}, {cost:.2f} USD as far as prices are known"
    )


def _seeds(found: Found) -> list[tuple[str, str, str]]:
    """Each role of seeds: what it is called, which they are, and what they are for."""
    config = found.search.config
    learnt = sorted({seed for one in found.collected for task in one.run.config.tasks for seed in task.seeds})
    judges = "judge specialists while the search goes on" if config.gate else "not played: this search has no gate"
    learnt = learnt or sorted({seed for task in config.collect.tasks for seed in task.seeds}) or _selected(found)
    return [
        ("training", seeds(learnt) or "those of the runs that are learnt from", "traces to learn from"),
        ("gate", seeds(config.gate_seeds), judges),
        ("held out", seeds(config.held_out), "played once, at the end: they alone say what it is worth"),
    ]


def _selected(found: Found) -> list[int]:
    """Seeds of all episodes that selections looked into."""
    return sorted({one.seed for data in found.data if data.statistics for one in data.statistics.episodes})


def _both_roles(found: Found) -> list[int]:
    """Seeds that were learnt from, and evaluate; there should be none."""
    return sorted(set(_selected(found)) & found.search.config.evaluation_seeds)


def plays(found: Found) -> list[dict[str, Any]]:
    """Runs that can be watched, with how far they came."""
    return [_play(found, one) for one in (*found.collected, *found.played)]


def _play(found: Found, one: Played) -> dict[str, Any]:
    who = {"teacher": f"teacher: {found.search.config.collect.teacher.name}", "base": "untrained base model"}
    number = next((row.number for row in found.rows if row.adapter[:16] == one.who), one.who)
    results = one.results
    return {
        "who": who.get(one.who, f"specialist {number}"),
        "purpose": one.purpose,
        "finished": len(results),
        "planned": one.planned,
        "progression": sum(r.progression for r in results) / len(results) if results else None,
        "steps": sum(r.steps for r in results),
        "command": f"automem report {shlex.quote(one.name)}",
    }
