"""What becomes of a reply that is to be learnt."""

from __future__ import annotations

import gc
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from automem import blocks
from automem.ops import OPERATIONS, parse
from automem.records import Phase
from specialist.clean import Cleaned, Dropped, clean, joined, violations

ALL = frozenset(OPERATIONS)
A, B = "<|APPEND|>a.txt|x<|END|>", "<|SEARCH|>*|tree<|END|>"
DONE, ACTION = "<|DONE|><|END|>", "<|ACTION|>Move West<|END|>"


def target(text: str, phase: Phase = "log", enabled: frozenset[str] = ALL) -> str:
    cleaned = clean(text, phase, enabled)
    assert isinstance(cleaned, Cleaned), cleaned
    assert joined(text, cleaned.kept) == cleaned.text
    return cleaned.text


def dropped(text: str, phase: Phase = "log", enabled: frozenset[str] = ALL) -> str:
    cleaned = clean(text, phase, enabled)
    assert isinstance(cleaned, Dropped), cleaned
    return cleaned.reason


# What stays


@pytest.mark.parametrize(
    "text",
    [f"{A}\n{DONE}", DONE, "<|DONE|>", A, f"The tree is new.\n{A}\n\n{DONE}", f"<append>a.txt|x\n{DONE}", "  " + A],
)
def test_a_good_reply_stays_as_it_was_written(text: str) -> None:
    assert target(text) == text
    assert not violations(text, "log", ALL)


def test_spans_and_operations_are_told() -> None:
    text = f"```\n{A}\n{B}\n```\n{DONE}\nThat is all."
    cleaned = clean(text, "log", ALL)
    assert isinstance(cleaned, Cleaned)
    assert cleaned.text == f"{A}\n{B}\n{DONE}"
    assert cleaned.operations == 2
    assert [text[a:b] for a, b in cleaned.kept] == [f"{A}\n{B}\n", DONE]


# What is cut


@pytest.mark.parametrize(
    "after",
    ["\nAll noted.", f"\n{A}\n{DONE}", "\n", "<|im_end|>", "\n```", "\n=== STEP 4 | last action: Do ===\nYou see"],
)
def test_log_is_cut_after_done(after: str) -> None:
    assert target(f"{A}\n{DONE}{after}") == f"{A}\n{DONE}"


@pytest.mark.parametrize("after", [" and so on", "\nNow I will move.\n<|END|>", " then<|im_end|>", "\n```\n<|END|>"])
def test_what_follows_a_done_without_end_is_cut(after: str) -> None:
    assert target(f"{A}\n<|DONE|>{after}") == f"{A}\n<|DONE|>"


def test_the_end_of_done_may_be_a_little_later() -> None:
    assert target(f"{A}<|DONE|>\n <|END|> x") == f"{A}<|DONE|>\n <|END|>"


@pytest.mark.parametrize(
    "after",
    [
        ACTION,
        f"\nWest is best.\n{ACTION}",
        f"\n{ACTION}\n{B}",
        f"{A}{ACTION}",
        DONE,
        "\nI wait.",
        "\n--- 1. SEARCH ---",
    ],
)
def test_plan_ends_with_its_last_read(after: str) -> None:
    assert target(f"Where are trees?\n{B}{after}", "plan") == f"Where are trees?\n{B}"


def test_an_action_in_log_is_cut() -> None:
    assert target(f"{A}\n{ACTION}\n{DONE}") == A


# Fences


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"```\n{A}\n{DONE}\n```", f"{A}\n{DONE}"),
        (f"Notes:\n```text\n{A}\n```\nand\n``` \n{DONE}\n```\n", f"Notes:\n{A}\nand\n{DONE}"),
        (f"```{A}``` ```text {DONE}```", f"{A} {DONE}"),
        (f"  ```\r\n{A}\r\n  ```\r\n{DONE}", f"{A}\r\n{DONE}"),
        (f"````\n```python\n{A}\n```\n````\n{DONE}", f"{A}\n{DONE}"),
        (f"```\n{A}\n{DONE}", f"{A}\n{DONE}"),
        (f"```\n<|APPEND|>a.txt|x\n```\n{DONE}", f"<|APPEND|>a.txt|x\n{DONE}"),
        (f"```\n<|APPEND|>a.txt|x\n```\n<|END|>\n{DONE}", f"<|APPEND|>a.txt|x\n<|END|>\n{DONE}"),
    ],
)
def test_fences_around_operations_are_taken_away(text: str, left: str) -> None:
    assert target(text) == left
    before, after = parse(text, "log"), parse(left, "log")
    assert [(op.name, op.args) for op in after.ops] == [(op.name, op.args) for op in before.ops]


@pytest.mark.parametrize(
    "text",
    [
        f"```\nthinking\n```\n{A}{DONE}",
        f"<|WRITE|>a.txt|```py\nx = 1\n```<|END|>{DONE}",
        f"<|WRITE|>a.txt|a ``` b<|END|>{DONE}",
        f"```\n```\n{A}\n```\n```{DONE}",
        "<|WRITE|>a.txt|```x<|END|>",
    ],
)
def test_a_fence_that_survives_drops_the_item(text: str) -> None:
    assert dropped(text) == "code fence"


