"""Agents without a memory folder: what they ask, what is played, and that a trace holds all of it."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from automem import choosing, trace
from automem.agents import registry
from automem.agents.history import LENGTH
from automem.agents.protocol import AgentFailed, Seat
from automem.agents.simple import Simple
from automem.episode import MEMORY, RESULT, STEPS, EpisodeError, EpisodeJob, EpisodeResult, load_result, play
from automem.errors import UserError
from automem.game_pool import GamePool
from automem.models.fixed import Fixed, Nobody, first_action
from automem.models.protocol import ContextTooLong, Message, Model, ModelUnavailable
from automem.records import StepRecord, messages
from games.protocol import Observation
from tests.listed import Listed, Rules


class Table:
    """An agent whose model follows a list of replies (an exception is raised), and what it was sent."""

    def __init__(self, agent: str, replies: Sequence[str | Exception]) -> None:
        self.model = Listed(replies)
        self.sent = self.model.sent
        self.player = registry.seated(agent, Rules(), 7, self.model)
        self.records: list[StepRecord] = []

    def decide(self, long_term: str, short_term: str = "status") -> StepRecord:
        """One step; its record, as an episode would write it."""
        seen = Observation(long_term, short_term)
        step = self.player.step
        made = asyncio.run(self.player.decide(seen))
        system = self.player.system if step == 0 else None
        record = StepRecord(
            step, seen.text, made.log, made.plan, made.raw_action, made.action, made.invalid, made.fallback,
            0.0, 0.0, {}, False, False, system=system, long_term=seen.long_term_length,
        )  # fmt: skip
        self.records.append(record)
        return record


def test_naive_is_shown_the_game_once_and_its_past_as_a_conversation() -> None:
    table = Table("naive", ["Move West", "  do "])
    first, second = table.decide("grass", "health 9"), table.decide("tree", "health 8")
    assert (first.action, second.action, second.raw_action) == ("Move West", "Do", "do")
    system, seen, answer, now = table.sent[1]
    assert system["role"] == "system" and "Survive." in system["content"] and "- Move West: left" in system["content"]
    assert (seen["role"], answer) == ("user", {"role": "assistant", "content": "Move West"})
    # Of the past only what is around; of the present the status, too, and first.
    assert "grass" in seen["content"] and "health" not in seen["content"]
    assert now["content"].index("health 8") < now["content"].index("tree")


def test_naive_looks_back_on_sixteen_observations() -> None:
    table = Table("naive", ["Do"] * 40)
    for step in range(40):
        table.decide(f"place {step}.")
    shown = "\n".join(message["content"] for message in table.sent[-1])
    assert [step for step in range(40) if f"place {step}." in shown] == list(range(40 - LENGTH, 40))
    assert len(table.sent) == 40  # one call a step


def test_what_is_no_action_plays_the_default_and_is_told() -> None:
    table = Table("naive", ["fly", "<|ACTION|>Do<|END|>", "Do"])
    wrong = table.decide("grass")
    assert (wrong.action, wrong.raw_action, wrong.invalid, wrong.fallback) == ("Noop", "fly", 1, True)
    assert "is not an action" in wrong.plan[0].errors[0]
    assert table.decide("tree").action == "Do"
    assert "not an action of the game; Noop was played" in table.sent[1][-1]["content"]
    table.decide("tree")
    assert "not an action" not in table.sent[2][-1]["content"]


def test_cot_reasons_before_it_acts_and_remembers_its_last_reasoning_only() -> None:
    replies = [f"Because of {n}.\n<|ACTION|>{name}<|END|>" for n, name in enumerate(("Do", "Move West", "Noop"))]
    table = Table("cot", replies)
    assert [table.decide("grass").action for _ in range(3)] == ["Do", "Move West", "Noop"]
    answers = [message["content"] for message in table.sent[2] if message["role"] == "assistant"]
    assert answers[0] == "Do"
    assert "Because of 1." in answers[1] and "<|ACTION|>Move West<|END|>" in answers[1]


def test_a_history_that_does_not_fit_is_shortened_from_its_oldest_end() -> None:
    full = ContextTooLong("too long")
    table = Table("naive", ["Do"] * 8 + [full, full, "Move West", full])
    for step in range(8):
        table.decide(f"place {step}.")
    assert table.decide("place 8.").action == "Move West"
    shown = "\n".join(message["content"] for message in table.sent[-1])
    kept = [step for step in range(9) if f"place {step}." in shown]
    assert kept == list(range(kept[0], 9)) and 0 < kept[0] < 8
    lonely = Table("naive", [full])
    with pytest.raises(ContextTooLong):
        lonely.decide("place 0.")


def test_every_prompt_can_be_rebuilt_from_the_records() -> None:
    table = Table("cot", ["a <|ACTION|>Do<|END|>", "fly", ContextTooLong("x"), "Do", "Do"])
    for step in range(4):
        table.decide(f"place {step}.")
    system = table.records[0].system
    assert system
    rebuilt, last = [], None
    for record in table.records:
        for turn in range(len(record.plan)):
            rebuilt.append(messages(record, system, "plan", turn, last))
        last = record.action
    sent = [asked for number, asked in enumerate(table.sent) if number != 2]  # the one that did not fit
    assert rebuilt == sent


class Changing:
    """Asks twice a step, with another system message each step, and once without any."""

    model = ""

    def __init__(self, seat: Seat) -> None:
        self.seat, self.calls = seat, itertools.count()

    async def act(self, observation: Observation) -> str:
        number = next(self.calls)
        for said in (f"system {number}", ""):
            head = [{"role": "system", "content": said}] if said else []
            await self.seat.ask([*head, {"role": "user", "content": f"{observation.long_term} {number}"}])
        return "Do"


def test_an_agent_may_change_its_system_message() -> None:
    table = Table("naive", ["a", "b", "c", "d"])
    model = table.model
    table.player = Simple(Changing, Rules(), 7, model)
    table.decide("grass"), table.decide("tree")
    system = table.records[0].system
    assert system == "system 0"
    assert [messages(r, system, "plan", turn, None) for r in table.records for turn in range(2)] == table.sent


def test_random_plays_every_action_as_often_and_the_same_again() -> None:
    def actions(seed: int) -> list[str]:
        player = registry.seated("random", Rules(), seed, Nobody())
        return [asyncio.run(player.decide(Observation("", ""))).action for _ in range(600)]

    assert actions(1) == actions(1) != actions(2)
    assert all(150 < actions(1).count(name) < 250 for name in Rules().actions)


def test_the_fixed_model_answers_the_first_action_or_done() -> None:
    table = Table("naive", [])
    asked = [{"role": "system", "content": "Rules\n- x: y\n\nThe actions:\n- Noop: wait\n- Do: use"}]
    assert first_action([*asked, {"role": "user", "content": "now"}]) == "<|ACTION|>Noop<|END|>"
    assert first_action([*asked, {"role": "user", "content": "Finish with <|DONE|><|END|>."}]) == "<|DONE|><|END|>"
    assert table.player.system == ""


def run(folder: Path, agent: str, model: Model, steps: int = 30, task: str = "Crafter") -> EpisodeResult:
    async def once() -> EpisodeResult:
        pool = GamePool(1)
        try:
            return await play(EpisodeJob(folder, task, 5, steps, None, agent), None, model, pool)
        finally:
            pool.close()

    return asyncio.run(asyncio.wait_for(once(), 300))


class Failing(Fixed):
    """Answers in turn with actions, and fails at one call."""

    def __init__(self, at: int | None = None) -> None:
        calls = itertools.count()
        names = ("Move West", "nonsense", "Do", "Move South")

        def rule(asked: Sequence[Message]) -> str:
            if next(calls) == at:
                raise ModelUnavailable("gone")
            # By what is asked, not by the call: replayed calls are not made.
            return names[sum(map(len, (message["content"] for message in asked))) % 4]

        super().__init__(rule)


@pytest.mark.parametrize("agent", ["naive", "random"])
def test_an_interrupted_episode_goes_on_as_if_nothing_had_happened(tmp_path: Path, agent: str) -> None:
    whole = run(tmp_path / "whole", agent, Failing() if agent == "naive" else Nobody())
    assert (whole.agent, whole.scaffold, whole.last_reward) == (
        agent,
        "",
        trace.read(tmp_path / "whole" / STEPS)[0][-1].reward,
    )
    if agent == "naive":
        with pytest.raises(ModelUnavailable):
            run(tmp_path / "cut", agent, Failing(at=17))
    else:
        run(tmp_path / "cut", agent, Nobody())
        (tmp_path / "cut" / RESULT).unlink()
        records, _ = trace.read(tmp_path / "cut" / STEPS)
        (tmp_path / "cut" / STEPS).unlink()
        writer = trace.TraceWriter(tmp_path / "cut" / STEPS)
        for record in records[:11]:
            writer.append(record)
        writer.close()
    assert run(tmp_path / "cut", agent, Failing() if agent == "naive" else Nobody()) == whole
    then, now = (trace.read(tmp_path / name / STEPS)[0] for name in ("whole", "cut"))
    assert [(r.action, r.observation, [t.context for t in r.plan]) for r in then] == [
        (r.action, r.observation, [t.context for t in r.plan]) for r in now
    ]
    assert list((tmp_path / "cut" / MEMORY).iterdir()) == []


def test_another_agents_result_is_not_taken_for_ones_own(tmp_path: Path) -> None:
    run(tmp_path, "random", Nobody(), steps=3)
    assert load_result(tmp_path) is not None
    with pytest.raises(EpisodeError, match="agent random"):
        run(tmp_path, "cot", Nobody(), steps=3)


class Sleeper:
    """A package's agent."""

    model = "none"

    def __init__(self, seat: Seat) -> None:
        pass

    async def act(self, observation: Observation) -> str:
        return "Noop"


