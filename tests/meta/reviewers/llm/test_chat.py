"""A model behind HTTP that is offered tools, and the reviewer that settings make of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from automem.errors import UserError
from automem.models.litellm_model import LiteLLM
from automem.models.protocol import ChatReply, ContextTooLong, ModelUnavailable, Sampling, ToolCall, ToolsRefused
from meta.reviewer import ReviewerUnavailable
from meta.reviewers import make
from meta.settings import ReviewerSettings
from tests.meta.reviewers.llm.setting import QUICK, calling
from tests.models.fake_openai import Answer, completion, fake_openai, refusal

ASK = [{"role": "user", "content": "What now?"}]
TOOL = {"type": "function", "function": {"name": "look", "description": "looks", "parameters": {"type": "object"}}}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HOSTED_VLLM_API_KEY", "HOSTED_VLLM_API_BASE", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


def chat(base: str, messages: list[dict[str, Any]] = ASK, name: str = "hosted_vllm/toy") -> ChatReply:
    async def once() -> ChatReply:
        model = LiteLLM(name, Sampling(), api_base=base, api_key="any-key", patience=QUICK)
        try:
            return await model.chat(messages, [TOOL])
        finally:
            await model.close()

    return asyncio.run(once())


@pytest.mark.parametrize("name", ["hosted_vllm/toy", "openai/toy"])
def test_calls_arrive_as_the_model_wrote_them(name: str) -> None:
    with fake_openai(Answer(body=calling(("look", {"at": 3}), ("look", "{half"), text="Hm."))) as fake:
        said = chat(fake.base, name=name)
    assert said.calls == (ToolCall("c0", "look", '{"at": 3}'), ToolCall("c1", "look", "{half"))
    assert (said.reply.text, said.reply.prompt_tokens, said.reply.completion_tokens) == ("Hm.", 100, 20)
    assert not said.cut
    assert fake.requests[0]["tools"] == [TOOL]


@pytest.mark.parametrize("name", ["hosted_vllm/toy", "openai/toy"])
def test_a_conversation_with_calls_reaches_the_server(name: str) -> None:
    call = {"id": "c0", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        *ASK,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c0", "content": "a tree"},
    ]
    with fake_openai(Answer(body=completion("A tree."))) as fake:
        assert chat(fake.base, messages, name).calls == ()
    sent = fake.requests[0]["messages"]
    assert sent[1]["tool_calls"] == [call]
    assert (sent[2]["tool_call_id"], sent[2]["content"]) == ("c0", "a tree")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (refusal(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser'), ToolsRefused),
        (refusal(400, "registry.ollama.ai/library/toy does not support tools"), ToolsRefused),
        (refusal(404, "No endpoints found that support tool use."), ToolsRefused),
        (refusal(422, "Extra inputs are not permitted: tools"), ToolsRefused),
        (refusal(400, "temperature must not be negative"), ModelUnavailable),
        (refusal(404, "The model `toy` does not exist"), ModelUnavailable),
        (refusal(400, "This model's maximum context length is 10 tokens"), ContextTooLong),
        (refusal(503, "overloaded"), ModelUnavailable),
    ],
)
def test_what_a_refusal_means(answer: Answer, error: type[Exception]) -> None:
    with fake_openai(answer) as fake, pytest.raises(error):
        chat(fake.base)
    assert len(fake.requests) == (3 if answer.status == 503 else 1)


def test_a_conversation_is_cached_where_the_server_has_to_be_told() -> None:
    body = {
        "id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 3}}],
        "usage": {"input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 5},
    }  # fmt: skip
    call = {"id": "c0", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": "Look."},
        *ASK,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c0", "content": "a tree"},
    ]
    with fake_openai(Answer(body=body)) as fake:
        said = chat(fake.base.removesuffix("/v1"), messages, "anthropic/claude-sonnet-4-5")
    assert said.calls == (ToolCall("t1", "look", '{"at": 3}'),)
    assert (said.reply.prompt_tokens, said.reply.cached_tokens) == (15, 5)
    (request,) = fake.requests
    marked = {"cache_control": {"type": "ephemeral"}}.items()
    assert marked <= request["system"][0].items()
    assert marked <= request["messages"][-1]["content"][0].items()
    assert not marked <= request["messages"][0]["content"][0].items()


def test_a_reply_that_was_cut_off_says_so() -> None:
    body = completion("I thi")
    body["choices"][0]["finish_reason"] = "length"
    with fake_openai(Answer(body=body)) as fake:
        assert chat(fake.base).cut


@pytest.mark.parametrize(
    ("name", "knows"),
    [("openai/gpt-4o-mini", True), ("hosted_vllm/toy", None), ("petals/toy", False)],
)
def test_what_is_known_of_a_models_tools(name: str, knows: bool | None) -> None:
    assert LiteLLM(name, Sampling()).knows_tools() is knows


def test_the_reviewer_of_settings() -> None:
    reviewer = make(ReviewerSettings(kind="llm", model="hosted_vllm/toy", api_base="http://127.0.0.1:9/v1"))
    assert reviewer.name == "llm hosted_vllm/toy"
    with pytest.raises(ReviewerUnavailable, match=r"no server answers at http://127\.0\.0\.1:9/v1"):
        asyncio.run(reviewer.ready())


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "name the meta-LLM"),
        ({"model": "toy"}, "is no model's name"),
        ({"model": "opnai/toy"}, "Did you mean"),
        ({"model": "openai/toy", "options": {"tool": "text"}}, "reviewer llm: tool: "),
        ({"model": "openai/toy", "options": {"tools": "telepathy"}}, "reviewer llm: tools: "),
    ],
)
def test_settings_that_make_no_reviewer(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        make(ReviewerSettings(kind="llm", **settings))
