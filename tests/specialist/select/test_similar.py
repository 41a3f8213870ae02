"""When two candidates teach the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Indel

from automem.scaffold import Scaffold
from specialist.select.similar import Lesson, Taken, lesson
from tests.specialist.select.made import DONE, Made

SEEN = "You see: grass 1 step to your west, tree 3 steps to your north. Health 9, food 8, drink 7, energy 9."
CHATTER = "I will record the outcome of my last action, so that I can find it again later when I need it."


def lessons(made: Made, *replies: str, seen: tuple[str, ...] = ()) -> list[Lesson]:
    for number, reply in enumerate(replies):
        made.step(reply + DONE, seen=seen[number] if seen else SEEN)
    return [lesson(candidate) for candidate in made.candidates()]


def alike(a: Lesson, b: Lesson) -> float:
    return min(Indel.normalized_similarity(x, y) for x, y in zip(a, b, strict=True))


@pytest.fixture
def made(tmp_path: Path, roomy: Scaffold) -> Made:
    return Made(tmp_path, roomy)


def test_the_same_but_for_the_step_and_what_is_said_around_is_the_same(made: Made) -> None:
    a, b, c = lessons(
        made,
        "<|APPEND|>lessons.txt|Step 1: tree 3 north<|END|>",
        "<|APPEND|>lessons.txt|Step 2:  tree 3 north<|END|>",
        f"{CHATTER} <APPEND>lessons.txt|Step 3: tree 3 north</APPEND>",
    )
    assert a == b == c


def test_a_shared_form_does_not_make_contents_alike(made: Made) -> None:
    """Told in characters, these are more than 0.95 alike."""
    a, b, c = lessons(
        made,
        f"{CHATTER} <|UPSERT_MAP|>12,4|tree<|END|>",
        f"{CHATTER} <|UPSERT_MAP|>13,4|tree<|END|>",
        f"{CHATTER} <|UPSERT_MAP|>-12,4|tree<|END|>",
    )
    texts = [turn.text for candidate in made.candidates() for turn in candidate.turns]
    assert Indel.normalized_similarity(*texts[:2]) > 0.95
    assert alike(a, b) < 0.9 and alike(a, c) < 0.9


def test_the_same_reply_to_something_else_is_another_lesson(made: Made) -> None:
    near = SEEN.replace("food 8", "food 7")
    far = "You see: water 2 steps to your south, zombie 1 step to your east. Health 3, food 2, drink 9, energy 1."
    a, b, c = lessons(made, *["<|APPEND|>lessons.txt|x<|END|>"] * 3, seen=(SEEN, near, far))
    assert 0.9 < alike(a, b) < 1
    assert alike(a, c) < 0.8


def test_near_duplicates_are_found_at_the_threshold() -> None:
    taken = Taken(0.95)
    first = Lesson("abcdefghijklmnopqrst", "same")
    taken.add(first, "first")
    assert taken.twin(first) == "first"
    assert taken.twin(Lesson("abcdefghijklmnopqrsX", "same")) == "first"  # 19 of 20 words: 0.95
    assert taken.twin(Lesson("abcdefghijklmnopqrXX", "same")) is None
    assert taken.twin(Lesson("abcdefghijklmnopqrst", "other")) is None


def test_of_several_the_most_alike_is_named() -> None:
    taken = Taken(0.5)
    taken.add(Lesson("abcdefgh", "s"), "first")
    taken.add(Lesson("abcdWXYZ", "s"), "second")
    assert taken.twin(Lesson("abcdWXYq", "s")) == "second"


def test_one_drops_equal_ones_only() -> None:
    taken = Taken(1)
    taken.add(Lesson("a" * 5000, "s"), "first")
    assert taken.twin(Lesson("a" * 5000, "s")) == "first"
    assert taken.twin(Lesson("a" * 4999 + "b", "s")) is None


words = st.text(alphabet="abcd", max_size=12)
some = st.builds(Lesson, words, words)


@given(st.lists(some, max_size=12), some, st.sampled_from([0.3, 0.5, 0.9, 1.0]))
def test_a_twin_is_as_alike_as_is_asked_and_there_is_none_otherwise(
    before: list[Lesson], new: Lesson, similar: float
) -> None:
    taken, kept = Taken(similar), {}
    for number, one in enumerate(before):
        if one not in kept.values():
            kept[str(number)] = one
            taken.add(one, str(number))
    twin = taken.twin(new)
    if twin is None:
        assert all(alike(one, new) < similar for one in kept.values())
    else:
        assert alike(kept[twin], new) >= similar - 1e-9
