"""Reviewers, one file or folder each, behind `meta.reviewer.Reviewer`.

A new one is a function from settings to a reviewer and a line in `REVIEWERS`; in another package, an entry
point of the group ``automem.reviewers``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import ValidationError

from automem import choosing
from automem.errors import UserError
from meta.reviewer import Reviewer
from meta.settings import ReviewerSettings


def _rules(settings: ReviewerSettings) -> Reviewer:
    from meta.reviewers.rules import Rules

    if settings.options:
        raise UserError(f"the reviewer rules takes no {', '.join(settings.options)}")
    return Rules()


def _llm(settings: ReviewerSettings) -> Reviewer:
    from meta.reviewers.llm import make

    return make(settings)


def _command(settings: ReviewerSettings) -> Reviewer:
    from meta.reviewers.command import CommandOptions, CommandReviewer

    try:
        return CommandReviewer(CommandOptions.model_validate(settings.options))
    except ValidationError as error:
        listed = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise UserError(f"reviewer command: {listed}") from error


REVIEWERS: Mapping[str, Callable[[ReviewerSettings], Reviewer]] = {
    "rules": _rules,
    "llm": _llm,
    "command": _command,
}
"""By the kinds that settings call them. What a reviewer needs is imported when it is chosen."""

GROUP = "automem.reviewers"


def kinds() -> tuple[str, ...]:
    """Every kind that can be chosen."""
    return choosing.kinds(REVIEWERS, GROUP)


def check(settings: ReviewerSettings) -> None:
    """Whether the settings can make a reviewer; reaches nothing. Raises `UserError`."""
    make(settings)


def make(settings: ReviewerSettings) -> Reviewer:
    """The reviewer that settings describe. Raises `UserError` when there is none, or they do not fit it."""
    return choosing.chosen(settings.kind, REVIEWERS, GROUP, "reviewer")(settings)
