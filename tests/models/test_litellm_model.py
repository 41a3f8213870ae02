"""A model behind HTTP: what is retried, what is given up, and what a person is told."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import traceback

import pytest

from automem.models.litellm_model import LiteLLM, Patience, scrub
from automem.models.protocol import ContextTooLong, ModelUnavailable, Reply, Sampling, UnknownModel
from automem.models.registry import check, make_model
from tests.models.fake_openai import Answer, FakeOpenAI, completion, fake_openai, refusal

ASK = [{"role": "system", "content": "Play."}, {"role": "user", "content": "What now?"}]
QUICK = Patience(attempts=3, first_wait=0.01, longest_wait=0.2, timeout=20.0)
KEY = "sk-secret-0123456789abcdef"
OK = Answer(body=completion("north", prompt=40, written=2, cached=32))


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HOSTED_VLLM_API_KEY", "HOSTED_VLLM_API_BASE", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


def model(fake: FakeOpenAI, name: str = "hosted_vllm/toy", **options: object) -> LiteLLM:
    options = {"api_base": fake.base, "patience": QUICK} | options
    return LiteLLM(name, options.pop("sampling", Sampling()), **options)  # type: ignore[arg-type]


def ask(client: LiteLLM, messages: list[dict[str, str]] = ASK) -> Reply:
    async def once() -> Reply:
        try:
            return await client.complete(messages)
        finally:
            await client.close()

    return asyncio.run(once())


@pytest.mark.parametrize("name", ["hosted_vllm/toy", "openai/toy"])
def test_a_reply_carries_the_servers_counts(name: str) -> None:
    with fake_openai(OK) as fake:
        reply = ask(model(fake, name))
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens) == ("north", 40, 2, 32)
    assert reply.model == name
    assert reply.cost is None
    assert reply.seconds > 0


def test_sampling_and_messages_reach_the_server_as_given() -> None:
    sampling = Sampling(temperature=0.5, max_tokens=7, stop=("END",), seed=3)
    with fake_openai(OK) as fake:
        ask(model(fake, sampling=sampling))
    (request,) = fake.requests
    assert request["messages"] == ASK
    assert {k: request[k] for k in ("model", "temperature", "max_tokens", "seed")} == {
        "model": "toy",
        "temperature": 0.5,
        "max_tokens": 7,
        "seed": 3,
    }
    assert request["stop"] == ["END"]


def test_a_known_price_becomes_a_cost() -> None:
    with fake_openai(Answer(body=completion(prompt=1_000_000, written=0, model="gpt-4o-mini"))) as fake:
        reply = ask(model(fake, "openai/gpt-4o-mini"))
    assert reply.cost == pytest.approx(0.15, rel=0.5)


@pytest.mark.parametrize(
    "trouble",
    [
        refusal(429, "slow down"),
        refusal(500, "oops"),
        refusal(503, "overloaded"),
        Answer(body=b"<html>bad gateway</html>"),
        Answer(body={"choices": []}),
    ],
    ids=["rate limit", "500", "503", "no JSON", "no choices"],
)
def test_passing_trouble_is_retried(trouble: Answer) -> None:
    with fake_openai(trouble, trouble, OK) as fake:
        assert ask(model(fake)).text == "north"
    assert len(fake.requests) == 3


def test_trouble_that_stays_is_reported_after_the_last_attempt() -> None:
    told = r"no reply at http://127\.0\.0\.1:\d+/v1 after 3 attempts.*overload"
    with fake_openai(refusal(503, "overloaded")) as fake, pytest.raises(ModelUnavailable, match=told):
        ask(model(fake))
    assert len(fake.requests) == 3


def test_the_server_says_how_long_to_wait() -> None:
    async def timed(fake: FakeOpenAI) -> float:
        client = model(fake, patience=Patience(attempts=2, first_wait=30.0, longest_wait=30.0, timeout=20.0))
        await client.ready()
        reply = await client.complete(ASK)
        await client.close()
        return reply.seconds

    # Without the header the first wait would be at least 15 s.
    with fake_openai(refusal(429, "slow down", Retry_After="1"), OK) as fake:
        assert 1.0 <= asyncio.run(timed(fake)) < 15.0


def test_a_server_that_hangs_is_given_up_in_time() -> None:
    never = threading.Event()
    try:
        with fake_openai(Answer(body=completion(), wait=never), OK) as fake:
            reply = ask(model(fake, patience=Patience(attempts=2, first_wait=0.01, timeout=1.0)))
            assert reply.text == "north"
            assert 1.0 <= reply.seconds < 15.0
            never.set()
    finally:
        never.set()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (refusal(401, f"Incorrect API key provided: {KEY}"), "refused the API key"),
        (refusal(404, "The model `toy` does not exist"), "knows no such model"),
        (refusal(400, f"temperature must not be negative (key {KEY})"), "temperature must not be negative"),
        (refusal(429, f"You exceeded your current quota: insufficient_quota {KEY}"), "quota"),
        (refusal(500, f"crashed while serving Bearer {KEY}"), "after 3 attempts"),
    ],
    ids=["key", "model", "bad request", "quota", "server error"],
)
@pytest.mark.parametrize("name", ["hosted_vllm/toy", "openai/toy"])
def test_errors_say_what_happened_and_never_the_key(name: str, answer: Answer, told: str) -> None:
    with fake_openai(answer) as fake, pytest.raises(ModelUnavailable, match=told) as raised:
        ask(model(fake, name, api_key=KEY))
    assert KEY in (fake.keys[0] or "")
    assert len(fake.requests) == (3 if answer.status == 500 else 1)
    assert KEY not in "".join(traceback.format_exception(raised.value))


def test_keys_are_found_wherever_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEBODY_API_KEY", "plainlookingvalue")
    text = f"{KEY} and plainlookingvalue and ?key=abc123&x=1 and http://me:pw@host/v1 and Bearer abc.def"
    clean = scrub(text, KEY)
    assert clean == "*** and *** and ?key=***&x=1 and http://***@host/v1 and Bearer ***"


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, your prompt contains at least 8193 input tokens",
        "prompt is too long: 210000 tokens > 200000 maximum",
    ],
)
@pytest.mark.parametrize("name", ["hosted_vllm/toy", "openai/toy"])
def test_messages_that_do_not_fit_are_their_own_error(name: str, message: str) -> None:
    with fake_openai(refusal(400, message)) as fake, pytest.raises(ContextTooLong, match="do not fit"):
        ask(model(fake, name))
    assert len(fake.requests) == 1


def test_hundreds_of_episodes_wait_for_one_server_at_once() -> None:
    together = 200
    everyone = threading.Event()

    async def crowd(fake: FakeOpenAI) -> list[Reply]:
        client = model(fake)
        await client.ready()
        calls = asyncio.gather(*(client.complete(ASK) for _ in range(together)))
        try:
            async with asyncio.timeout(60):
                while fake.at_once < together:  # the server answers nobody before all have asked
                    await asyncio.sleep(0.01)
        finally:
            everyone.set()
        replies = await calls
        await client.close()
        return replies

    with fake_openai(Answer(body=completion("north"), wait=everyone)) as fake:
        replies = asyncio.run(crowd(fake))
    assert fake.most_at_once == together
    assert [reply.text for reply in replies] == ["north"] * together


@pytest.mark.parametrize("name", ["hosted_vllm/toy", "openai/toy"])
def test_closing_one_model_leaves_another_working(name: str) -> None:
    async def both(fake: FakeOpenAI) -> str:
        first, second = model(fake, name), model(fake, name)
        await first.complete(ASK)
        await second.complete(ASK)
        await first.close()
        await first.close()
        reply = await second.complete(ASK)
        await second.close()
        return reply.text

    with fake_openai(OK) as fake:
        assert asyncio.run(both(fake)) == "north"


def ready(client: LiteLLM) -> None:
    asyncio.run(client.ready())


def test_a_server_that_is_not_there_is_reported_before_anything_starts() -> None:
    with fake_openai() as fake:
        pass
    with pytest.raises(ModelUnavailable, match=r"no server answers at .*--api-base"):
        ready(model(fake))


def test_a_server_that_serves_something_else_says_what() -> None:
    with fake_openai(models=("Qwen/Qwen2.5-32B-Instruct",)) as fake:
        ready(model(fake, "hosted_vllm/Qwen/Qwen2.5-32B-Instruct"))
        with pytest.raises(ModelUnavailable, match=r"does not serve toy, but: Qwen/Qwen2\.5-32B-Instruct"):
            ready(model(fake))


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ModelUnavailable, match="--api-base"):
        ready(LiteLLM("hosted_vllm/toy", Sampling()))
    with pytest.raises(ModelUnavailable, match="OPENAI_API_KEY"):
        ready(LiteLLM("openai/gpt-4o-mini", Sampling()))


@pytest.mark.parametrize("name", ["nosuch/model/", "nosuch/model", "smollm", "", "/", "openai/", "/gpt", " openai/x"])
def test_a_name_of_no_model_is_refused_without_asking_anybody(name: str) -> None:
    with pytest.raises(UnknownModel, match="provider/model"):
        check(name)
    with pytest.raises(UnknownModel):
        make_model(name)


def test_a_slip_in_the_provider_gets_a_suggestion() -> None:
    with pytest.raises(UnknownModel, match="hosted_vllm"):
        check("hosted_vlm/toy")


def test_importing_the_models_imports_no_heavy_library() -> None:
    program = (
        "import sys; import automem.models.registry as r, automem.models.litellm_model, automem.models.served;"
        "import automem.models.smollm2; r.check('scripted'); r.check('smollm2'); r.make_model('smollm2');"
        "print([m for m in ('litellm', 'torch', 'vllm', 'transformers', 'openai') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
