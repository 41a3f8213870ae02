"""A whole review over HTTP, from reading traces to the revision, and everything that goes wrong on the way."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from automem import scaffold
from automem.models.litellm_model import Patience
from meta.reviewer import Budget, ReviewerUnavailable, ReviewFailed
from meta.reviewers.llm import LlmOptions
from tests.meta.reviewers.llm import setting
from tests.meta.reviewers.llm.setting import Script, calling, finish, in_text, review, structural
from tests.models.fake_openai import Answer, completion, fake_openai, refusal

DONE = calling(structural(), finish())


def test_it_reads_edits_is_refused_corrects_and_finishes(loop: Path) -> None:
    at = setting.desk(loop, smoke=True)
    script = Script(
        [
            calling(("run_stats", {}), ("read_steps", {"seed": 3, "start": 5, "count": 2}), text="I look."),
            calling(("sql", {"query": "SELECT count(*) AS n FROM steps"}), ("memory_at", {"seed": 3, "step": 9})),
            calling(("write_file", {"path": "prompts/log.j2", "text": "{{ nonsense }}"}), ("check", {})),
            calling(finish()),
            calling(("restore_file", {"path": "prompts/log.j2"}), structural()),
            calling(("check", {}), finish()),
        ]
    )
    with fake_openai(script) as fake:
        revision = review(fake.base, setting.evidence(loop), at)

    assert revision.description == "Places in a map by coordinate"
    assert revision.analysis == setting.GOOD_ANALYSIS
    assert (revision.spent.turns, revision.spent.prompt_tokens, revision.spent.completion_tokens) == (6, 600, 120)
    made = scaffold.load(str(at.candidate))
    assert made.schema.limits.search_results == 20
    assert made.schema.scaffold.version == "candidate"

    system, opening = (message["content"] for message in script.asked[0]["messages"][:2])
    assert "The model decides" in system and "Outcome before record" in system and "structural" in system
    assert "A map instead of a log" in opening and "seed 3: progression" in opening
    assert {tool["function"]["name"] for tool in script.asked[0]["tools"]} >= {"read_steps", "check", "finish"}
    assert "=== step 5" in script.told(1) and "=== step 7" not in script.told(1)
    assert "\n80\n" in script.told(2)
    assert "prompts/log.j2:1: error" in script.told(3)
    assert "not finished" in script.told(4) and "prompts/log.j2:1: error" in script.told(4)
    assert "as in the parent again" in script.told(5)


def test_a_continuation_is_told_what_failed(loop: Path) -> None:
    given = setting.evidence(loop)
    before = given.attempts[0]
    script = Script([DONE])
    with fake_openai(script) as fake:
        review(fake.base, setting.evidence(loop, before), setting.desk(loop))
    opening = script.asked[0]["messages"][1]["content"]
    assert "You go on from a failed attempt" in opening
    assert "Attempt 1.1.0 ended as rejected: it played worse" in opening
    assert "Logs grow." in opening


@pytest.mark.parametrize("trouble", [refusal(429, "slow down"), refusal(503, "overloaded")], ids=["rate", "server"])
def test_passing_trouble_costs_nothing(loop: Path, trouble: Answer) -> None:
    with fake_openai(trouble, trouble, Answer(body=DONE)) as fake:
        revision = review(fake.base, setting.evidence(loop), setting.desk(loop))
    assert len(fake.requests) == 3
    assert revision.spent.turns == 1


def test_a_server_that_hangs_is_asked_again(loop: Path) -> None:
    never = threading.Event()
    try:
        with fake_openai(Answer(body=DONE, wait=never), Answer(body=DONE)) as fake:
            patience = Patience(attempts=2, first_wait=0.01, timeout=2.0)
            revision = review(fake.base, setting.evidence(loop), setting.desk(loop), patience=patience)
            never.set()
    finally:
        never.set()
    assert revision.spent.turns == 1


def test_a_server_that_stays_away_pauses_the_loop_and_the_review_goes_on_later(loop: Path) -> None:
    at = setting.desk(loop)
    script = Script([calling(structural()), refusal(503, "overloaded")])
    with fake_openai(script) as fake, pytest.raises(ReviewerUnavailable, match=r"no reply at .* after 3 attempts"):
        review(fake.base, setting.evidence(loop), at)
    assert setting.records(at)[-1]["how"] == "unavailable"

    script = Script([refusal(500, "asked twice"), calling(finish())])
    with fake_openai(script) as fake:
        revision = review(fake.base, setting.evidence(loop), setting.desk(loop, fresh=False))
    assert len(script.asked) == 1
    assert revision.spent.turns == 2
    assert scaffold.load(str(at.candidate)).schema.limits.search_results == 20


def test_calls_that_are_none_are_answered_with_what_is_wrong(loop: Path) -> None:
    deep = '{"page": ' + "[" * 100_000
    script = Script(
        [
            calling(
                ("read_step", {}),
                ("read_steps", '{"seed": 3,'),
                ("memory_at", {"seed": 3}),
                ("memory_at", {"seed": 3, "step": "soon"}),
                ("check", {"quickly": True}),
                ("check", "[1]"),
                ("check", deep),
                ("read file; rm", '"\ud800"'),
            ),
            completion("I think that I am done."),
            DONE,
        ]
    )
    with fake_openai(script) as fake:
        review(fake.base, setting.evidence(loop), setting.desk(loop), LlmOptions(tools="native"))
    told = script.told(1)
    assert "there is no tool 'read_step'; did you mean read_steps?" in told
    assert "read_steps: the arguments are not valid JSON" in told
    assert "memory_at: the argument step is missing" in told
    assert "step: Input should be a valid integer" in told
    assert "check: it takes no argument quickly" in told
    assert "check: the arguments have to be one JSON object" in told
    assert "check: the arguments are nested too deeply" in told
    assert "there is no tool 'read file; rm'" in told
    assert "called no tool" in script.told(2)
    # What goes back to the server is what servers accept, whatever the model wrote.
    sent = script.asked[1]["messages"][2]["tool_calls"]
    assert [call["function"]["name"] for call in sent][-1] == "read_file__rm"
    assert all(call["function"]["arguments"].startswith("{") for call in sent)


def test_too_many_replies_without_a_call_end_the_review(loop: Path) -> None:
    at = setting.desk(loop)
    with (
        fake_openai(Script([completion("no")])) as fake,
        pytest.raises(ReviewFailed, match="3 replies in a row") as why,
    ):
        review(fake.base, setting.evidence(loop), at, LlmOptions(tools="native", malformed=3))
    assert why.value.spent.turns == 3
    assert setting.records(at)[-1]["how"] == "failed"


def test_a_reply_that_was_cut_off_is_told_so(loop: Path) -> None:
    half = calling(("write_file", '{"path": "hooks.py", "text": "class Hoo'))
    half["choices"][0]["finish_reason"] = "length"
    script = Script([half, DONE])
    with fake_openai(script) as fake:
        review(fake.base, setting.evidence(loop), setting.desk(loop))
    assert "cut off at its limit of tokens" in script.told(1)


def test_a_conversation_that_does_not_fit_loses_its_oldest_answers(loop: Path) -> None:
    at = setting.desk(loop)
    script = Script([calling(("manual", {"topic": "sql"})), calling(("manual", {"topic": "hooks"})), DONE])

    def small(request: dict) -> Answer:
        if sum(len(str(message.get("content"))) for message in request["messages"][2:]) > 9_000:
            return refusal(400, "This model's maximum context length is 8192 tokens.")
        return script(request)

    with fake_openai(small) as fake:
        review(fake.base, setting.evidence(loop), at)
    answers = [message["content"] for message in script.asked[-1]["messages"] if message["role"] == "tool"]
    assert answers[0] == "(removed to make room; ask again)"
    assert "## Hooks" in answers[1]
    assert [record["kind"] for record in setting.records(at)].count("shortened") == 1

    with fake_openai(refusal(500, "must not be asked")) as fake:  # recorded, it takes the same way again
        review(fake.base, setting.evidence(loop), setting.desk(loop, fresh=False))
    assert not fake.requests


def test_a_context_that_is_too_small_for_anything_ends_the_review(loop: Path) -> None:
    tiny = refusal(400, "This model's maximum context length is 100 tokens.")
    with fake_openai(tiny) as fake, pytest.raises(ReviewFailed, match="do not fit"):
        review(fake.base, setting.evidence(loop), setting.desk(loop))
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (Budget(turns=4), "its budget of turns is spent: 4 of 4 replies"),
        (Budget(tokens=480), "its budget of tokens is spent: 480 of 480 tokens"),
    ],
    ids=["turns", "tokens"],
)
def test_a_budget_that_runs_out(loop: Path, budget: Budget, said: str) -> None:
    script = Script([calling(("list_files", {}))])
    with fake_openai(script) as fake, pytest.raises(ReviewFailed, match=said) as why:
        review(fake.base, setting.evidence(loop), setting.desk(loop, budget))
    assert len(fake.requests) == why.value.spent.turns == 4
    assert "Left of your budget" not in script.told(2)
    assert "Finish now" in script.told(3) or "Come to an end soon" in script.told(3)


def test_money_is_counted_where_a_price_is_known(loop: Path) -> None:
    reply = calling(("list_files", {}), prompt=1_000_000)
    reply["model"] = "gpt-4o-mini"
    with (
        fake_openai(Answer(body=reply), models=("gpt-4o-mini",)) as fake,
        pytest.raises(ReviewFailed, match="its budget of money is spent") as why,
    ):
        review(
            fake.base,
            setting.evidence(loop),
            setting.desk(loop, Budget(tokens=None, usd=0.2)),
            name="openai/gpt-4o-mini",
        )
    assert why.value.spent.usd == pytest.approx(0.3, rel=0.5)


def test_time_runs_out_while_it_waits_for_a_reply(loop: Path) -> None:
    never = threading.Event()
    try:
        with (
            fake_openai(Answer(body=DONE, wait=never)) as fake,
            pytest.raises(ReviewFailed, match="budget of time is spent"),
        ):
            try:
                review(fake.base, setting.evidence(loop), setting.desk(loop, Budget(minutes=0.02)))
            finally:
                never.set()
    finally:
        never.set()


@pytest.mark.parametrize("way", ["asked for", "refused", "overlooked", "left in the text"])
def test_models_without_tool_calls_write_them_as_text(loop: Path, way: str) -> None:
    at = setting.desk(loop)
    script = Script([completion(in_text(("run_stats", {}))), completion(in_text(structural(), finish()))])

    def without_tools(request: dict) -> Answer:
        if "tools" in request and way == "refused":
            return refusal(
                400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
            )
        if "tools" in request and way == "overlooked":
            return Answer(body=completion("How can I help you?"))
        return script(request)

    options = LlmOptions(tools="text" if way == "asked for" else "auto")
    with fake_openai(without_tools) as fake:
        revision = review(fake.base, setting.evidence(loop), at, options)
    assert revision.description == "Places in a map by coordinate"
    assert "[1. run_stats]" in script.told(1) and "progression" in script.told(1)
    if way != "left in the text":
        assert "tools" not in script.asked[0]
        assert "```tool" in script.asked[0]["messages"][0]["content"]
        assert len(script.asked[0]["messages"]) == 2
    assert revision.spent.turns == (3 if way == "overlooked" else 2)

    with fake_openai(refusal(500, "must not be asked")) as fake:
        again = review(fake.base, setting.evidence(loop), setting.desk(loop, fresh=False), options)
    assert not fake.requests
    assert again.description == revision.description


def test_no_key_is_stored_or_shown(loop: Path) -> None:
    key = "plain-looking-0123456789"
    at = setting.desk(loop)
    script = Script(
        [calling(("search", {"pattern": key}), text=f"My key is {key}."), DONE],
    )
    with fake_openai(script) as fake:
        review(fake.base, setting.evidence(loop), at, key=key)
    assert key in (fake.keys[0] or "")
    for path in at.folder.rglob("*"):
        assert path.is_dir() or key.encode() not in path.read_bytes()


def test_nothing_that_others_wrote_is_read_as_a_template(loop: Path) -> None:
    given = setting.evidence(loop)
    hostile = given.attempts[0].__class__(
        *(getattr(given.attempts[0], name) for name in ("number", "reviewer", "parent", "identity", "folder")),
        description="{{ 7 * 7 }} {% for x in y %}",
        analysis="",
        outcome="rejected",
        why="\ud800 {{ evidence.parent }}",
    )
    given = given.__class__(given.number, given.parent, given.run, (hostile,), hostile)
    script = Script([DONE])
    with fake_openai(script) as fake:
        review(fake.base, given, setting.desk(loop))
    assert "{{ 7 * 7 }} {% for x in y %}" in script.asked[0]["messages"][1]["content"]
