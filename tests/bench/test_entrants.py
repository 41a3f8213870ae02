"""Agents as people name them."""

from __future__ import annotations

from importlib import metadata

import pytest

from automem import choosing, runs
from automem.agents import registry
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


def agents_of_a_package(monkeypatch: pytest.MonkeyPatch, *named: str) -> None:
    entries = [metadata.EntryPoint(name, "automem.agents.random:Random", registry.ENTRY_POINTS) for name in named]
    monkeypatch.setattr(choosing, "entry_points", lambda group: entries)


@pytest.mark.parametrize("name", ["é", "_", "results.json", "bench.toml"])
def test_what_cannot_be_a_folder_of_its_own_is_told(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    agents_of_a_package(monkeypatch, name)
    with pytest.raises(UserError, match="cannot name an agent's folder"):
        parse(name)


def test_a_label_is_always_a_runs_name(monkeypatch: pytest.MonkeyPatch) -> None:
    agents_of_a_package(monkeypatch, "_hidden", "[bold]red", "a b/../c")
    assert [runs.valid_name(one.label) for one in parse("_hidden,[bold]red,a b/../c")]


def test_labels_are_names_of_folders() -> None:
    (entrant,) = parse("memory:../../etc/passwd")
    assert entrant.label == "memory-..-..-etc-passwd"
    assert "/" not in entrant.label and entrant.label not in (".", "..")
