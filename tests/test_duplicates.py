"""Which writes only say again what a file was told before."""

from __future__ import annotations

import time

import pytest

from automem.duplicates import Duplicates, bare
from automem.records import Executed


def op(name: str, *args: str, duplicate: bool = False) -> Executed:
    file = "map.txt" if name == "UPSERT_MAP" else args[0]
    return Executed(name, args, (0, 0), name, "", duplicate=duplicate, file=file)


def seen(duplicates: Duplicates, name: str, *args: str, step: int = 0) -> bool:
    return duplicates.seen(op(name, *args), step)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Step 3, Move West: You see grass", "Step 117, Move West:  You see grass "),
        ("step 3: nothing", "Step: 117: nothing"),
        ("[3] a tree", "[117] a tree"),
        ("2: a tree", "116: a tree"),
        ("T:88 hungry", "T:92 hungry"),
        ("a\n b", "a b"),
    ],
)
def test_step_numbers_and_white_space_make_no_other_line(one: str, other: str) -> None:
    duplicates = Duplicates()
    assert not seen(duplicates, "APPEND", "log.txt", one, step=3)
    assert seen(duplicates, "APPEND", "log.txt", other, step=117)
    assert not seen(duplicates, "APPEND", "other.txt", other, step=117)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("health 3", "health 4"),
        ("3,4 tree", "3,5 tree"),
        ("1.5 wood", "2.5 wood"),
        ("3: tree", "7: tree"),  # a coordinate, far from the step
        ("tree 1 12", "tree 11 2"),
        ("D at 3,4", "d at 3,4"),
        ("[4]", "[7]"),
        ("Step 12", "Step 13"),  # nothing but the number
    ],
)
def test_what_says_something_makes_another_line(one: str, other: str) -> None:
    assert bare(one, 400) != bare(other, 400)


def test_a_file_that_is_replaced_or_removed_may_be_told_again() -> None:
    duplicates = Duplicates()
    seen(duplicates, "APPEND", "a.txt", "x")
    assert not seen(duplicates, "WRITE", "a.txt", "y")
    assert not seen(duplicates, "APPEND", "a.txt", "x")
    assert seen(duplicates, "APPEND", "a.txt", "x")
    duplicates.forget(op("DELETE", "a.txt", "x"), 0)
    assert not seen(duplicates, "APPEND", "a.txt", "x")
    duplicates.forget(op("DELETE", "a.txt"), 0)
    assert not seen(duplicates, "APPEND", "a.txt", "x")
    assert not seen(duplicates, "WRITE", "a.txt", "y") and seen(duplicates, "WRITE", "a.txt", "y ")


def test_a_key_is_told_again_only_when_its_value_stays() -> None:
    duplicates = Duplicates()
    assert not seen(duplicates, "UPSERT_MAP", "3,4", "tree")
    assert seen(duplicates, "UPSERT_MAP", "3,4", " tree")
    assert not seen(duplicates, "UPSERT_MAP", "3,4", "grass")
    assert not seen(duplicates, "UPSERT", "map.txt", "3,4", "tree")
    assert seen(duplicates, "UPSERT_MAP", "3,4", "tree")
    duplicates.forget(op("DELETE", "map.txt", "3,4"), 0)
    assert not seen(duplicates, "UPSERT_MAP", "3,4", "tree")
    duplicates.forget(op("WRITE", "map.txt", ""), 0)
    assert not seen(duplicates, "UPSERT_MAP", "3,4", "tree")


def test_what_the_folder_calls_a_duplicate_is_one() -> None:
    assert Duplicates().seen(op("UPSERT", "m.txt", "k", "v", duplicate=True), 0)


@pytest.mark.parametrize("text", ["\n" * 200_000, "t" + " " * 200_000, "step " * 40_000, "[1" * 100_000, "1" * 200_000])
def test_a_hostile_text_takes_no_time(text: str) -> None:
    began = time.process_time()
    bare(text, 3)
    assert time.process_time() - began < 1
