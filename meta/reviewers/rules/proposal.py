"""A proposal: one idea of a revision, with what was measured as its reason; and which were made before."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from automem.scaffold import Scaffold
from meta.evidence import Attempt
from meta.reviewers.rules.draft import Draft
from meta.reviewers.rules.findings import Measured

RECORD = "proposal.json"
"""In an attempt's folder: what was proposed there, for the attempts after it."""

Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class Proposal:
    """One edit, or several that belong together.

    Attributes:
        name: of the idea; the same in every loop.
        parameters: what of it can be chosen otherwise; plain values.
        change: what is changed, in one line.
        reason: why, in a sentence or two that quote what was measured.
        expected: how much it should help, from 0 to 1; only the order matters.
        edit: makes the change. Raises `CannotEdit` when the candidate's files do not allow it.
    """

    name: str
    parameters: Parameters
    change: str
    reason: str
    expected: float
    edit: Callable[[Draft], None] = field(compare=False)


class Rule(Protocol):
    """What every rule offers; a rule is one file in `meta.reviewers.rules.rules`."""

    def propose(self, measured: Measured, scaffold: Scaffold, tried: Tried) -> Proposal | None:
        """What the figures call for, if they call for anything that was not tried yet."""
        ...


@dataclass(frozen=True)
class Tried:
    """What was proposed before for the same parent and did not help.

    Attributes:
        made: (name, parameters as JSON) of these proposals.
    """

    made: frozenset[tuple[str, str]] = frozenset()

    def __contains__(self, proposal: tuple[str, Parameters]) -> bool:
        name, parameters = proposal
        return (name, _written(parameters)) in self.made

    def first_new(self, name: str, choices: Sequence[Parameters]) -> Parameters | None:
        """The first of these parameters with which the idea was not tried."""
        return next((choice for choice in choices if (name, choice) not in self), None)

    def adding(self, proposal: Proposal) -> Tried:
        """With one more."""
        return Tried(self.made | {(proposal.name, _written(proposal.parameters))})


def tried_before(attempts: Sequence[Attempt], parent: str, before: Attempt | None = None) -> Tried:
    """What earlier attempts of the loop proposed for this parent without success.

    An attempt that could not be played for reasons of its own making counts; one that broke off from outside
    does not, unless it did twice.

    Args:
        attempts: all of the loop that are over.
        parent: identity of the version to improve.
        before: the attempt whose changes are kept; then only what was added to the same changes counts.
    """
    kept = [] if before is None else read_record(before.folder)
    made: list[tuple[str, str]] = []
    broken: list[tuple[str, str]] = []
    for attempt in attempts:
        found = read_record(attempt.folder)
        if attempt.parent == parent and attempt.outcome != "accepted" and found and found[:-1] == kept:
            (broken if attempt.outcome == "failed" else made).append(found[-1])
    return Tried(frozenset(made) | {one for one in broken if broken.count(one) > 1})


def write_record(folder: Path, proposal: Proposal, before: Attempt | None = None) -> None:
    """Note in an attempt's folder what is proposed there, after what the attempt before proposed if that is kept."""
    chain = [] if before is None else read_record(before.folder)
    chain.append((proposal.name, _written(proposal.parameters)))
    said = [{"name": name, "parameters": json.loads(parameters)} for name, parameters in chain]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).write_text(json.dumps(said, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_record(folder: Path) -> list[tuple[str, str]]:
    """Name and parameters of what was noted there, in order; nothing when there is no such note, or another's."""
    try:
        said = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        return [(str(one["name"]), _written(one["parameters"])) for one in said]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def _written(parameters: Parameters) -> str:
    return json.dumps(dict(parameters), sort_keys=True)