def broken_import(entry: metadata.EntryPoint) -> type:
    raise ImportError("no module named helpful")


DEFECTS = [
    (broken_import, "agent 'wrong' cannot be loaded from its package: ImportError: no module named helpful"),
    (lambda entry: type("Deaf", (), {"model": "none", "act": Sleeper.act}), "class Deaf cannot be made with a seat"),
    (lambda entry: type("Lazy", (Sleeper,), {"act": None}), "class Lazy has no method `act`"),
]


def test_packages_add_agents(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    entry = metadata.EntryPoint("sleeper", f"{__name__}:Sleeper", registry.ENTRY_POINTS)
    wrong = metadata.EntryPoint("wrong", "os:getcwd", registry.ENTRY_POINTS)
    monkeypatch.setattr(choosing, "entry_points", lambda group: [entry, wrong])
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda self: Sleeper if self.name == "sleeper" else len)
    assert registry.names() == ("random", "naive", "cot", "memory", "scripted", "sleeper", "wrong")
    result = run(tmp_path, "sleeper", Nobody(), steps=5)
    assert (result.agent, result.counts.fallback, result.steps) == ("sleeper", 0, 5)
    with pytest.raises(UserError, match="is not the class of an agent"):
        registry.kind("wrong")
    for defect, told in DEFECTS:
        monkeypatch.setattr(metadata.EntryPoint, "load", defect)
        with pytest.raises(UserError, match=told):
            registry.kind("wrong")
    with pytest.raises(UserError, match="there are random, naive, cot"):
        registry.kind("nobody")


