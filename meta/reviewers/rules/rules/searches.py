"""Searches that find nothing: the model is told which words its notes have, or no longer counts what it can see."""

from __future__ import annotations

from collections.abc import Sequence

from automem.scaffold import Scaffold
from meta.reviewers.rules.draft import Draft, described
from meta.reviewers.rules.findings import FileFigures, Measured
from meta.reviewers.rules.proposal import Parameters, Proposal, Tried
from meta.reviewers.rules.thresholds import thresholds

NAME = "search-words"


class Searches:
    """Where many searches and counts come back without a line."""

    def propose(self, measured: Measured, scaffold: Scaffold, tried: Tried) -> Proposal | None:
        limits = thresholds()["searches"]
        file = max(measured.files.values(), key=lambda file: file.nothing, default=None)
        if file is None or not file.searches or file.nothing / file.searches < limits["nothing"]:
            return None
        if measured.per_step(file.searches) < limits["per_step"]:
            return None
        parameters = tried.first_new(NAME, _choices(file, measured))
        if parameters is None:
            return None
        share = file.nothing / file.searches
        words = [f'"{word}"' for word in list(file.misses)[:3]]

        def edit(draft: Draft) -> None:
            _edit(draft, file, parameters)

        return Proposal(
            NAME,
            parameters,
            "COUNT is taken away"
            if parameters["how"] == "no-count"
            else f"the model is told which words {file.name} has",
            f"{measured.per_step(file.searches):.1f} searches a step were made of {file.name}, and {share:.0%} of them "
            f"found no line; most often in vain was {described(words)}.",
            limits["expected"] * share,
            edit,
        )


def _choices(file: FileFigures, measured: Measured) -> Sequence[Parameters]:
    counts = measured.counts.operations.get("COUNT", 0)
    searches = measured.counts.operations.get("SEARCH", 0)
    words = [{"how": "words", "file": file.name}] if file.lines and "{block}" not in file.name else []
    return [*([{"how": "no-count"}] if counts > searches else []), *words]


def _edit(draft: Draft, file: FileFigures, parameters: Parameters) -> None:
    if parameters["how"] == "no-count":
        draft.disable("COUNT")
        return
    draft.add_part("words", file=file.name, most=thresholds()["searches"]["words"])
    draft.show_hook("words")
    draft.tell("How to search", _TOLD)


_CHANGE = {"no-count": "COUNT is taken away", "words": "the model is told which words {} has"}

_TOLD = """
A search finds lines that contain the query letter by letter. Search for one word that you wrote yourself, as you wrote
it; you are shown the words that your notes have. Write things by the same name every time.
"""
