"""Which writes only say again what a file was told before."""

from __future__ import annotations

import pytest

from automem.duplicates import Duplicates, bare
from automem.records import Executed


def seen(duplicates: Duplicates, name: str, *args: str) -> bool:
    return duplicates.seen(Executed(name, args, (0, 0), name, ""))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Step 3, Move West: You see grass", "Step 117, Move West:  You see grass "),
        ("step 3: nothing", "Step: 4: nothing"),
        ("[3] a tree", "[14] A tree"),
        ("12: a tree", "13: a tree"),
        ("T:88 hungry", "T:92 hungry"),
        ("a\n b", "a b"),
    ],
)
def test_step_numbers_and_white_space_make_no_other_line(one: str, other: str) -> None:
    duplicates = Duplicates()
    assert not seen(duplicates, "APPEND", "log.txt", one)
    assert seen(duplicates, "APPEND", "log.txt", other)
    assert not seen(duplicates, "APPEND", "other.txt", other)


@pytest.mark.parametrize(
    ("one", "other"), [("health 3", "health 4"), ("3,4 tree", "3,5 tree"), ("tree 3 west", "tree")]
)
def test_numbers_that_say_something_do(one: str, other: str) -> None:
    assert bare(one) != bare(other)


def test_a_file_that_is_replaced_or_removed_may_be_told_again() -> None:
    duplicates = Duplicates()
    seen(duplicates, "APPEND", "a.txt", "x")
    assert not seen(duplicates, "WRITE", "a.txt", "y")
    assert not seen(duplicates, "APPEND", "a.txt", "x")
    assert seen(duplicates, "APPEND", "a.txt", "x")
    seen(duplicates, "DELETE", "a.txt")
    assert not seen(duplicates, "APPEND", "a.txt", "x")
    assert not seen(duplicates, "WRITE", "a.txt", "y") and seen(duplicates, "WRITE", "a.txt", "y ")


def test_a_key_is_told_again_only_when_its_value_stays() -> None:
    duplicates = Duplicates()
    assert not seen(duplicates, "UPSERT_MAP", "3,4", "tree")
    assert seen(duplicates, "UPSERT_MAP", "3,4", "Tree")
    assert not seen(duplicates, "UPSERT_MAP", "3,4", "grass")
    assert not seen(duplicates, "UPSERT_MAP", "3,4", "tree")
    seen(duplicates, "DELETE", "map.txt", "3,4")
    assert not seen(duplicates, "UPSERT_MAP", "3,4", "tree")


def test_what_the_folder_calls_a_duplicate_is_one() -> None:
    assert Duplicates().seen(Executed("UPSERT", ("m.txt", "k", "v"), (0, 0), "UPSERT", "", duplicate=True))
