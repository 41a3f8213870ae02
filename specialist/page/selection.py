"""What was selected, why, and what cleaning made of it: for each way in which a search selected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specialist.page.found import Data, Found
from specialist.page.readings import even, readings
from specialist.prepare import PHASES, LeftOut, Prepared
from specialist.select.quotas import ACCEPTED
from specialist.select.statistics import OfReason, Statistics

EPISODES = 200
"""Episodes that are listed."""

LEFT_OUT = 3
"""Turns that are shown of each reason for which cleaning left some out."""


def anchor(key: str) -> str:
    """The id of a dataset's section."""
    return f"data-{key}"


def shown(found: Found) -> list[dict[str, Any]]:
    """Everything about each selection and its dataset."""
    return [_shown(found, data) for data in found.data]


def _shown(found: Found, data: Data) -> dict[str, Any]:
    statistics = data.statistics
    return {
        "key": data.key,
        "anchor": anchor(data.key),
        "identity": data.facts.identity if data.facts else "",
        "used_by": [row.number for row in found.rows if data.facts and row.data == data.facts.identity],
        "engine": statistics.engine if statistics else "",
        "version": statistics.version if statistics else "",
        "statistics": statistics,
        "shortage": (statistics.shortage() or "") if statistics else "",
        "phases": _phases(statistics) if statistics else (),
        "whys": _whys(statistics) if statistics else (),
        "reasons": _reasons(statistics) if statistics else (),
        "episodes": statistics.episodes[:EPISODES] if statistics else (),
        "more_episodes": max(0, len(statistics.episodes) - EPISODES) if statistics else 0,
        "taken_from": sum(one.accepted > 0 for one in statistics.episodes) if statistics else 0,
        "readings": readings(data.selection, found.search.folder.parent) if statistics else (),
        "facts": data.facts,
        "prepared": data.prepared,
        "left_out": _left_out(data.prepared) if data.prepared else (),
        "open": len(found.data) == 1,
    }


def _phases(statistics: Statistics) -> list[dict[str, Any]]:
    wanted = {"log": statistics.recipe.log_share, "plan": 1 - statistics.recipe.log_share}
    return [
        {
            "name": phase.upper(),
            "candidates": of_phase.candidates,
            "accepted": of_phase.accepted,
            "part": of_phase.accepted / of_phase.candidates if of_phase.candidates else None,
            "wanted": round(statistics.recipe.examples * wanted[phase]),
        }
        for phase, of_phase in statistics.phases.items()
    ]


def _whys(statistics: Statistics) -> list[dict[str, Any]]:
    """What became of candidates, by phase and in all, the most frequent first."""
    names = dict.fromkeys(why for of_phase in statistics.phases.values() for why in of_phase.why)
    rows = []
    for name in names:
        counts = [statistics.phases[phase].why.get(name, 0) if phase in statistics.phases else 0 for phase in PHASES]
        rows.append({"name": name, "accepted": name == ACCEPTED, "counts": counts, "total": sum(counts)})
    return sorted(rows, key=lambda row: (not row["accepted"], -row["total"]))


def _reasons(statistics: Statistics) -> list[dict[str, Any]]:
    """What counted for and against candidates that were judged, the heaviest for first."""
    meanings = _meanings(statistics.engine)
    judged = sum(one.candidates for one in statistics.episodes if one.looked_at)
    rejected = judged - statistics.accepted
    rows = [
        {
            "code": code,
            "meaning": meanings.get(code, ""),
            "points": _mean(reason),
            "accepted": reason.accepted,
            "accepted_part": reason.accepted / statistics.accepted if statistics.accepted else None,
            "rejected": reason.rejected,
            "rejected_part": reason.rejected / rejected if rejected > 0 else None,
        }
        for code, reason in statistics.reasons.items()
    ]
    return sorted(rows, key=lambda row: (-row["points"], row["code"]))


def _mean(reason: OfReason) -> float:
    """Points that it added to a candidate on which it weighed."""
    weighed = reason.accepted + reason.rejected
    return (reason.points_accepted + reason.points_rejected) / weighed if weighed else 0.0


def _meanings(engine: str) -> Mapping[str, str]:
    """What the codes of an engine mean, where it has any that are known."""
    if engine != "rules":
        return {}
    from specialist.select.signals import SIGNALS

    return {code: (signal.__doc__ or "").partition("\n")[0].replace("`", "") for code, signal in SIGNALS.items()}


def _left_out(prepared: Prepared) -> list[dict[str, Any]]:
    """Why turns became no examples, and some of them."""
    by_reason: dict[str, list[LeftOut]] = {}
    for one in prepared.left_out:
        by_reason.setdefault(one.reason, []).append(one)
    return [
        {"reason": reason, "count": count, "examples": even(by_reason.get(reason, []), LEFT_OUT)}
        for reason, count in prepared.dropped.items()
    ]
