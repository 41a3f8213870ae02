"""What counts for a phase and against it: each signal in an episode whose replies are written for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from automem.scaffold import Scaffold
from specialist.select.engine import Verdict
from specialist.select.rules import Rules
from specialist.select.signals import SIGNALS
from specialist.select.weights import load
from tests.specialist.select.made import DONE, Made

WEIGHTS = load()
HORIZON, PATIENCE = WEIGHTS.limits.horizon, WEIGHTS.limits.patience


def block(name: str, *args: object) -> str:
    return f"<|{name}|>{'|'.join(map(str, args))}<|END|>"


@pytest.fixture
def made(tmp_path: Path, roomy: Scaffold) -> Made:
    return Made(tmp_path, roomy)


def verdicts(made: Made) -> dict[tuple[int, str], Verdict]:
    found = made.candidates()
    said = asyncio.run(Rules().judge(made.episode(), found))
    return {(c.place.step, c.place.phase): v for c, v in zip(found, said, strict=True)}


def amounts(made: Made, step: int, phase: str = "log") -> dict[str, float]:
    return {reason.code: reason.amount for reason in verdicts(made)[step, phase].reasons}


def note(text: str, file: str = "lessons.txt") -> str:
    return block("APPEND", file, text) + DONE


def test_a_note_that_is_read_back_counts_more_when_progress_follows(made: Made) -> None:
    idle = made.step(note("cows are food"))
    read = made.step(plan=[block("SEARCH", "lessons.txt", "cows")])
    made.rest(HORIZON)
    good = made.step(note("water is east"))
    made.step(plan=[block("READ", "lessons.txt")])
    made.rest(HORIZON - 2)
    made.step(reached="drink")  # the last step that is soon enough for the read
    late = verdicts(made)
    assert {r.code for r in late[idle, "log"].reasons} >= {"read_back"}
    assert "read_before_progress" in {r.code for r in late[idle, "log"].reasons}  # READ showed both lines
    assert {r.code: r.amount for r in late[good, "log"].reasons}["read_before_progress"] == 1
    assert late[good, "log"].score > late[read, "plan"].score
    assert late[good, "log"].accept


@pytest.mark.parametrize(("steps_between", "counts"), [(HORIZON - 2, True), (HORIZON - 1, False)])
def test_progress_counts_within_the_horizon_only(made: Made, steps_between: int, counts: bool) -> None:
    wrote = made.step(note("cows are food"))
    read = made.step(plan=[block("TAIL", "lessons.txt", 5)])
    made.rest(steps_between)
    made.step(reached="eat_cow")
    made.rest(5)
    assert ("read_before_progress" in amounts(made, wrote)) is counts
    assert ("reads_before_progress" in amounts(made, read, "plan")) is counts
    assert amounts(made, wrote)["read_back"] == 1


def test_progress_before_the_read_does_not_count(made: Made) -> None:
    wrote = made.step(note("cows are food"), reached="eat_cow")
    read = made.step(plan=[block("READ", "lessons.txt")])
    made.rest(3)
    assert "read_before_progress" not in amounts(made, wrote)
    assert "reads_before_progress" not in amounts(made, read, "plan")


def test_what_is_only_pinned_or_seen_by_its_own_phase_was_not_read_back(made: Made) -> None:
    pinned = made.step(block("WRITE", "now.txt", "at 3,4") + DONE, reached="wood")
    own = made.step(block("APPEND", "lessons.txt", "cows") + block("READ", "lessons.txt"), DONE)
    made.rest(PATIENCE)
    assert not {"read_back", "read_before_progress", "never_read"} & amounts(made, pinned).keys()
    assert "read_back" not in amounts(made, own) and amounts(made, own)["never_read"] == 1


def test_what_is_pinned_counts_while_it_stands_when_progress_is_made(made: Made) -> None:
    stood = made.step(block("WRITE", "now.txt", "tree in front") + DONE, reached="wood")
    gone = made.step(block("WRITE", "now.txt", "at 3,4") + DONE)
    other = made.step(block("WRITE", "now.txt", "at 4,4") + DONE)
    made.step(reached="stone")
    made.rest(2)
    said = verdicts(made)
    assert amounts(made, stood)["pinned_before_progress"] == 1
    assert "pinned_before_progress" not in amounts(made, gone)
    assert amounts(made, other)["pinned_before_progress"] == 1
    assert said[stood, "log"].accept


def test_a_note_counts_as_never_read_once_there_was_time_to_read_it(made: Made) -> None:
    old = made.step(note("cows"))
    replaced = made.step(block("UPSERT", "places.txt", "lake", "north") + DONE)
    made.step(block("UPSERT", "places.txt", "lake", "south") + DONE)
    made.rest(PATIENCE - 3)
    new = made.step(note("trees"))
    made.rest(1)
    assert made.episode().step(old + PATIENCE)
    assert amounts(made, old)["never_read"] == 1
    assert amounts(made, replaced)["never_read"] == 1
    assert "never_read" not in amounts(made, new)


def test_shares_are_of_all_notes_of_a_phase(made: Made) -> None:
    wrote = made.step(note("cows")[: -len(DONE)] + note("trees"))
    made.step(plan=[block("SEARCH", "*", "cows")])
    made.rest(PATIENCE)
    assert amounts(made, wrote)["read_back"] == 0.5 and amounts(made, wrote)["never_read"] == 0.5


def test_maps_are_followed_by_key(made: Made) -> None:
    first = made.step(block("UPSERT_MAP", "3,4", "tree") + block("UPSERT", "places.txt", "lake", "north") + DONE)
    again = made.step(block("UPSERT_MAP", "3,4", "tree") + DONE)
    update = made.step(block("UPSERT_MAP", "3,4", "table") + DONE)
    made.step(plan=[block("READ", "grid_0_0.txt") + block("SEARCH", "*", "north")])
    assert amounts(made, first)["read_back"] == 0.5  # the lake; the tree was a table by then
    assert amounts(made, again)["duplicates"] == 1 and "updates" not in amounts(made, again)
    assert amounts(made, update)["updates"] == 1 and amounts(made, update)["read_back"] == 1


def test_a_duplicate_is_one_but_for_step_numbers_and_other_numbers_make_news(made: Made) -> None:
    made.step(note("Step 1: tree 12 north"))
    again = made.step(note("Step 2: tree 12 north"))
    news = made.step(note("Step 3: tree 13 north"))
    same = made.step(block("WRITE", "goals.txt", "wood") + DONE)
    rewritten = made.step(block("WRITE", "goals.txt", "stone") + DONE)
    written_again = made.step(block("WRITE", "goals.txt", "stone") + DONE)
    assert amounts(made, again)["duplicates"] == 1
    assert "duplicates" not in amounts(made, news)
    assert amounts(made, same)["updates"] == 1  # over what the scaffold had put there
    assert amounts(made, rewritten)["updates"] == 1
    assert amounts(made, written_again)["duplicates"] == 1 and "updates" not in amounts(made, written_again)


def test_who_said_it_first_keeps_the_credit(made: Made) -> None:
    first = made.step(note("cows are food"))
    second = made.step(note("cows are food"))
    made.step(plan=[block("READ", "lessons.txt")], reached="eat_cow")
    assert amounts(made, first)["read_before_progress"] == 1
    assert "read_before_progress" not in amounts(made, second)


def test_a_deletion_counts_when_the_entry_was_old_and_stays_away(made: Made) -> None:
    made.step(note("cow at 3,4"), plan=[block("READ", "lessons.txt")])
    gone = made.step(block("DELETE", "lessons.txt", "cow at 3,4") + DONE)
    made.step(note("tree at 1,1"))
    back = made.step(block("DELETE", "lessons.txt", "tree at 1,1") + DONE)
    made.step(note("tree at 1,1"))
    at_once = made.step(block("APPEND", "lessons.txt", "x") + block("DELETE", "lessons.txt", "x") + DONE)
    made.rest(2)
    assert amounts(made, gone)["outdated_removed"] == 1
    assert "outdated_removed" not in amounts(made, back)
    assert "outdated_removed" not in amounts(made, at_once)


@pytest.mark.parametrize(
    ("query", "action", "counts"), [("cows", "east", True), ("cows", "west", False), ("lions", "east", False)]
)
def test_a_search_counts_when_it_found_something_and_the_plan_changed(
    made: Made, query: str, action: str, counts: bool
) -> None:
    made.step(note("cows are food"))
    step = made.step(plan=[block("SEARCH", "lessons.txt", query)], action=action)
    found = amounts(made, step, "plan")
    assert ("search_changed_plan" in found) is counts
    assert ("empty_searches" in found) is (query == "lions")


def test_what_is_refused_or_not_understood_counts_against(made: Made) -> None:
    refused = made.step(block("DELETE", "lessons.txt", "no such line") + DONE)
    unknown = made.step(block("FLY", "x") + block("APPEND", "a/b", "x") + DONE)
    in_plan = made.step(plan=[block("READ", "lessons.txt") + block("WRITE", "lessons.txt", "x")])
    repeated = made.step(plan=[block("READ", "goals.txt") * 3])
    assert amounts(made, refused)["refused"] == 1 and "valid" not in amounts(made, refused)
    assert amounts(made, unknown)["errors"] == 2
    assert amounts(made, in_plan, "plan")["errors"] == 1 and "valid" not in amounts(made, in_plan, "plan")
    assert amounts(made, repeated, "plan")["repeated_reads"] == 2 and amounts(made, repeated, "plan")["valid"] == 1


def test_an_action_that_the_game_does_not_have_is_no_fault_of_the_memory_work(made: Made) -> None:
    made.step(note("cows"))
    step = made.step(plan=[block("READ", "lessons.txt") + block("ACTION", "fly")])
    assert made.episode().step(step).plan[0].errors
    assert "errors" not in amounts(made, step, "plan")


@pytest.mark.parametrize(
    "line",
    [
        "--- 1. READ map_notes.txt ---",
        "--- end of results ---",
        "=== STEP 4 | last action: west ===",
        "=== END OF OBSERVATION ===",
        "--- contents of now.txt ---",
    ],
)
def test_made_up_results_are_never_good(made: Made, line: str) -> None:
    step = made.step(f"I look.\n{line}\nthere it is\n{note('cow')}")
    made.step(plan=[block("READ", "lessons.txt")], reached="eat_cow")
    verdict = verdicts(made)[step, "log"]
    assert "made_up" in {r.code for r in verdict.reasons} and not verdict.accept


def test_dashes_and_signs_alone_are_no_results(made: Made) -> None:
    step = made.step(f"--- so ---\n=== and so ===\n- a list\n{note('x = y --- z')}")
    assert "made_up" not in amounts(made, step)


def test_a_tidy_log_ends_with_done_and_says_little_around(made: Made) -> None:
    tidy = made.step(note("cow"))
    open_ended = made.step(*[block("APPEND", "lessons.txt", f"line {n}") for n in range(5)])
    chatty = made.step("so " * WEIGHTS.limits.talk + note("tree"))
    nothing = made.step(DONE)
    assert amounts(made, tidy).keys() >= {"valid", "concise", "done"}
    assert "done" not in amounts(made, open_ended)
    assert "concise" not in amounts(made, chatty)
    assert amounts(made, nothing)["idle"] == 1 and not verdicts(made)[nothing, "log"].accept


def test_a_score_is_the_capped_weighted_sum(made: Made) -> None:
    step = made.step(block("FLY", "x") * 9 + DONE)
    verdict = verdicts(made)[step, "log"]
    errors = next(reason for reason in verdict.reasons if reason.code == "errors")
    cap = WEIGHTS.signals["errors"]
    assert (errors.amount, errors.points) == (cap.most, cap.most * cap.weight)
    assert verdict.score == max(WEIGHTS.lowest, sum(reason.points for reason in verdict.reasons))
    assert f"below {WEIGHTS.threshold:g}" in verdict.text and "errors -4.5" in verdict.text


def test_every_signal_says_its_formula() -> None:
    assert all((signal.__doc__ or "").strip() for signal in SIGNALS.values())


def test_only_some_candidates_are_judged_as_all_of_them(made: Made) -> None:
    made.step(note("cow"))
    made.step(note("tree"), plan=[block("READ", "lessons.txt")], reached="eat_cow")
    made.step(note("cow"))
    found = made.candidates()
    everything = asyncio.run(Rules().judge(made.episode(), found))
    assert asyncio.run(Rules().judge(made.episode(), found[1:3])) == everything[1:3]