def made(act: Callable[[Seat, Observation], Any], model: Model) -> Simple:
    """An agent that acts by a function."""

    class Made:
        def __init__(self, seat: Seat) -> None:
            self.seat = seat

        async def act(self, observation: Observation) -> Any:
            found = act(self.seat, observation)
            return await found if inspect.isawaitable(found) else found

    return Simple(Made, Rules(), 7, model, name="steady")


async def asks(seat: Seat, *contents: Any) -> str:
    return await seat.ask([{"role": "user", "content": content} for content in contents])


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda seat, seen: 1 / 0, r"agent steady failed at step 0: ZeroDivisionError.* \(test_agents.py, line \d+\)"),
        (lambda seat, seen: {}["\ud800"], "failed at step 0: KeyError"),
        (lambda seat, seen: 7, "agent steady answered step 0 with a value of type int"),
        (lambda seat, seen: seat.ask([]), "agent steady asks with a conversation that does not end"),
        (lambda seat, seen: asks(seat, [{"type": "image"}]), "asks with something that is no conversation"),
        (lambda seat, seen: seat.ask([{"role": "assistant", "content": "x"}]), "does not end with a user message"),
    ],
)
def test_what_an_agents_code_does_wrong_is_told_by_its_name(act: Any, told: str) -> None:
    with pytest.raises(AgentFailed, match=told) as raised:
        asyncio.run(made(act, Fixed(first_action)).decide(Observation("", "")))
    str(raised.value).encode()  # it is written to results


