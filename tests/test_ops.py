"""The operation language: what a reply means, to the character."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from automem.ops import OPERATIONS, Op, parse, reference, render

Simple = tuple[str, tuple[str, ...]]


def parsed(text: str, phase: str = "log", enabled: list[str] | None = None) -> list[Simple]:
    """Name and arguments of each operation; the reply must be free of errors."""
    result = parse(text, phase, enabled)
    assert not result.errors
    return [(op.name, op.args) for op in result.ops]


# Slips


@pytest.mark.parametrize(
    "text",
    [
        "<|READ|>notes.txt<|END|>",
        "<READ>notes.txt<END>",
        "<|read|>notes.txt<|end|>",
        "<Read>notes.txt<End>",
        "<|READ>notes.txt<END|>",
        "<READ|>notes.txt<|END>",
        "<| READ |>notes.txt<| END |>",
        "< | READ | >notes.txt< |END| >",
        "<|READ|>notes.txt<|END|}",
        "<|READ|}notes.txt<|END|}",
        "<|READ|>notes.txt<|END|",
        "<|READ|>notes.txt<|END",
        "<|READ|notes.txt<|END|>",
        "<||READ||>notes.txt<||END||>",
        "<|READ|>notes.txt</READ>",
        "<|READ|>notes.txt<|/READ|>",
        "<READ>notes.txt</END>",
        "<|READ|>notes.txt",
        "<|READ|>notes.txt\n",
        "<|READ|>\n  notes.txt\n<|END|>",
        "<|READ|>notes.txt<|im_end|>",
        "```\n<|READ|>notes.txt<|END|>\n```",
        "```text\n<|READ|>notes.txt\n```",
        "```\n<|READ|>notes.txt\n```\n<|END|>",
        "```<|READ|>notes.txt```",
        "```\n<|READ|>notes.txt\n```\nThat will tell me where I am.",
        "I look first.\n```python\n<READ>notes.txt\n```\n",
        "<think>a < b, so</think> <|READ|>notes.txt<|END|> then we shall see",
    ],
)
@pytest.mark.parametrize("phase", ["log", "plan"])
def test_a_slip_means_what_it_says(text: str, phase: str) -> None:
    assert parsed(text, phase) == [("READ", ("notes.txt",))]


def test_missing_end_stops_at_the_next_tag() -> None:
    text = "<|APPEND|>log.txt|one\n<|APPEND|>log.txt|two\n\n<|READ|>log.txt\n<|DONE|>"
    result = parse(text, "log")
    assert [(op.name, op.args) for op in result.ops] == [
        ("APPEND", ("log.txt", "one")),
        ("APPEND", ("log.txt", "two")),
        ("READ", ("log.txt",)),
    ]
    assert result.done and not result.errors
    assert [text[slice(*op.span)] for op in result.ops] == [
        "<|APPEND|>log.txt|one",
        "<|APPEND|>log.txt|two",
        "<|READ|>log.txt",
    ]


def test_each_of_several_fenced_blocks_is_freed_from_its_fence() -> None:
    fenced = "```\n<|APPEND|>a|x\n```\nand\n```text\n<|APPEND|>b|y\n```\n<|APPEND|>c|z\n```\n<|APPEND|>d|w\n```"
    assert [args for _, args in parsed(fenced)] == [("a", "x"), ("b", "y"), ("c", "z"), ("d", "w")]


def test_a_fence_inside_an_argument_stays() -> None:
    code = "do:\n```\nx | y\n```"
    assert parsed(f"<|APPEND|>a|{code}<|END|>") == [("APPEND", ("a", code))]
    assert parsed(f"<|APPEND|>a|{code}") == [("APPEND", ("a", code))]
    assert parsed(f"```\n<|APPEND|>a|{code}<|END|>\n```") == [("APPEND", ("a", code))]
    assert parsed("```\n<|APPEND|>a|begin:\n```\n<|END|>\n```") == [("APPEND", ("a", "begin:\n```"))]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing to do",
        "<b>bold</b> <think>hm</think> <br/> </END> <|END|> a < count, b > c, x <| f |> y, <|> <||> ``` <",
        "1 < read and 3 > 2",
        "<reader>notes.txt<ending>",
    ],
)
def test_text_that_is_no_operation_is_no_error(text: str) -> None:
    result = parse(text, "log")
    assert (result.ops, result.done, result.action, result.errors) == ((), False, None, ())


# Arguments


def test_the_last_argument_takes_everything() -> None:
    assert parsed("<|APPEND|> a.txt |  x | y\n z|  <|END|>") == [("APPEND", ("a.txt", "x | y\n z|"))]
    assert parsed("<|UPSERT|>m.txt|home|3|4\n<b><|END|>") == [("UPSERT", ("m.txt", "home", "3|4\n<b>"))]
    assert parse("<|ACTION|>say | hi\nthere <|END|>", "plan").action == "say | hi\nthere"


@pytest.mark.parametrize(
    "written", ["3,-4|a tree", "3, -4, a tree", "(3,-4) | a tree", " 3 , -4 :a tree", "3|-4|a tree"]
)
def test_a_coordinate_may_be_written_in_several_ways(written: str) -> None:
    assert parsed(f"<|UPSERT_MAP|>{written}<|END|>") == [("UPSERT_MAP", ("3,-4", "a tree"))]


def test_write_may_empty_a_file_and_delete_may_name_it_alone() -> None:
    assert parsed("<|WRITE|>a.txt|<|END|><|DELETE|>a.txt<|END|><|SEARCH|>*|x<|END|>") == [
        ("WRITE", ("a.txt", "")),
        ("DELETE", ("a.txt",)),
        ("SEARCH", ("*", "x")),
    ]


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("<|FOO|>x<|END|>", "FOO"),
        ("<|foo_bar|>x<|END|>", "FOO_BAR"),
        ("<|READ|><|END|>", "file is missing"),
        ("<|READ|>../secret<|END|>", "not a file name"),
        ("<|READ|>a/b.txt<|END|>", "not a file name"),
        ("<|READ|>/etc/passwd<|END|>", "not a file name"),
        ("<|READ|>..<|END|>", "not a file name"),
        ("<|READ|>a b.txt<|END|>", "not a file name"),
        ("<|READ|>*<|END|>", "not a file name"),
        ("<|READ|>" + "n" * 65 + "<|END|>", "not a file name"),
        ("<|READ|>nötes.txt<|END|>", "not a file name"),
        ("<|TAIL|>a.txt<|END|>", "n is missing"),
        ("<|TAIL|>a.txt|few<|END|>", "not a number"),
        ("<|TAIL|>a.txt|0<|END|>", "not a number"),
        ("<|TAIL|>a.txt|-3<|END|>", "not a number"),
        ("<|TAIL|>a.txt|" + "9" * 5000 + "<|END|>", "not a number"),
        ("<|TAIL|>a.txt|٣<|END|>", "not a number"),
        ("<|SEARCH|>a.txt<|END|>", "query is missing"),
        ("<|SEARCH|>a.txt|<|END|>", "query is missing"),
        ("<|APPEND|>a.txt<|END|>", "text is missing"),
        ("<|APPEND|>a.txt|<|END|>", "text is missing"),
        ("<|UPSERT|>a.txt|key<|END|>", "value is missing"),
        ("<|UPSERT_MAP|>3,4<|END|>", "text is missing"),
        ("<|UPSERT_MAP|>here|tree<|END|>", "not a coordinate"),
        ("<|UPSERT_MAP|>1.5,2|tree<|END|>", "not a coordinate"),
        ("<|DELETE|>a.txt|<|END|>", "is missing"),
    ],
)
def test_a_mistake_is_one_line_and_the_rest_still_runs(block: str, told: str) -> None:
    result = parse(f"<|READ|>a.txt<|END|>{block}<|READ|>b.txt<|END|>", "log")
    assert [op.args for op in result.ops] == [("a.txt",), ("b.txt",)]
    (error,) = result.errors
    assert told in error
    assert "\n" not in error and len(error) < 300


def test_errors_show_what_to_write_instead() -> None:
    (error,) = parse("<|TAIL|>a.txt|few<|END|>", "log").errors
    assert error.startswith("TAIL: ") and "<|TAIL|>file|n<|END|>" in error


def test_errors_do_not_repeat_unbounded_or_unprintable_text() -> None:
    (error,) = parse("<|READ|>" + "x\n\x1b[31m\udc80" * 10_000 + "<|END|>", "log").errors
    assert len(error) < 300 and error.isprintable()
    many = parse("<|FOO|>" * 1000, "log")
    assert len(many.errors) < 30 and "more errors" in many.errors[-1]


# Phases


def test_nothing_after_the_first_action_counts() -> None:
    result = parse("<|READ|>a<|END|><|ACTION|>north<|END|><|READ|>b<|END|><|ACTION|>south<|END|><|FOO|>", "plan")
    assert [op.args for op in result.ops] == [("a",)]
    assert result.action == "north" and not result.errors


def test_nothing_after_done_counts() -> None:
    text = "<|APPEND|>a|x<|END|>\n<|DONE|><|END|>\n<|APPEND|>a|y<|END|>"
    result = parse(text, "log")
    assert [op.args for op in result.ops] == [("a", "x")]
    assert result.done and result.done_span is not None
    assert text[slice(*result.done_span)] == "<|DONE|><|END|>"


def test_an_action_in_log_is_told_and_not_committed() -> None:
    result = parse("<|ACTION|>north<|END|><|APPEND|>a|x<|END|><|DONE|><|END|>", "log")
    assert (result.ops, result.action, result.done) == ((), None, False)
    (error,) = result.errors
    assert "ACTION was not run" in error and "PLAN" in error


def test_done_in_plan_is_told() -> None:
    result = parse("<|DONE|><|END|><|ACTION|>north<|END|>", "plan")
    assert (result.action, result.done) == (None, False)
    (error,) = result.errors
    assert "DONE was not run" in error


@pytest.mark.parametrize("name", [name for name, operation in OPERATIONS.items() if operation.effect == "write"])
def test_a_write_in_plan_is_told_and_not_run(name: str) -> None:
    block = render(name, ("1,1", "x") if name == "UPSERT_MAP" else ("a", "b", "c")[: len(OPERATIONS[name].args)])
    assert len(parse(block, "log").ops) == 1
    result = parse(f"{block}<|READ|>a<|END|><|ACTION|>north<|END|>", "plan")
    assert [op.name for op in result.ops] == ["READ"] and result.action == "north"
    (error,) = result.errors
    assert error.startswith(f"{name} was not run") and "LOG" in error


def test_enabled_decides_what_may_run() -> None:
    text = "<|READ|>a<|END|><|DELETE|>a<|END|><|near|>tree | 3|x<|END|><|DONE|>"
    result = parse(text, "log", ["READ", "NEAR"])
    assert [(op.name, op.args) for op in result.ops] == [("READ", ("a",)), ("NEAR", ("tree", "3", "x"))]
    (error,) = result.errors
    assert "DELETE is not enabled" in error and "READ, NEAR, DONE" in error
    assert result.done
    assert parse("<|NEAR|>tree<|END|>", "log").errors
    assert parse("<NEAR>tree<END><|NEAR|><|END|>", "plan", {"NEAR"}).ops == (
        Op("NEAR", ("tree",), (0, 15)),
        Op("NEAR", (), (15, 30)),
    )


def test_a_wrong_phase_or_name_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="phase"):
        parse("", "act")
    with pytest.raises(ValueError, match="cannot name an operation"):
        parse("", "log", ["A(+B"])


# Labels and the reference


def test_labels_are_one_short_line() -> None:
    assert Op("TAIL", ("map_notes.txt", "3")).label == "TAIL map_notes.txt | 3"
    assert Op("NEAR", ()).label == "NEAR"
    label = Op("APPEND", ("a.txt", "x \n\x00\udc80" * 100_000)).label
    assert label.isprintable() and len(label) < 120 and label.endswith("…")


def test_the_reference_shows_what_is_enabled_and_parses() -> None:
    text = reference(["TAIL", "UPSERT_MAP", "NEAR"], {"NEAR": "thing|n  where the nearest are"})
    lines = text.split("\n")
    assert lines == [
        "<|TAIL|>file|n<|END|>  the last n lines of a file",
        "<|UPSERT_MAP|>x,y|text<|END|>  set what is at a coordinate of the map (LOG only)",
        "<|NEAR|>thing|n<|END|>  where the nearest are",
        "<|DONE|><|END|>  finish logging (LOG only)",
        "<|ACTION|>name of the action<|END|>  commit to this action (PLAN only)",
    ]


# Properties

pieces = st.sampled_from(
    [
        "<|",
        "|>",
        "<",
        ">",
        "|",
        "}",
        "READ",
        "END",
        "APPEND",
        "ACTION",
        "DONE",
        "FOO",
        "```",
        "\n",
        " ",
        "a.txt",
        "/",
        "3",
        ",",
        "TAIL",
    ]
    + [f"<|{name}|>" for name in (*OPERATIONS, "END", "FOO")]
)
replies = st.one_of(st.text(), st.lists(st.one_of(pieces, st.text(max_size=5)), max_size=40).map("".join))
phases = st.sampled_from(["log", "plan"])


@settings(max_examples=300)
@given(text=replies, phase=phases, enabled=st.sampled_from([None, (), ("READ",), ("NEAR", "APPEND")]))
def test_any_text_parses_with_spans_in_order(text: str, phase: str, enabled: tuple[str, ...] | None) -> None:
    result = parse(text, phase, enabled)
    spans = [op.span for op in result.ops]
    ends = [span for span in (result.done_span, result.action_span) if span is not None]
    assert len(ends) == result.done + (result.action is not None)
    position = 0
    for start, end in spans + ends:
        assert position <= start < end <= len(text)
        position = end
    for op in result.ops:
        block = text[slice(*op.span)]
        assert block.lstrip("<|｜ \t").upper().startswith(op.name)
        assert enabled is None or op.name in enabled
        # The block alone means the same: a training target taken from a trace stays what it was.
        again = parse(block, phase, enabled)
        assert [(other.name, other.args) for other in again.ops] == [(op.name, op.args)]
        if op.name != "UPSERT_MAP":
            assert all(arg in block for arg in op.args)
        assert all(arg == arg.strip() for arg in op.args)
    assert all("\n" not in error for error in result.errors)
    if phase == "plan":
        assert not any(op.writes for op in result.ops)


file_names = st.from_regex(r"[A-Za-z0-9._-]{0,63}[A-Za-z0-9_-]", fullmatch=True)
plain = st.text(max_size=60).map(str.strip).filter(lambda s: s and "<" not in s and "`" not in s)
no_bar = plain.filter(lambda s: "|" not in s)
operations = st.one_of(
    st.tuples(st.just("READ"), st.tuples(file_names)),
    st.tuples(st.just("TAIL"), st.tuples(file_names, st.integers(1, 10**9 - 1).map(str))),
    st.tuples(st.sampled_from(["SEARCH", "COUNT"]), st.tuples(st.one_of(st.just("*"), file_names), plain)),
    st.tuples(st.sampled_from(["APPEND", "WRITE", "DELETE"]), st.tuples(file_names, plain)),
    st.tuples(st.sampled_from(["CREATE", "DELETE"]), st.tuples(file_names)),
    st.tuples(st.just("UPSERT"), st.tuples(file_names, no_bar, plain)),
    st.tuples(
        st.just("UPSERT_MAP"),
        st.tuples(st.tuples(st.integers(-99, 99), st.integers(-99, 99)).map("{0[0]},{0[1]}".format), plain),
    ),
)
writings: dict[str, Callable[[str, str], str]] = {
    "exact": lambda name, args: f"<|{name}|>{args}<|END|>",
    "bare": lambda name, args: f"<{name}>{args}<END>",
    "lower": lambda name, args: f"<|{name.lower()}|>{args}<|end|>",
    "brace": lambda name, args: f"<|{name}|>{args}<|END|}}",
    "spaced": lambda name, args: f"<| {name} |> {args}\n<| END |>",
    "open": lambda name, args: f"<|{name}|>{args}\n",
    "fenced": lambda name, args: f"```\n<|{name}|>{args}<|END|>\n```\n",
    "fenced open": lambda name, args: f"```text\n<|{name}|>{args}\n```\n",
}


@settings(max_examples=120)
@given(st.lists(st.tuples(operations, st.sampled_from(sorted(writings))), max_size=8))
def test_what_is_written_in_any_way_is_read_back_in_order(written: list[tuple[Simple, str]]) -> None:
    text = "".join(writings[how](name, "|".join(args)) for (name, args), how in written)
    result = parse(text + "<|DONE|><|END|>", "log")
    assert not result.errors and result.done
    assert [(op.name, op.args) for op in result.ops] == [operation for operation, _ in written]


HOSTILE = [
    *("<|READ|>", "<READ>", "<|READ|", "<|END|>", "</READ>", "<|FOO|>", "<a>", "<|READ" + " " * 40, "<READ|}```<"),
    *("<|", "<", "```", "`", " ", "|", "\n", "< ", "<  |  ", "<|A", "<|END", "<|END\n"),
    *("<|READ|>```", "<|APPEND|>a|b ", "<|APPEND|>a|b```\n", "<|UPSERT_MAP|>1,1"),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_megabyte_is_read_in_linear_time(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        gc.disable()  # what it takes grows with all that other tests hold
        try:
            start = time.process_time()
            parse(text, "log")
            return time.process_time() - start
        finally:
            gc.enable()

    small, large = (min(seconds(size) for _ in range(2)) for size in (125_000, 1_000_000))
    # Eight times the text; anything quadratic would take 64 times as long.
    assert large < max(24 * small, 0.1)


@pytest.mark.parametrize(
    "text",
    [
        "<|APPEND|>a|" + " " * 1_000_000,
        " " * 1_000_000 + "<|END|>",
        "<|UPSERT_MAP|>" + "1" * 1_000_000,
        "<|READ|>" + "\n" * 1_000_000 + "<|END|>",
    ],
)
def test_a_long_run_is_read_in_linear_time(text: str) -> None:
    start = time.process_time()
    parse(text, "log")
    assert time.process_time() - start < 1
