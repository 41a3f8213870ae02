"""The written criteria by which `llm` selected, and what became of each version: a model wrote them."""

from __future__ import annotations

from typing import Any

from meta.page import markdown
from specialist.page.found import Found


def criteria(found: Found) -> list[dict[str, Any]]:
    """Each version, in order; nothing where the search's engine has no written criteria."""
    if not (found.search.folder / "criteria").is_dir():
        return []
    from specialist.select.llm.criteria import Criteria

    kept = Criteria(found.search.folder)
    in_force = kept.in_force().number
    return [
        {
            "number": version.number,
            "hash": version.hash,
            "by": version.by,
            "why": version.why,
            "html": markdown.html(version.text),
            "in_force": version.number == in_force,
            "rounds": [
                number
                for number, proposals in found.rounds.items()
                if any(proposal.criteria == str(version.number) for proposal in proposals)
            ],
        }
        for version in kept.versions()
    ]
