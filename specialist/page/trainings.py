"""What the page says of training runs: the ledger as a table; of each run its losses, its data, its judgement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from automem.metric_names import metric, unit
from automem.report import figures
from meta.gate import Look
from meta.page import attempts
from meta.page import charts as loops
from specialist.page import charts, recipes
from specialist.page.found import Found, Training
from specialist.search.ledger import Outcome, Row
from specialist.train.curve import Row as CurveRow

OUTCOMES: Mapping[Outcome, str] = {
    "trained": "under way",
    "short": "too few examples",
    "refused": "cannot be trained here",
    "diverged": "diverged",
    "promoted": "trained longer",
    "dropped": "dropped",
    "accepted": "accepted",
    "rejected": "rejected",
    "inconclusive": "inconclusive",
    "unjudged": "not judged",
}
"""How outcomes are called on the page."""

SCALES = (("logarithmic", True), ("linear", False))
"""Both ways in which losses are drawn; a reader chooses."""


def anchor(training: str) -> str:
    """The id of a training run's section."""
    return f"training-{training}"


def table(found: Found) -> list[dict[str, Any]]:
    """Rows of the ledger's table."""
    start = found.search.config.recipe
    return [_row(found, row, start) for row in found.rows]


def _row(found: Found, row: Row, start: Any) -> dict[str, Any]:
    data = found.data_of(row.data)
    return {
        "number": row.number,
        "anchor": anchor(row.training) if row.training else "",
        "name": row.recipe.name,
        "differences": recipes.differences(start, row.recipe),
        "data": data.key if data else row.data[:12],
        "data_there": data is not None,
        "examples": row.examples,
        "train": _nats(row.losses.get("train")),
        "before": _nats(row.losses.get("held_out_before")),
        "after": _nats(row.losses.get("held_out_after")),
        "gain": gain(row),
        "seeds": row.looks[-1].seeds if row.looks else 0,
        "outcome": row.outcome,
        "word": OUTCOMES[row.outcome],
        "told": row.told,
        "tokens": f"{row.tokens:,}",
        "seconds": duration(row.seconds),
        "cost": f"{row.cost:.2f}",
    }


def shown(found: Found) -> list[dict[str, Any]]:
    """All that the page shows of each training run."""
    return [_shown(found, training) for training in found.trainings]


def comparison(found: Found) -> dict[str, Any] | None:
    """Held-out losses of all training runs in one chart; None where there are not two to compare."""
    curves = [(one.number, one.curve) for one in found.trainings if any(row.held_out for row in one.curve)]
    if len(curves) < 2:
        return None
    label = "Held-out loss of every training run, by tokens trained on"
    return {
        "charts": [(name, Markup(charts.compared(curves, label, log))) for name, log in SCALES],
        "names": [name for name, _ in curves],
    }


def gain(row: Row) -> str:
    """What the gate saw last, in points; empty when the specialist was not played."""
    if not row.looks:
        return ""
    look = row.looks[-1]
    bounds = "" if look.lower is None or look.upper is None else f" [{_points(look.lower)}, {_points(look.upper)}]"
    return f"{_points(look.mean)}{bounds}"


def duration(seconds: float) -> str:
    """A stretch of time in two figures or so."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _shown(found: Found, training: Training) -> dict[str, Any]:
    row = training.rows[-1] if training.rows else None
    outcome = row.outcome if row else "diverged" if training.failure else "trained"
    recipe = row.recipe if row else training.begun.spec.recipe if training.begun else None
    return {
        "number": training.number,
        "numbers": [one.number for one in training.rows],
        "anchor": anchor(training.name),
        "outcome": outcome,
        "word": "trained" if outcome == "trained" and training.manifest else OUTCOMES[outcome],
        "told": training.failure or (row.told if row else ""),
        "why": row.why if row else "",
        "recipe": recipes.whole(recipe) if recipe else (),
        "differences": recipes.differences(found.search.config.recipe, recipe) if recipe else (),
        "facts": _facts(found, training),
        "charts": _charts(training),
        "window": charts.window(sum(one.loss is not None for one in training.curve)),
        "looks": row.looks if row else (),
        "gain": gain(row) if row else "",
        "trajectory": _trajectory(found, row) if row else "",
        "behaviour": _behaviour(row) if row else (),
        "open": outcome == "accepted" or len(found.trainings) == 1,
    }


def _charts(training: Training) -> list[tuple[str, Markup]]:
    if not any(row.loss is not None or row.held_out is not None for row in training.curve):
        return []
    label = f"Losses of training run {training.number} by step"
    return [(name, Markup(charts.losses(training.curve, label, log))) for name, log in SCALES]


def _facts(found: Found, training: Training) -> list[tuple[str, str]]:
    """Name and text of what else is known of a training run."""
    facts = []
    last = training.curve[-1] if training.curve else None
    if training.begun:
        setup = training.begun.setup
        where = f"{setup.device.upper()}, {setup.processes} process{'es' if setup.processes > 1 else ''}"
        facts.append(("where", f"{where}, {setup.dtype}, {setup.batch} examples a pass"))
    if last is not None:
        facts.append(("came to", _progress(training, last)))
    if training.rows:
        row = training.rows[-1]
        data = found.data_of(row.data)
        facts.append(("data", f"{data.key if data else row.data[:12]}, {row.examples} examples to train on"))
        if row.criteria:
            facts.append(("criteria", f"version {row.criteria}"))
    if training.manifest:
        losses, consult = training.manifest.losses, training.manifest.consult_turns
        facts.append(("losses", ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in losses.items())))
        facts.append(("adapter", f"{training.manifest.identity}, consults memory for up to {consult} turns of PLAN"))
        facts.append(
            ("made with", ", ".join(f"{name} {number}" for name, number in training.manifest.versions.items()))
        )
    return facts


def _progress(training: Training, last: CurveRow) -> str:
    words = f"step {last.step:,} of {last.steps:,}, {last.tokens:,} tokens in {duration(last.seconds)}"
    if training.manifest is None and not training.failure and last.left:
        words += f", about {duration(last.left)} left"
    return words


def _trajectory(found: Found, row: Row) -> Markup | str:
    gate = found.search.config.gate
    if not row.looks or gate is None:
        return ""
    looks = [Look(**look.model_dump(), decision="continue") for look in row.looks]
    label = f"Training run {row.number}: mean paired difference and its bounds, by seeds played"
    return Markup(loops.trajectory(looks, gate.smallest_gain, label))


def _behaviour(row: Row) -> list[dict[str, str]]:
    """On gate seeds: what it was held against, and itself; without what never happened with either."""
    names = [name for name in row.after if row.before.get(name) or row.after[name]]
    found = []
    for name in names:
        before, after = row.before.get(name), row.after.get(name)
        if name == "progression":
            values = figures.percent(before), figures.percent(after)
            found.append({"name": "progression", "unit": "%", "meaning": "", "a": values[0], "b": values[1]})
            continue
        found.append({
            "name": metric(name).label, "unit": unit(name), "meaning": metric(name).meaning,
            "a": attempts.value(name, before), "b": attempts.value(name, after),
        })  # fmt: skip
    return found


def _nats(loss: float | None) -> str:
    return "–" if loss is None else f"{loss:.3g}"


def _points(value: float) -> str:
    return figures.signed(value)
