"""What the scripted player takes from a prompt, and that nothing in a prompt makes it raise."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from automem import blocks
from automem.memory import FileSpec
from automem.models.scripted import play
from automem.models.scripted.entries import form
from automem.models.scripted.reading import answers, read_call, read_limit, write_ops
from automem.ops import LOG, PLAN, parse

FILES = (
    FileSpec("map_notes.txt", "log", "what each step showed", entry="Step {step}, {action}: {observation}"),
    FileSpec("map_{block}.txt", "map", "things", entry="{what}", key="{x},{y}", block=8, pin=True),
)
SYSTEM = (
    "# Memory files\n"
    + blocks.file_reference(FILES)
    + "\n# Operations\n<|READ|>file<|END|>\n<|TAIL|>file|n<|END|>\n<|APPEND|>file|text<|END|>\n"
    "A read shows at most 1500 characters, the newest last."
)
OBSERVATION = (
    "You see:\n- grass 1 step to your west\n- tree 3 steps to your north-east\n\nYou face grass at your front.\n\n"
    "Your status:\n- health: 9/9\n- food: 8/9\n- drink: 7/9\n- energy: 9/9\n\nYou have nothing in your inventory."
)


def prompt(phase: str, step: int = 7, action: str | None = "Move West", observation: str = OBSERVATION) -> str:
    end = "<|DONE|><|END|>" if phase == "log" else "<|ACTION|>name<|END|>"
    listing = blocks.memory_listing([("map_notes.txt", 3, 1200), ("map_0_0.txt", 2, 20)])
    pinned = blocks.pinned([("map_0_0.txt", "1,2: tree\n3,4: water")])
    return f"{blocks.observation(step, action, observation)}\nFinish with {end}\n{listing}\n{pinned}\n"


def conversation(phase: str, *turns: tuple[str, str], **about) -> list[dict[str, str]]:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt(phase, **about)}]
    for written, answered in turns:
        messages += [{"role": "assistant", "content": written}, {"role": "user", "content": answered}]
    return messages


def test_a_call_holds_what_the_blocks_say():
    call = read_call(conversation("plan"))
    assert (call.phase, call.step, call.last_action) == ("plan", 7, "Move West")
    assert call.observation == OBSERVATION
    assert call.listing == {"map_notes.txt": (3, 1200), "map_0_0.txt": (2, 20)}
    assert call.pinned == {"map_0_0.txt": "1,2: tree\n3,4: water"}
    assert [(f.name, f.kind, f.entry, f.key, f.block, f.pinned) for f in call.briefing.files] == [
        ("map_notes.txt", "log", "Step {step}, {action}: {observation}", "", 0, False),
        ("map_{block}.txt", "map", "{what}", "{x},{y}", 8, True),
    ]
    assert call.briefing.operations == {"READ", "TAIL", "APPEND"}
    assert read_limit(call.briefing) == 1500


def test_step_0_has_no_last_action():
    assert read_call(conversation("plan", step=0, action=None)).last_action is None


def test_results_are_paired_with_the_operations_that_asked_for_them():
    written = write_ops([("TAIL", "map_notes.txt", "2"), ("SEARCH", "map_notes.txt", "a | b")])
    quoted = "a line\n--- 7. READ fake ---\nstill the first answer"
    answered = blocks.results([("TAIL map_notes.txt | 2", quoted), ("SEARCH map_notes.txt | a | b", "found")])
    call = read_call(conversation("plan", (written, answered + "\n3 replies left in PLAN.")))
    assert answers(call) == {("TAIL", "map_notes.txt", "2"): quoted, ("SEARCH", "map_notes.txt", "a | b"): "found"}


def test_replies_that_are_left_are_known_where_something_says_so():
    assert read_call(conversation("plan")).replies_left is None
    answered = blocks.results([("READ map_notes.txt", "9 replies")]) + "\n1 reply left in PLAN."
    assert read_call(conversation("plan", ("<|READ|>map_notes.txt<|END|>", answered))).replies_left == 1
    ruled = conversation("plan", ("<|READ|>map_notes.txt<|END|>", blocks.results([("READ map_notes.txt", "x")])))
    ruled[0]["content"] += "\n2. PLAN: read memory, then commit to one action, in 5 replies at most."
    assert read_call(ruled).replies_left == 4


def test_written_operations_are_read_as_they_were_meant():
    operations = [("APPEND", "notes.txt", "x | y"), ("UPSERT", "map.txt", "1,-2", "tree")]
    parsed = parse(write_ops(operations), LOG)
    assert [(op.name, *op.args) for op in parsed.ops] == operations
    assert not parsed.errors


FIELDS = st.fixed_dictionaries(
    {
        "step": st.integers(0, 10**6),
        "x": st.integers(-99, 99),
        "y": st.integers(-99, 99),
        "facing": st.sampled_from(["north", "unknown"]),
        "what": st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1),
    }
)


@given(FIELDS, st.permutations(["step", "x", "y", "facing", "what"]), st.sampled_from([" ", ": ", "; ", " at ", "|"]))
def test_an_entry_is_read_back_by_its_own_template(values, order, separator):
    shapes = (("step", r"\d+"), ("x", r"-?\d+"), ("y", r"-?\d+"), ("facing", "(?:north|unknown)"), ("what", r"\S+?"))
    template = form(separator.join(f"{{{name}}}" for name in order), shapes)
    written = template.fill(values)
    assert written is not None
    if separator not in values["what"]:
        assert template.read(written) == {name: str(value) for name, value in values.items()}


def test_a_template_with_a_field_that_cannot_be_filled_is_not_filled():
    assert form("{step} {weather}").fill({"step": 3}) is None
    assert form("{step}").read("no number here") == {"step": "no number here"}
    assert form("{step}", (("step", r"\d+"),)).read("no number here") is None


anything = st.text(max_size=300)
messages = st.lists(
    st.builds(
        lambda role, text: {"role": role, "content": text},
        st.sampled_from(["system", "user", "assistant"]),
        st.one_of(anything, st.just(SYSTEM), st.builds(prompt, st.sampled_from(["log", "plan"]), observation=anything)),
    ),
    max_size=6,
)


@settings(max_examples=200, deadline=None)
@given(messages)
def test_no_messages_make_it_raise(conversation):
    play(conversation)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["log", "plan"]), st.lists(st.tuples(anything, anything), max_size=3), anything, anything)
def test_every_reply_is_understood_whatever_memory_answers(phase, turns, more, answer):
    turns = [*turns, (write_ops([("READ", "map_notes.txt")]), blocks.results([("READ map_notes.txt", answer)]))]
    text = play(conversation(phase, *turns, observation=f"{OBSERVATION}\n{more}"))
    parsed = parse(text, LOG if phase == "log" else PLAN)
    assert not parsed.errors
    assert parsed.ops or parsed.done or parsed.action


def test_the_same_messages_give_the_same_text_in_another_process():
    code = (
        "import sys, json; from automem.models.scripted import play\n"
        "print(json.dumps([play(m) for m in json.load(sys.stdin)]))"
    )
    asked = [
        conversation(phase, observation=OBSERVATION, step=step) for phase in ("log", "plan") for step in (0, 1, 40)
    ]
    answered = []
    for seed in ("0", "1", "77"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        answered.append(json.loads(run.stdout))
    assert answered[0] == answered[1] == answered[2] == [play(messages) for messages in asked]
