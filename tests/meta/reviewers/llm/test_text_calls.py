"""Calls written as text: the slips that models make, and text that means harm."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta.dialogue import text_calls
from tests.meta.reviewers.llm.setting import in_text

CHECK = ("check", {})


def read(text: str) -> list[tuple[str, object]]:
    return [(call.name, json.loads(call.arguments)) for call in text_calls.read(text)]


@pytest.mark.parametrize(
    "text",
    [
        '```tool\n{"name": "search", "arguments": {"pattern": "x"}}\n```',
        '```tool_call\r\n{"name": "search", "arguments": {"pattern": "x"}}\r\n```',
        '```json\n{"tool": "search", "args": {"pattern": "x"}}\n```',
        '```\n{"name": "search", "parameters": {"pattern": "x"}}\n```',
        '```tool\n  {\n "name": "search",\n "arguments": "{\\"pattern\\": \\"x\\"}"\n}',
        'I will look. ```tool\n{"name": "search", "pattern": "x"}``` and then',
        '<tool_call>\n{"name": "search", "arguments": {"pattern": "x"}}\n</tool_call>',
        '<tool_call>{"type": "function", "function": {"name": "search", "arguments": {"pattern": "x"}}}',
    ],
)
def test_slips_are_understood(text: str) -> None:
    assert read(text) == [("search", {"pattern": "x"})]


def test_texts_may_hold_fences_and_line_breaks() -> None:
    written = 'See:\n```tool\n{"name": "finish"}\n```\n'
    text = in_text(("write_file", {"path": "prompts/log.j2", "text": written}), CHECK)
    assert read(text) == [("write_file", {"path": "prompts/log.j2", "text": written}), CHECK]
    raw = '```tool\n{"name": "write_file", "arguments": {"path": "a", "text": "one\ntwo"}}\n```'
    assert read(raw) == [("write_file", {"path": "a", "text": "one\ntwo"})]


def test_a_call_that_cannot_be_read_is_a_call_all_the_same() -> None:
    (call, after) = text_calls.read('```tool\n{"name": "check", "arguments": {"page": }}\n```\n' + in_text(CHECK))
    assert (call.name, after.name) == ("check", "check")
    with pytest.raises(ValueError):
        json.loads(call.arguments)


@pytest.mark.parametrize(
    "text", ["", "no call", "```python\nx = {}\n```", '```json\n{"limit": 3}\n```', "```tool\n```"]
)
def test_other_text_is_no_call(text: str) -> None:
    assert text_calls.read(text) == ()


@given(st.lists(st.tuples(st.from_regex(r"[a-z_]{1,20}", fullmatch=True), st.dictionaries(st.text(), st.text()))))
def test_what_is_written_as_asked_is_read_back(calls: list) -> None:
    assert read(in_text(*calls)) == calls[: text_calls.MOST]


@given(st.text(alphabet=st.sampled_from('`tool\n{}":[],<_cal>name \\')))
def test_whatever_is_written_is_read(text: str) -> None:
    assert len(text_calls.read(f"```tool\n{{{text}")) <= text_calls.MOST


@pytest.mark.parametrize(
    "piece",
    ["```tool\n{", '```tool\n{"a": "', '<tool_call>{"name":', "```\n{[", '{"a":' * 50, "```json \n" + " " * 40 + "{"],
)
def test_a_hostile_megabyte_is_read_at_once(piece: str) -> None:
    text = "```tool\n" + piece * (1_000_000 // len(piece))
    began = time.process_time()
    text_calls.read(text)
    assert time.process_time() - began < 5.0
