"""Suites as data, and seeds as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import games
from games import suites


def test_the_suites_are_balrogs() -> None:
    assert suites.names() == ("smoke", "demo", "crafter", "minihack", "nethack", "balrog")
    (crafter,) = suites.load("crafter").entries
    assert (crafter.task, crafter.seeds, crafter.steps) == ("Crafter", tuple(range(42, 52)), 2_000)
    minihack = suites.load("minihack").entries
    assert {entry.task for entry in minihack} == {task for task in games.tasks() if task.startswith("MiniHack")}
    assert {(entry.seeds, entry.steps) for entry in minihack} == {((42, 43, 44, 45, 46), 100)}
    (nethack,) = suites.load("NetHack").entries
    assert (nethack.task, nethack.seeds, nethack.steps) == ("NetHackChallenge-v0", (42, 43, 44, 45, 46), 100_000)
    assert suites.load("balrog").entries == (crafter, *minihack, nethack)


def test_smoke_plays_all_three_games_in_eight_short_episodes() -> None:
    smoke = suites.load("smoke")
    assert smoke.episodes == 8
    assert {games.game_of(entry.task) for entry in smoke.entries} == {"crafter", "minihack", "nethack"}
    assert max(entry.steps for entry in smoke.entries) <= 4


def test_an_unknown_suite_is_answered_with_those_there_are() -> None:
    with pytest.raises(suites.UnknownSuite, match=r"'smok'.*smoke, demo, crafter, minihack, nethack, balrog"):
        suites.load("smok")


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("42..51", tuple(range(42, 52))),
        ("1,3,5", (1, 3, 5)),
        ("7", (7,)),
        ("5..5", (5,)),
        (" 9, 1 .. 3 ", (9, 1, 2, 3)),
        ("0", (0,)),
    ],
)
def test_seeds(text: str, seeds: tuple[int, ...]) -> None:
    assert suites.parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5..1", "write 1..5"),
        ("x", "'x', which names no seed"),
        ("", "empty"),
        ("1,,2", "empty"),
        ("-3", "negative"),
        ("1..-2", "negative"),
        ("1..", "names no seed"),
        ("1...3", "names no seed"),
        ("1.5", "names no seed"),
        ("\u0663", "names no seed"),
        ("1,2,1", "1 twice"),
        ("1..4,3", "3 twice"),
        ("0..100000", "more than 100,000"),
        ("0..60000,60001..120000", "more than 100,000"),
        ("99999999999", "largest seed"),
        ("9" * 5000, "largest seed"),
    ],
)
def test_seeds_that_are_none(text: str, said: str) -> None:
    with pytest.raises(suites.BadSeeds) as caught:
        suites.parse_seeds(text)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, unique=True))
def test_a_list_of_seeds_reads_back(seeds: list[int]) -> None:
    assert suites.parse_seeds(",".join(map(str, seeds))) == tuple(seeds)


@given(st.text("0123456789.,- x", max_size=12))
def test_any_text_is_seeds_or_an_explanation(text: str) -> None:
    try:
        seeds = suites.parse_seeds(text)
    except suites.BadSeeds:
        return
    assert seeds
    assert all(0 <= seed <= suites.LARGEST_SEED for seed in seeds)
