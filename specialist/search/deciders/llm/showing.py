"""The search so far as text: the ledger as a table, a row in full, a training curve, a selection."""

from __future__ import annotations

import json
from collections.abc import Sequence

from automem.metric_names import figure, metric, unit
from automem.tables import percent
from automem.vocabulary import one_line
from meta.points import bounded
from specialist.recipe import Recipe
from specialist.search.deciders.llm.changes import differences
from specialist.search.ledger import Row
from specialist.select.statistics import Statistics
from specialist.train.curve import Row as CurveRow

_POINTS = 40
"""Rows of a curve that are shown."""

BEHAVIOUR = ("valid_turn_share", "duplicate_write_share", "empty_search_share")
"""What the table has of behaviour; a row in full has all."""


def ledger(rows: Sequence[Row], start: Recipe) -> str:
    """All training runs, a line of figures and a line of words each."""
    if not rows:
        return "Nothing was trained yet."
    return "\n".join(f"{_figures(row, start)}\n    {_words(row)}" for row in rows)


def row(one: Row, start: Recipe) -> str:
    """All about a training run."""
    lines = [_figures(one, start), f"why: {one_line(one.why, 2000)}", f"told: {one_line(one.told, 1000)}"]
    for look in one.looks:
        lines.append(
            f"after {look.seeds} gate seeds: {bounded(look.mean, look.lower, look.upper)} of progression against the "
            f"best before: {one_line(look.why, 300)}"
        )
    for name in one.after:
        if name == "progression":
            lines.append(f"progression %: {percent(one.before.get(name))} -> {percent(one.after[name])}")
        else:
            before, after = figure(name, one.before.get(name)), figure(name, one.after[name])
            lines.append(f"{metric(name).label} {unit(name)}: {before} -> {after}")
    lines.append(f"took {one.seconds:.0f} s of training, {one.tokens:,} tokens, {one.cost:.2f} USD of play")
    return "\n".join(lines)


def _figures(row: Row, start: Recipe) -> str:
    changes = ", ".join(f"{name} {_short(value)}" for name, value in differences(row.recipe, start).items())
    parts = [f"{row.number} {row.outcome}", changes or "the recipe of the start"]
    if row.data:
        parts.append(f"{row.examples} examples of data {row.data[:8]}")
    if row.criteria:
        parts.append(f"criteria {row.criteria}")
    losses = row.losses
    if losses:
        told = {name: f"{value:.4f}" for name, value in losses.items()}
        parts.append(f"held-out loss {told.get('held_out_before', '-')} -> {told.get('held_out_after', '-')}")
        parts.append(f"training loss {told.get('train', '-')}")
    if row.looks:
        look = row.looks[-1]
        parts.append(f"{bounded(look.mean, look.lower, look.upper)} over {look.seeds} seeds")
    for name in BEHAVIOUR:
        if row.after.get(name) is not None:
            before, after = figure(name, row.before.get(name)), figure(name, row.after[name])
            parts.append(f"{metric(name).label} {before} -> {after} {unit(name)}")
    parts.append(f"{row.seconds:.0f} s")
    if row.cost:
        parts.append(f"{row.cost:.2f} USD")
    return "; ".join(parts)


def _words(row: Row) -> str:
    return " | ".join(filter(None, [one_line(row.why, 300), one_line(row.told, 300)]))


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else json.dumps(value) if isinstance(value, list) else str(value)


def curve(rows: Sequence[CurveRow]) -> str:
    """A training curve, thinned; rows with a held-out loss stay."""
    if not rows:
        return "There is no curve: training did not begin."
    every = max(1, len(rows) // _POINTS)
    kept = [one for i, one in enumerate(rows) if i % every == 0 or one.held_out is not None or i == len(rows) - 1]
    lines = []
    for one in kept:
        loss = "" if one.loss is None else f" loss {one.loss:.4f}"
        held = "" if one.held_out is None else f" held-out loss {one.held_out:.4f}"
        lines.append(f"step {one.step} of {one.steps}, {one.seconds:.0f} s:{loss}{held}")
    return "\n".join(lines)


def statistics(found: Statistics) -> str:
    """What a selection adds up to."""
    lines = [
        f"engine {found.engine}, criteria {found.version}: {found.accepted} of {found.candidates} candidates accepted, "
        f"{found.recipe.examples} wanted"
    ]
    for phase, of in found.phases.items():
        why = ", ".join(f"{one_line(name, 80)} {count}" for name, count in of.why.items())
        lines.append(f"{phase.upper()}: {of.accepted} of {of.candidates}; {why}")
    lines.append("reasons, on how many accepted and rejected ones, with the points that they gave:")
    for name, reason in found.reasons.items():
        lines.append(
            f"  {one_line(name, 60)}: {reason.accepted} ({reason.points_accepted:+g}), "
            f"{reason.rejected} ({reason.points_rejected:+g})"
        )
    lines.append("episodes: " + _episodes(found))
    return "\n".join(lines)


def _episodes(found: Statistics) -> str:
    shown = [
        f"{one.task} {one.seed}: {one.accepted} of {one.candidates}{'' if one.looked_at else ', not looked at'}, "
        f"progression {percent(one.progression)} %"
        for one in found.episodes[:100]
    ]
    return "; ".join(shown)
