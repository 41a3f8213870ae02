"""Examples as tokens, and whether a server sees the same."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from automem.errors import UserError
from automem.models.vllm_server import Attached
from specialist.train.served_tokens import check_server
from specialist.train.tokens import Tokens
from tests.specialist.train.tiny import TEMPLATE, example, write_tiny


@pytest.fixture(scope="session")
def tokens(tiny: Path) -> Tokens:
    return Tokens(tiny)


def decoded(tiny: Path, ids: tuple[int, ...]) -> str:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny).decode(list(ids))


def changed(folder: Path, template: str | None) -> Path:
    """The tiny model with another chat template."""
    write_tiny(folder)
    path = folder / "chat_template.jinja"
    path.unlink() if template is None else path.write_text(template)
    return folder


def test_a_target_is_the_reply_and_the_token_at_which_a_server_stops(tiny: Path, tokens: Tokens):
    one = tokens.example(example(3, system="Rules."))
    assert decoded(tiny, one.prompt) == (
        "<|im_start|>system\nRules.<|im_end|>\n"
        "<|im_start|>user\n=== STEP 3 ===\nYou see coal 0.<|im_end|>\n<|im_start|>assistant\n"
    )
    assert decoded(tiny, one.target) == "<|APPEND|>map.txt|coal 0<|END|><|im_end|>"
    assert one.prompt == tokens.prompt(example(3, system="Rules.").prompt)


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60))
def test_whatever_a_model_wrote_is_learned_as_it_is_or_left_out(tokens: Tokens, text: str):
    chosen = tokens.select([example(1, target=text)], cutoff=4096)
    if "<|im_end|>" in text:
        assert chosen.unsayable == 1
        return
    (one,) = chosen.examples
    assert tokens._text(one.target) == f"{text}<|im_end|>"


def test_long_examples_are_left_out_and_never_cut(tokens: Tokens):
    long = example(1, told=" grass" * 300)
    chosen = tokens.select([example(0), long, example(2)], cutoff=400)
    assert chosen.examples == (tokens.example(example(0)), tokens.example(example(2)))
    assert chosen.too_long == 1
    assert chosen.longest == len(tokens.example(long)) > 400
    assert tokens.select([long], cutoff=chosen.longest).too_long == 0


def test_a_reply_that_holds_the_end_of_a_turn_cannot_be_said(tokens: Tokens):
    chosen = tokens.select([example(0, target="a <|im_end|> b"), example(1)], cutoff=400)
    assert (len(chosen.examples), chosen.unsayable, chosen.too_long) == (1, 1, 0)


@pytest.mark.parametrize(
    ("template", "told"),
    [
        (TEMPLATE.replace("m['content']", "(m['content'] if loop.last else m['content'][:9])"), "differently once"),
        (TEMPLATE.replace("+ '<|im_end|>'", ""), "ends the turn"),
        (TEMPLATE.replace("m['content']", "m['content'] | replace('map', 'MAP')"), "as it is"),
        (None, "no chat template"),
    ],
)
def test_a_template_that_plays_otherwise_than_it_trains_is_refused(tmp_path: Path, template: str | None, told: str):
    with pytest.raises(UserError, match=told):
        Tokens(changed(tmp_path / "model", template)).example(example(1))


def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path):
    with pytest.raises(UserError, match=str(tmp_path)):
        Tokens(tmp_path)


@contextmanager
def serving(answer: Callable[[dict], list[int]]) -> Iterator[tuple[str, list[dict]]]:
    """A server on loopback that gives tokens, and what it was asked."""
    asked: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200 if self.path == "/tokenize" else 404)
            self.end_headers()
            self.wfile.write(json.dumps({"tokens": answer(asked[-1])}).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_server_with_the_same_tokens_passes_and_every_system_message_is_compared(tokens: Tokens):
    def same(asked: dict) -> list[int]:
        ids = tokens.prompt if asked["add_generation_prompt"] else tokens.conversation
        return list(ids(asked["messages"]))

    given_ = [example(i, system=f"Rules {i % 40}.") for i in range(120)]
    with serving(same) as (api_base, asked):
        compared = check_server(tokens, api_base, "tiny", given_)
    assert compared == len(asked) >= 80
    assert {one["messages"][0]["content"] for one in asked} == {f"Rules {i}." for i in range(40)}
    assert {one["model"] for one in asked} == {"tiny"}


def test_the_first_difference_is_shown(tokens: Tokens):
    def stripped(asked: dict) -> list[int]:
        return list(tokens.prompt([{**m, "content": m["content"].replace("STEP", "Step")} for m in asked["messages"]]))

    with serving(stripped) as (api_base, _), pytest.raises(UserError, match=r"'TEP .* is not 'tep "):
        check_server(tokens, api_base, "tiny", [example(1)])


def test_a_server_that_is_no_vllm_is_named(tokens: Tokens):
    with pytest.raises(UserError, match=r"127\.0\.0\.1:9/tokenize"):
        check_server(tokens, "http://127.0.0.1:9/v1", "tiny", [example(1)])


@pytest.mark.vllm
@pytest.mark.slow
def test_vllm_sees_what_training_sees(smollm2_server: Attached):
    from specialist import base_model

    tokens = Tokens(base_model.folder("smollm2"))
    told = " 1234 \u00e9\u4e16\U0001f600 <|im_start|>\n\n  x"
    given_ = [example(i, system="Rules." if i % 2 else "Other rules.", told=told * i) for i in range(6)]
    assert check_server(tokens, smollm2_server.api_base, smollm2_server.served_name, given_) == 12