def test_an_agent_that_says_it_asks_nobody_must_not_ask() -> None:
    with pytest.raises(AgentFailed, match='steady asks a model, and its class says `model = "none"`'):
        asyncio.run(made(lambda seat, seen: asks(seat, "x"), Nobody()).decide(Observation("", "")))


def test_an_agent_that_takes_no_notice_of_a_lost_model_does_not_play_on() -> None:
    def gone(messages: Sequence[Message]) -> str:
        raise ModelUnavailable("the server is gone")

    async def careless(seat: Seat) -> str:
        with contextlib.suppress(Exception):
            await asks(seat, "x")
        return "Do"

    with pytest.raises(ModelUnavailable, match="the server is gone"):
        asyncio.run(made(lambda seat, seen: careless(seat), Fixed(gone)).decide(Observation("", "")))


async def twice(seat: Seat) -> str:
    """Asks for a plan, which may not fit, and then for an action."""
    try:
        plan = await asks(seat, "the whole story")
    except ContextTooLong:
        plan = "none"
    return await asks(seat, f"plan {plan}")


async def at_once(seat: Seat) -> str:
    """Asks two things at once; the first is answered last."""
    first, second = await asyncio.gather(asks(seat, "slow"), asks(seat, "quick"))
    return first if second == "Do" else "Noop"


class Slow(Fixed):
    """Answers what is slow once it has answered what is quick."""

    def __init__(self, rule: Callable[[Sequence[Message]], str]) -> None:
        super().__init__(rule)
        self.answered = asyncio.Event()

    async def complete(self, messages: Sequence[Message]) -> Any:
        if messages[-1]["content"] == "slow":
            await self.answered.wait()
        reply = await super().complete(messages)
        self.answered.set()
        return reply


def story(messages: Sequence[Message]) -> str:
    asked = messages[-1]["content"]
    if asked == "the whole story":
        raise ContextTooLong("too long")
    return "Do" if asked in ("plan none", "quick") else "Move West"


@pytest.mark.parametrize("act", [twice, at_once])
def test_a_recorded_step_answers_each_question_as_then(act: Any) -> None:
    def player(model: Model) -> Simple:
        return made(lambda seat, seen: act(seat), model)

    seen = Observation("grass", "")
    then = asyncio.run(player(Slow(story)).decide(seen))
    record = StepRecord(
        0, seen.text, then.log, then.plan, then.raw_action, then.action, then.invalid, then.fallback, 0.0, 0.0, {},
        False, False, system="",
    )  # fmt: skip
    again = asyncio.run(player(Nobody()).decide(seen, record))
    assert (again.action, sorted(turn.text for turn in again.plan)) == (
        then.action,
        sorted(turn.text for turn in then.plan),
    )
    other = made(lambda seat, seen: asks(seat, "something else"), Nobody())
    with pytest.raises(AgentFailed, match="steady: step 0 does not go as it was recorded"):
        asyncio.run(other.decide(seen, record))


def test_a_trace_keeps_what_was_asked_whatever_becomes_of_the_messages() -> None:
    async def reuses(seat: Seat) -> str:
        conversation = [{"role": "user", "content": "before"}, {"role": "user", "content": "now \ud800"}]
        reply = await seat.ask(conversation)
        for message in conversation:
            message["content"] = "changed"
        return reply

    sent: list[list[Message]] = []
    model = Fixed(lambda asked: sent.append([dict(one) for one in asked]) or "Do")
    (turn,) = asyncio.run(made(lambda seat, seen: reuses(seat), model).decide(Observation("", ""))).plan
    assert [*(turn.context or ()), {"role": "user", "content": turn.prompt.text("")}] == sent[0]
    assert sent[0][0]["content"] == "before"
    sent[0][1]["content"].encode()  # it is written to the trace
