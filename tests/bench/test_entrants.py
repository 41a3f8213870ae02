"""Agents as people name them."""

from __future__ import annotations

import pytest

from automem.bench.entrants import Entrant, parse
from automem.errors import UserError


def test_agents_stand_between_commas_and_scaffolds_behind_a_colon() -> None:
    assert parse("random, memory,memory:crafter/v1+nethack/v1,specialist:crafter/small,scripted") == (
        Entrant("random", "random"),
        Entrant("memory", "memory"),
        Entrant("memory-crafter-v1-nethack-v1", "memory", ("crafter/v1", "nethack/v1")),
        Entrant("specialist-crafter-small", "memory", ("crafter/small",), specialist=True),
        Entrant("scripted", "scripted"),
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty place"),
        ("random,,naive", "empty place"),
        ("memory:", "empty place"),
        ("memory:crafter/v1+", "empty place"),
        ("random,random", "names random twice"),
        ("memory:a/b,memory:a+b", "twice"),  # one folder for both
        ("somebody", "there are random, naive, cot, memory, scripted"),
        ("naive:crafter/v1", "plays without a scaffold"),
        (",".join(f"memory:crafter/v{n}" for n in range(17)), "at most 16"),
    ],
)
def test_what_cannot_be_meant_is_told(text: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        parse(text)


def test_labels_are_names_of_folders() -> None:
    (entrant,) = parse("memory:../../etc/passwd")
    assert entrant.label == "memory-..-..-etc-passwd"
    assert "/" not in entrant.label and entrant.label not in (".", "..")