def test_a_fence_inside_an_operation_is_never_taken_out_of_it() -> None:
    assert clean(f"<|WRITE|>a.txt|a ``` b<|END|>{A}{DONE}", "log", ALL) == Dropped(
        "code fence", "it stands inside an operation"
    )


# What is dropped


@pytest.mark.parametrize("text", ["", "\n", "I go west.", "<|END|>", "```\n```", "<b>"])
@pytest.mark.parametrize("phase", ["log", "plan"])
def test_nothing_without_an_operation_is_learnt(text: str, phase: Phase) -> None:
    assert dropped(text, phase) == "no operation"


@pytest.mark.parametrize("text", [ACTION, f"I know enough.\n{ACTION}", DONE, A])
def test_plan_needs_a_read(text: str) -> None:
    assert dropped(text, "plan") == "no operation"


@pytest.mark.parametrize(
    "block",
    ["<|FOO|>x<|END|>", "<|READ|>../x<|END|>", "<|TAIL|>a.txt|few<|END|>", "<|APPEND|>a.txt<|END|>", "<|user|>"],
)
def test_a_refused_operation_is_not_learnt(block: str) -> None:
    assert dropped(f"{block}{A}{DONE}") == "refused operation"


def test_enabled_decides_what_is_refused() -> None:
    near = f"<|NEAR|>tree|3<|END|>{DONE}"
    assert dropped(near) == "refused operation"
    assert target(near, enabled=frozenset({"NEAR"})) == near
    assert dropped(f"{A}{near}", enabled=frozenset({"NEAR"})) == "refused operation"


@pytest.mark.parametrize(
    "marker",
    [
        *("<|im_start|>", "<|im_start|>assistant\n", "<|endoftext|>", "<|eot_id|>", "<IM_END>", "<|im_end|}"),
        *("[INST]", "</s>", "<|start_header_id|>", "<start_of_turn>", "<｜User｜>", "<| im_start |>", "<s>"),
    ],
)
def test_chat_markers_drop_the_item(marker: str) -> None:
    assert dropped(f"{marker}{A}{DONE}") == "chat marker"
    assert dropped(f"<|APPEND|>a.txt|x {marker} y<|END|>{DONE}") in ("chat marker", "no operation")
    assert any("chat marker" in line for line in violations(f"{A}{marker}", "log"))


def test_a_block_that_a_chat_marker_ends_is_not_learnt() -> None:
    assert dropped("<|APPEND|>a.txt|x<|im_end|>") == "chat marker"


@pytest.mark.parametrize(
    "made_up",
    [
        blocks.results([("SEARCH * | tree", "map.txt: 3,4 tree")]),
        blocks.results([("NEAR", "")]).split("\n")[0],
        "--- end of results ---",
        blocks.observation(7, "Do", "You see grass."),
        blocks.pinned([("map.txt", "3,4: tree")]),
        blocks.handed_over("", "Go on."),
    ],
)
def test_what_the_model_made_up_drops_the_item(made_up: str) -> None:
    assert dropped(f"{A}\n{made_up}\n{DONE}") == "invented result"
    assert target(f"{A}{DONE}\n{made_up}\n{A}") == f"{A}{DONE}"


@pytest.mark.parametrize("text", ["<|APPEND|>a.txt|the tree is at 3,", f"{A}<|APPEND|>a.txt|x<|END", f"{A}<|READ|>b"])
def test_a_reply_that_breaks_off_is_not_learnt(text: str) -> None:
    assert dropped(text) == "operation without end"


def test_a_read_that_only_the_action_ends_is_not_learnt() -> None:
    assert dropped(f"<|READ|>a.txt\n{ACTION}", "plan") == "operation without end"


def test_signs_of_a_game_are_no_markers() -> None:
    note = "<|APPEND|>a.txt|a `boulder` at <3,4>, --- gap ---, === wall ===, ~~~ water, | door, ``, [5 HP]<|END|>"
    assert target(note + DONE) == note + DONE


# Invariants


@pytest.mark.parametrize(
    ("text", "phase", "told"),
    [
        (f"{A}{DONE} x", "log", "text after the last operation"),
        (f"{B}{ACTION}", "plan", "text after the last operation"),
        (ACTION, "plan", "no operation"),
        (f"```\n{A}\n```", "log", "code fence"),
        (f"{A}<|APPEND|>a.txt<|END|>", "log", "refused operation"),
        ("<|APPEND|>a.txt|x", "log", "operation without end"),
        ("", "log", "no operation"),
    ],
)
def test_violations_are_named(text: str, phase: Phase, told: str) -> None:
    assert any(line.startswith(told) for line in violations(text, phase, ALL))
    assert any(line.startswith(told) for line in violations(text, phase))


def test_operations_of_a_scaffold_break_no_rule_where_they_are_not_known() -> None:
    assert not violations(f"<|NEAR|>tree|3<|END|>{DONE}", "log")
    assert violations(f"<|NEAR|>tree|3<|END|>{DONE}", "log", ALL)


