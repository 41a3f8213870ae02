"""Before and after on held-out seeds: the untrained base model against the specialist, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from automem.metric_names import metric, unit
from automem.report import charts, figures
from meta.page import attempts
from specialist.page.found import Found

WHO = ("untrained", "specialist")
"""Both sides, in the order of their colours and marks."""

CARDS = ("progression", "valid_turn_share", "duplicate_write_share", "empty_search_share")
"""What stands above the table."""


def outcome(found: Found) -> dict[str, Any] | None:
    """Figures, a table and two charts; None while held-out seeds are not played, or nothing was there to play."""
    if found.result is None or found.result["held_out"] is None:
        return None
    held_out = found.result["held_out"]
    rows = [_row("progression", held_out["progression"])]
    rows += [_row(name, one) for name, one in held_out["behaviour"].items()]
    rows = [row for row in rows if row["there"]]
    never = [row["name"] for row in rows if row["never"]]
    rows = [row for row in rows if not row["never"]]
    return {
        "pairs": held_out["pairs"],
        "won": held_out["progression"].get("won_tied_lost"),
        "rows": rows,
        "never": never,
        "cards": _cards(found, rows),
        "shares": _shares(held_out),
    }


UNSURE, TOO_FEW = "cannot be told from chance", "too few for an interval"


def verdict(difference: Mapping[str, Any] | None) -> str:
    """What a paired difference shows: nothing more than its 95 % interval does."""
    if difference is None:
        return "nothing to compare"
    if difference["interval"] is None:
        return TOO_FEW
    low, high = difference["interval"]
    if low == high == 0:
        return "the same in every episode"
    return "higher" if low > 0 else "lower" if high < 0 else UNSURE


def value(name: str, number: float | None) -> str:
    """A metric's value; progression, too."""
    if name == "progression":
        return figures.percent(number)
    return attempts.value(name, number).replace("-", "−")


def signed(name: str, number: float | None) -> str:
    """A difference of a metric, with its sign; of shares in points of a hundred."""
    if number is None:
        return "–"
    if _share(name):
        return figures.signed(number)
    return f"{number:+.3g}".replace("-", "−")


def _share(name: str) -> bool:
    return name == "progression" or name.endswith("_share")


def _row(name: str, one: Mapping[str, Any]) -> dict[str, Any]:
    progression = name == "progression"
    sides = [_side(name, one[which], one.get(f"pooled_{which}")) for which in ("before", "after")]
    difference = one["difference"]
    span = difference["interval"] if difference else None
    return {
        "key": name,
        "name": "progression" if progression else metric(name).label,
        "unit": "%" if progression else unit(name),
        "meaning": "the game's own score of how far an episode came" if progression else metric(name).meaning,
        "never": all(one[which] is not None and one[which]["mean"] == 0 for which in ("before", "after")),
        "there": any(one[which] is not None for which in ("before", "after")),
        "sides": sides,
        "difference": signed(name, difference["mean"] if difference else None),
        "interval": _span(name, span, signed),
        "episodes": difference["values"] if difference else 0,
        "verdict": verdict(difference),
    }


def _side(name: str, one: Mapping[str, Any] | None, pooled: float | None) -> dict[str, str]:
    if one is None:
        return {"mean": "–", "interval": "", "pooled": ""}
    return {
        "mean": value(name, one["mean"]),
        "interval": _span(name, _bounded(name, one["interval"]), value),
        "pooled": "" if pooled is None else value(name, pooled),
    }


def _span(name: str, span: Any, shown: Any) -> str:
    return "" if span is None else f"{shown(name, span[0])} to {shown(name, span[1])}"


def _bounded(name: str, span: Any) -> Any:
    """An interval of means, cut to what a share can be."""
    return span if span is None or not _share(name) else (max(0.0, span[0]), min(1.0, span[1]))


def _cards(found: Found, rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """What a reader looks for first."""
    cards = []
    best = found.result["best"] if found.result else None
    losses = best["losses"] if best else {}
    if "held_out_before" in losses:
        before, after = losses["held_out_before"], losses["held_out_after"]
        told = f"{100 * (after - before) / before:+.0f} %".replace("-", "−") if before else ""
        cards.append(
            {"name": "held-out loss", "unit": "nats a token", "a": f"{before:.3g}", "b": f"{after:.3g}", "told": told}
        )
    by_key = {row["key"]: row for row in rows}
    for row in (by_key[key] for key in CARDS if key in by_key):
        span = f" [{row['interval'].replace(' to ', ', ')}]" if row["interval"] else ""
        cards.append({
            "name": row["name"], "unit": row["unit"], "a": row["sides"][0]["mean"], "b": row["sides"][1]["mean"],
            "told": f"{row['difference']} points{span}: {row['verdict']}",
        })  # fmt: skip
    return cards


def _shares(held_out: Mapping[str, Any]) -> Markup | str:
    """Progression and all shares of behaviour, both sides, with their intervals."""
    named = {"progression": held_out["progression"], **held_out["behaviour"]}
    rows = [
        _mark(name, number, named[name][which])
        for name in named
        if _share(name)
        and any(one is not None and one["mean"] for one in (named[name]["before"], named[name]["after"]))
        for number, which in enumerate(("before", "after"))
        if named[name][which] is not None
    ]
    if not rows:
        return ""
    title = "Progression and shares of behaviour on held-out seeds, untrained and specialist, with 95 % intervals"
    return Markup(charts.progression(rows, [], WHO, "%", title))


def _mark(name: str, number: int, one: Mapping[str, Any]) -> dict[str, Any]:
    label = "progression" if name == "progression" else metric(name).label
    span = _bounded(name, one["interval"])
    told = f"{label}, {WHO[number]}: {figures.percent(one['mean'])} %"
    told += f" ({figures.interval(span)})" if span else ""
    low, high = (100 * span[0], 100 * span[1]) if span else (None, None)
    return {"task": label, "run": number, "mean": 100 * one["mean"], "low": low, "high": high, "label": told}
