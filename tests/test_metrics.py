"""Behaviour of an episode, counted step by step."""

from __future__ import annotations

import itertools
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from automem.metrics import RECENT, Behaviour, Counts, counts_from, rates
from automem.records import Executed, HookEvent, Prompt, StepRecord, Turn


def step(number: int, observation: str, *ops: Executed, hooks: tuple[HookEvent, ...] = ()) -> StepRecord:
    turn = Turn("m", Prompt("p"), "text", ops, (), 10, 2, 1, None, 0.5)
    return StepRecord(number, observation, (turn,), (), None, "Noop", 0, False, 0.0, 0.0, {}, False, False, hooks=hooks)


def op(name: str, *args: str, **more: object) -> Executed:
    file = "map.txt" if name == "UPSERT_MAP" else args[0]
    return Executed(name, args, (0, 0), name, "answer", file=file, **more)  # type: ignore[arg-type]


def walked(path: str) -> Counts:
    """Counts of an episode that shows these observations, one character each."""
    behaviour = Behaviour()
    for number, (here, there) in enumerate(itertools.pairwise(path)):
        behaviour.add(step(number, here), there)
    return behaviour.counts


def did(*ops: Executed) -> Counts:
    behaviour = Behaviour()
    behaviour.add(step(0, "a", *ops), "b")
    return behaviour.counts


@pytest.mark.parametrize(
    ("path", "stuck", "oscillating"),
    [
        ("abcdef", 0, 0),
        ("aaab", 2, 0),
        ("abab", 0, 1),  # back at a, and away again
        ("ababab", 0, 3),
        ("aba", 0, 0),  # back, but not away again
        ("abbab", 1, 1),
        ("abcabcd", 0, 3),  # the way round is walked a second time
        ("aab", 1, 0),
    ],
)
def test_stuck_and_oscillating(path: str, stuck: int, oscillating: int) -> None:
    counts = walked(path)
    assert (counts.stuck, counts.oscillating) == (stuck, oscillating)


def test_a_return_after_long_is_no_oscillation() -> None:
    between = string.ascii_letters[1 : RECENT + 1]
    assert walked(f"a{between}ab").oscillating == 0
    assert walked(f"a{between[:-1]}ab").oscillating == 1


def test_the_clock_of_a_game_is_no_change() -> None:
    behaviour = Behaviour()
    behaviour.add(step(0, "wall T:12 HP:3"), "wall T:13 HP:3")
    behaviour.add(step(1, "wall T:13 HP:3"), "wall T:14 HP:2")
    assert behaviour.counts.stuck == 1


def test_entries_are_added_updated_and_deleted() -> None:
    counts = did(
        op("APPEND", "log.txt", "one"),
        op("APPEND", "log.txt", "one"),
        op("UPSERT", "map.txt", "k", "v"),
        op("UPSERT", "map.txt", "k", "w"),
        op("UPSERT_MAP", "1,2", "tree"),
        op("UPSERT_MAP", "1,2", "stump"),
        op("WRITE", "note.txt", "new"),
        op("WRITE", "note.txt", "newer"),
        op("DELETE", "map.txt", "k"),
        op("UPSERT", "map.txt", "k", "v"),
        op("APPEND", "log.txt", "refused", ok=False),
        op("DELETE", "map.txt"),
        op("UPSERT_MAP", "1,2", "stump"),
    )
    assert (counts.added_entries, counts.updated_entries, counts.deleted_entries) == (7, 3, 2)
    assert (counts.writes, counts.duplicate_writes, counts.refused, counts.refused_writes) == (10, 1, 1, 1)
    assert counts.written_chars == len("oneonevwtreestumpnewnewervstump")


def test_what_hooks_did_is_counted_apart() -> None:
    behaviour = Behaviour()
    events = (HookEvent(0, "observe", "lost", ""), HookEvent(1, "check_action", "again", ""))
    behaviour.add(step(0, "a", op("WRITE", "s.txt", "x", by="op_S", added=2), hooks=events), "b")
    counts = behaviour.counts
    assert (counts.hook_ops, counts.writes, counts.added_bytes, counts.operations) == (1, 0, 2, {"WRITE": 1})
    assert (counts.hook_errors, counts.doubted, counts.repaired) == (1, 1, 0)


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=60))
def test_every_step_is_at_most_one_of_stuck_and_oscillating(path: list[str]) -> None:
    counts = walked("".join(path))
    assert counts.stuck + counts.oscillating <= counts.steps == len(path) - 1
    assert counts.stuck == sum(a == b for a, b in itertools.pairwise(path))
    assert counts_from(counts.as_dict()) == counts


def test_rates_divide_only_where_there_is_something() -> None:
    assert set(rates(Counts()).values()) == {None}
    found = rates(did(op("APPEND", "a", "x"), op("SEARCH", "a", "y", found=0)))
    assert (found["empty_search_share"], found["duplicate_write_share"], found["log_turns_per_step"]) == (1.0, 0.0, 1.0)