def test_lines_about_hostile_text_are_short_and_printable() -> None:
    hostile = "\x1b[31m\n" * 1000
    for line in violations(f"<|APPEND|>../{hostile}<|END|>```{hostile}<|im_end|>{hostile}--- 1. READ{hostile}", "log"):
        assert len(line) < 400 and line.isprintable()


# Properties

pieces = st.sampled_from(
    [
        *(A, B, DONE, ACTION, "<|READ|>a.txt", "<read>b.txt<end>", "<|DONE|>", "<|END|>", "</READ>", "<|FOO|>"),
        *("```", "```\n", "\n```\n", "```text\n", "````\n", "~~~\n", "``", "\n", " ", "\r\n", "x", "|", "I think. "),
        *("<|im_end|>", "<|im_start|>", "--- 1. READ a.txt ---\n", "=== STEP 3", "é", "木\u200f", "\u2028", "\x00"),
        *(
            "<|WRITE|>a.txt|",
            "<|TAIL|>a.txt|3<|END|>",
            "<|NEAR|>tree<|END|>",
            "<|APPEND|>a.txt|",
            "<|",
            "<|END",
            "\udc80",
        ),
    ]
)
replies = st.one_of(st.lists(st.one_of(pieces, st.text(max_size=4)), max_size=24).map("".join), st.text())
enabled_names = st.sampled_from([ALL, ALL | {"NEAR"}, frozenset({"READ", "APPEND"})])
phases: st.SearchStrategy[Phase] = st.sampled_from(["log", "plan"])


@settings(max_examples=400, deadline=None)
@given(replies, phases, enabled_names)
@example("<|READ|>a.txt<|END", "log", ALL)
@example("```\n<|READ|>a.txt\n```\n<|END|>", "plan", ALL)
def test_any_reply_becomes_a_target_that_breaks_no_rule_or_none(
    text: str, phase: Phase, enabled: frozenset[str]
) -> None:
    cleaned = clean(text, phase, enabled)
    if isinstance(cleaned, Dropped):
        return
    assert joined(text, cleaned.kept) == cleaned.text
    at = 0
    for start, end in cleaned.kept:
        assert at <= start < end <= len(text)
        at = end
    assert not violations(cleaned.text, phase, enabled)
    assert clean(cleaned.text, phase, enabled) == Cleaned(cleaned.text, ((0, len(cleaned.text)),), cleaned.operations)
    before, after = parse(text, phase, enabled), parse(cleaned.text, phase, enabled)
    assert [(op.name, op.args) for op in after.ops] == [(op.name, op.args) for op in before.ops]
    assert after.done == before.done and after.action is None and not after.errors
    assert "```" not in cleaned.text


@settings(max_examples=300, deadline=None)
@given(replies, phases)
def test_what_breaks_no_rule_is_not_changed(text: str, phase: Phase) -> None:
    if violations(text, phase, ALL):
        return
    cleaned = clean(text, phase, ALL)
    assert isinstance(cleaned, Cleaned) and cleaned.text == text


good = st.sampled_from(
    [A, B, "<|CREATE|>new.txt<|END|>", "<upsert>m.txt|lake|3|4<end>", "<| TAIL |>a.txt|3\n<| END |>"]
)
written = st.lists(
    st.tuples(good, st.sampled_from(["{}\n", "```\n{}\n```\n", "so: {}\n", "```text\n{}\n```\n"])), max_size=8
)


@settings(max_examples=300, deadline=None)
@given(written, st.sampled_from(["", "chatter", f"\n```\n{A}", f"\n{ACTION}"]))
def test_nothing_good_is_lost(operations: list[tuple[str, str]], after: str) -> None:
    text = "".join(how.format(block) for block, how in operations) + DONE + after
    left = "".join(("so: " if how.startswith("so") else "") + f"{block}\n" for block, how in operations) + DONE
    assert target(text) == left


# Time

HOSTILE = ["```", "``` ", "```\n", "```x\n", "`", " ", "\n", "<", "<|READ|>a.txt", "<|DONE|", "<|READ|>a.txt<|END|>"]
HOSTILE += [
    "<|",
    "--- 1. ",
    "--- end of a",
    "=== STEP ",
    "<|APPEND|>a|``` ",
    "```<|READ|>a<|END|>",
    "[INST",
    "</",
    "<|FOO|>",
]


def seconds(text: str) -> float:
    gc.disable()  # what it takes grows with all that other tests hold
    try:
        start = time.process_time()
        clean(text, "log", ALL)
        violations(text, "log")
        return time.process_time() - start
    finally:
        gc.enable()


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_reply_is_cleaned_in_linear_time(piece: str) -> None:
    small, large = (
        min(seconds(piece * (size // len(piece)) + A + DONE) for _ in range(2)) for size in (15_000, 120_000)
    )
    # Eight times the text; anything quadratic would take 64 times as long.
    assert large < max(24 * small, 0.1)
