"""The scripted player of NetHack: pure, never at a loss, and true to the scaffold's entries."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from automem.models.scripted.nethack import play
from automem.models.scripted.reading import PlannedFile, read_call
from tests.scripted.hack_prompts import call, log, observation, play_game

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "nethack.json").read_text("utf-8"))
TEXTS = [f"{r['long_term_context'].rstrip()}\n\n{r['short_term_context'].rstrip()}" for r in GOLDEN]

ROOM = [
    "  -----",
    "  |...|",
    "  |...+",
    "  |...|",
    "  -----",
]
FILES = (
    log("Step {step}, {action} at {x},{y} {status}: {message} | {seen}"),
    PlannedFile("map.txt", "map", "places", "{what}", "{x},{y}"),
    PlannedFile("state.txt", "note", "one line", "{what}"),
)


def operations(text: str) -> list[tuple[str, str]]:
    return re.findall(r"<\|([A-Z_]+)\|>(.*?)<\|END\|>", text, re.S)


def action(text: str) -> str:
    ((name, chosen),) = operations(text)
    assert name == "ACTION"
    return chosen


@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=400), phase=st.sampled_from(["log", "plan"]))
def test_any_text_is_answered(text: str, phase: str) -> None:
    assert operations(play(call(text, phase, FILES)))


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_damaged_observation_is_answered(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 60)))
        text = text[:start] + data.draw(st.text("|-+.#@<>^`'\"{}()x=y:, \n12345", max_size=20)) + text[end:]
    for phase in ("log", "plan"):
        for file in FILES:
            listing = {f.name: (3, 900) for f in FILES}
            assert operations(play(call(text, phase, (file,), listing=listing, last_action="search")))


@settings(max_examples=100, deadline=None)
@given(answers=st.lists(st.text(max_size=80), max_size=12), turns=st.integers(1, 4), text=st.sampled_from(TEXTS))
def test_any_answers_of_memory_are_taken(answers: list[str], turns: int, text: str) -> None:
    asked = call(text, "plan", FILES, listing={f.name: (9, 9000) for f in FILES})
    reply = play(replace(asked, turns=(("", tuple(answers)),) * turns))
    assert operations(reply)


@pytest.mark.parametrize("phase", ["log", "plan"])
def test_the_reply_depends_on_the_call_only(phase: str) -> None:
    calls = [call(text, phase, FILES, listing={"notes.txt": (5, 2500)}) for text in TEXTS[:60]]
    first = [play(c) for c in calls]
    again = [play(c) for c in reversed(calls)][::-1]
    assert first == again


def test_replaying_the_prompts_of_a_game_backwards_gives_the_same_replies() -> None:
    asked = play_game("MiniHack-MazeWalk-9x9-v0", 1002, 60).asked
    assert [play(read_call(messages)) for messages, _ in reversed(asked)] == [text for _, text in reversed(asked)]


def test_a_log_entry_is_filled_in_as_the_scaffold_writes_it() -> None:
    text = observation(ROOM, 4, 3, "The door opens.", "stairs up near west\ndoor adjacent east")
    reply = play(call(text, "log", [log("Step {step}, {action} at {x},{y} {status}: {message} | {seen}")]))
    line = (
        "Step 7, east at 4,3 Dlvl:2 $:0 HP:12(12) Pw:1(1) AC:6 Xp:1/0 T:20: The door opens. | "
        "stairs up near west; door adjacent east"
    )
    assert operations(reply) == [("APPEND", f"notes.txt|{line}"), ("DONE", "")]


def test_another_entry_gives_another_line() -> None:
    text = observation(ROOM, 4, 3, "The door opens.")
    reply = play(call(text, "log", [log("{step} {action} {x},{y} L{level}: {message}")]))
    assert operations(reply)[0] == ("APPEND", "notes.txt|7 east 4,3 L2: The door opens.")


def test_the_whole_observation_goes_on_one_line() -> None:
    reply = play(call(observation(ROOM, 4, 3), "log", [log("Step {step}, {action}: {observation}")]))
    (_, entry), _ = operations(reply)
    assert "\n" not in entry and entry.endswith("inventory: a: a +1 long sword (weapon in hand)")


def test_a_file_that_asks_for_something_unknown_is_left_alone() -> None:
    reply = play(call(observation(ROOM, 4, 3), "log", [log("{step} {facing}"), FILES[0]]))
    assert [name for name, _ in operations(reply)] == ["APPEND", "DONE"]


def test_a_line_that_says_no_more_than_the_newest_is_not_written_where_a_file_takes_changes_only() -> None:
    text = observation(ROOM, 4, 3, "The door opens.")
    file = log("{step}: {action} {x},{y}: {message}", changes=True)
    asked = call(text, "log", [file], listing={file.name: (3, 90)})
    assert operations(play(asked)) == [("TAIL", f"{file.name}|1")]
    for newest, written in (("6: east 4,3: The door opens.", []), ("6: east 3,3: The door opens.", ["APPEND"])):
        answered = replace(asked, turns=((f"<|TAIL|>{file.name}|1<|END|>", (newest,)),))
        assert [name for name, _ in operations(play(answered))] == [*written, "DONE"]
        shown = call(text, "log", [replace(file, pinned=True)], pinned={file.name: newest})
        assert [name for name, _ in operations(play(shown))] == [*written, "DONE"]


def test_a_log_that_the_prompt_shows_is_not_read_again() -> None:
    text = observation(ROOM, 4, 3)
    file = log("{step}: {action} {x},{y}: {message}")
    listing = {file.name: (3, 90)}
    assert ("TAIL", f"{file.name}|40") in operations(play(call(text, "plan", [file], listing=listing)))
    pinned = {file.name: "6: east 3,3: The door opens."}
    shown = play(call(text, "plan", [replace(file, pinned=True)], listing=listing, pinned=pinned))
    assert not {"TAIL", "READ"} & {name for name, _ in operations(shown)}


def test_what_was_searched_is_counted_in_a_map() -> None:
    text = observation(["#@  "], 1, 5, top=5)
    asked = call(text, "log", FILES[1:2], last_action="search", listing={"map.txt": (1, 30)})
    assert operations(play(asked)) == [("READ", "map.txt")]
    after = replace(asked, turns=(("<|READ|>map.txt<|END|>", ("1,5: Dlvl 2, searched 3",)),))
    assert ("UPSERT", "map.txt|1,5|Dlvl 2, searched 4") in operations(play(after))


def test_a_state_line_carries_the_older_one_on() -> None:
    text = observation(ROOM, 4, 3)
    files = [replace(FILES[2], pinned=True)]
    old = "Dlvl 2; at 3,3; been 9,9; searched 7,7x2; prayed 300"
    ((name, written), _) = operations(play(call(text, "log", files, pinned={"state.txt": old})))
    assert name == "WRITE"
    assert all(part in written for part in ("at 4,3", "9,9", "7,7x2", "prayed 300"))


def test_a_state_line_of_another_level_is_forgotten_but_for_the_prayer() -> None:
    files = [replace(FILES[2], pinned=True)]
    old = "Dlvl 1; at 3,3; been 9,9; searched 7,7x2; prayed 300"
    reply = play(call(observation(ROOM, 4, 3), "log", files, pinned={"state.txt": old}))
    assert "9,9" not in reply and "7,7x2" not in reply and "prayed 300" in reply


STATE = (replace(FILES[2], pinned=True, changes=True),)


def carried_on(text: str, old: str = "", **facts) -> str:
    """The line of state that is written after an older one."""
    pinned = {"state.txt": old} if old else {}
    ((_, written), _) = operations(play(call(text, "log", STATE, pinned=pinned, **facts)))
    return written.removeprefix("state.txt|")


def test_a_state_line_counts_how_often_a_place_was_stood_on() -> None:
    line = carried_on(observation(ROOM, 4, 3))
    assert "been 4,3" in line
    line = carried_on(observation(ROOM, 3, 3), line, last_action="west")
    line = carried_on(observation(ROOM, 4, 3), line, last_action="east")
    assert "been 3,3 4,3x2" in line
    # The map of places says less exactly how often: it adds nothing to the count.
    files = [*STATE, replace(FILES[1], pinned=True)]
    pinned = {"state.txt": line, "map.txt": "4,3: Dlvl 2, been here"}
    assert "4,3x3" in play(call(observation(ROOM, 4, 3), "log", files, pinned=pinned))


def test_a_move_that_led_nowhere_is_noted_and_left_out_for_a_while() -> None:
    corridor = ["  #   ", "  ####", "  #   "]
    here = observation(corridor, 3, 2)
    line = carried_on(here, "Dlvl 2; at 3,2; been 2,2x12 3,2", last_action="east", step=7)
    assert "in vain 3,2 east x1 in step 7" in line
    before = action(play(call(here, "plan", STATE, pinned={"state.txt": "Dlvl 2; at 3,2; been 3,2"})))
    assert before.removeprefix("far ") == "east"
    soon, later = (
        action(play(call(here, "plan", STATE, pinned={"state.txt": line}, step=step))).removeprefix("far ")
        for step in (8, 20)
    )
    assert soon != "east" and later == "east"


def test_a_move_that_fails_again_is_left_out_for_longer() -> None:
    corridor = ["  #   ", "  ####", "  #   "]
    here = observation(corridor, 3, 2)
    line = carried_on(here, "Dlvl 2; at 3,2; been 3,2; in vain 3,2 east x3 in step 1", last_action="far east", step=7)
    assert "3,2 east x4 in step 7" in line
    at_twenty = action(play(call(here, "plan", STATE, pinned={"state.txt": line}, step=20)))
    assert at_twenty.removeprefix("far ") != "east"


@pytest.mark.parametrize(
    ("old", "message", "last"),
    [
        ("at 2,2", "", "east"),
        ("at 3,2", "You are caught in a bear trap.", "east"),
        ("at 3,2", "", "search"),
    ],
    ids=["moved", "held", "no move"],
)
def test_only_a_move_that_led_nowhere_was_in_vain(old: str, message: str, last: str) -> None:
    text = observation(["  ####"], 3, 2, message, top=2)
    assert "in vain" not in carried_on(text, f"Dlvl 2; {old}; been 2,2", last_action=last)


@settings(max_examples=200, deadline=None)
@given(
    old=st.text(alphabet="0123456789,x; inva been searched step east at Dlvl", max_size=120),
    phase=st.sampled_from(["log", "plan"]),
)
def test_any_line_of_state_is_taken(old: str, phase: str) -> None:
    line = f"Dlvl 2; at 4,3; been 999,999 0,0x{'9' * 30}; {old}; in vain 4,3 east x{'9' * 30} in step {'9' * 30}"
    assert operations(play(call(observation(ROOM, 4, 3), phase, STATE, pinned={"state.txt": line})))


def test_a_neighbour_is_fought() -> None:
    rows = [*ROOM[:1], "  |.r.|", *ROOM[2:]]
    assert action(play(call(observation(rows, 4, 3, seen="sewer rat adjacent north")))) == "north"


def test_a_tame_neighbour_and_one_who_was_asked_about_are_not() -> None:
    rows = [*ROOM[:1], "  |.d.|", *ROOM[2:]]
    assert action(play(call(observation(rows, 4, 3, seen="tame little dog adjacent north")))) != "north"
    text = observation(rows, 4, 3, "Really attack the jackal? [yn] (n)", "jackal adjacent north")
    assert action(play(call(text))) != "north"


def test_a_locked_door_is_kicked() -> None:
    text = observation(ROOM, 5, 3, "This door is locked.", "vertical closed door adjacent east")
    assert action(play(call(text))) == "kick"
    asked = observation(ROOM, 5, 3, "In what direction?").replace("Yourself a valkyrie\n(x=5, y=3)", "\n(x=20, y=0)")
    assert action(play(call(asked.replace("  |...+", "  |..@+"), last_action="kick"))) == "east"


def test_close_to_death_it_prays_but_not_twice() -> None:
    text = observation(ROOM, 4, 3).replace("HP:12(12)", "HP:2(12)").replace("T:20", "T:400")
    files = FILES[:1]
    asked = call(text, "plan", files, listing={"notes.txt": (5, 2500)})
    reads = operations(play(asked))
    answers = ["0 lines" if name == "COUNT" else "no line" for name, _ in reads]
    assert action(play(replace(asked, turns=(("", tuple(answers)),)))) == "pray"
    prayer = next(i for i, (_, args) in enumerate(reads) if args.endswith("praying"))
    answers[prayer] = "Step 3, y at 4,3 Dlvl:2 $:0 HP:2(12) Pw:1(1) AC:6 Xp:1/0 T:300: You begin praying to Tyr. | "
    assert action(play(replace(asked, turns=(("", tuple(answers)),)))) != "pray"


def test_it_knows_stairs_under_its_feet_from_its_notes_only() -> None:
    text = observation(ROOM, 5, 3)
    files = FILES[:1]
    asked = call(text, "plan", files, listing={"notes.txt": (2, 300)})
    reads = operations(play(asked))
    status = "Dlvl:2 $:0 HP:12(12) Pw:1(1) AC:6 Xp:1/0 T:20"
    lines = (
        f"Step 6, east at 4,3 {status}:  | stairs down adjacent east\n"
        f"Step 7, east at 5,3 {status}:  | dark area near west"
    )
    answers = [lines if name == "TAIL" else "0 lines" for name, _ in reads]
    assert action(play(replace(asked, turns=(("", tuple(answers)),)))) == "down"
    answers = ["" if name == "TAIL" else "0 lines" for name, _ in reads]
    assert action(play(replace(asked, turns=(("", tuple(answers)),)))) != "down"


def test_one_reply_is_kept_for_the_action(tmp_path: Path) -> None:
    source = Path(__file__).parent.parent.parent / "scaffolds" / "nethack" / "v0"
    scaffold = shutil.copytree(source, tmp_path / "short")
    toml = scaffold / "scaffold.toml"
    toml.write_text(toml.read_text("utf-8").replace("plan_turns = 5", "plan_turns = 2"), "utf-8")
    asked = play_game("NetHackChallenge-v0", 1001, 150, str(scaffold)).asked
    plans = [messages for messages, _ in asked if "# PLAN" in messages[1]["content"]]
    acted = [text for _, text in asked if "<|ACTION|>" in text]
    assert len(acted) == 150
    assert max(len(messages) for messages in plans) <= 4


@pytest.mark.slow
def test_it_gets_below_the_first_level() -> None:
    played = [play_game("NetHackChallenge-v0", seed, 400, "nethack/v0") for seed in (1000, 1003, 1004)]
    assert sum(p.achievements["dungeon_level"] > 1 for p in played) >= 2
    assert not any(p.errors for p in played)
