"""A memory specialist logs and consults; the model that acts is handed what was found, and commits."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from automem import scaffold, trace
from automem.agent import Agent, Decision, Specialist
from automem.episode import STEPS, EpisodeError, EpisodeJob, EpisodeResult, play
from automem.game_pool import GamePool
from automem.memory import Memory
from automem.metrics import Behaviour
from automem.models.protocol import ContextTooLong, Message, ModelUnavailable
from automem.models.scripted.model import Scripted
from automem.records import Phase, StepRecord, messages
from tests.listed import Listed
from tests.test_agent import Rules

GO = "<|ACTION|>Move West<|END|>"
READ = "<|SEARCH|>goals.txt|wood<|END|>"


class Table:
    """A model and a specialist around one memory folder."""

    def __init__(
        self, folder: Path, specialist: Sequence[str | Exception], model: Sequence[str | Exception], turns: int = 2
    ) -> None:
        self.specialist, self.model = Listed(specialist, "specialist"), Listed(model, "base")
        loaded = scaffold.load("crafter/v0")
        files, limits = [file.spec() for file in loaded.schema.files], loaded.schema.limits.for_memory()
        self.memory = Memory(folder / "memory", files, limits, initial=loaded.initial)
        self.agent = Agent(self.model, loaded, self.memory, Rules(), specialist=Specialist(self.specialist, turns))

    def decide(self, observation: str = "You see grass") -> Decision:
        return asyncio.run(self.agent.decide(observation))


def recorded(decision: Decision, step: int, observation: str, system: str) -> StepRecord:
    return StepRecord(
        step, observation, decision.log, decision.plan, decision.raw_action, decision.action, decision.invalid,
        decision.fallback, 0.0, 0.0, {}, False, False, system=system,
    )  # fmt: skip


def test_log_and_consulting_are_the_specialists_and_the_action_the_models(tmp_path: Path) -> None:
    note = "<|APPEND|>map_notes.txt|went west<|END|><|DONE|><|END|>"
    t = Table(tmp_path, [READ, f"I would go. {GO}", note, READ, GO], [GO, "<|ACTION|>Noop<|END|>"])
    t.decide("first")
    decision = t.decide("second")
    assert [turn.model for turn in decision.log] == ["specialist"]
    assert [(turn.model, turn.specialist) for turn in decision.plan] == [
        ("specialist", True), ("specialist", True), ("base", False),
    ]  # fmt: skip
    assert decision.action == "Noop", "what the specialist would do is not played"
    assert (tmp_path / "memory" / "map_notes.txt").read_text() == "went west\n"
    assert len(t.model.sent) == 2, "the model is asked once a step"


def test_the_model_sees_what_was_found_and_not_the_action_of_the_specialist(tmp_path: Path) -> None:
    t = Table(tmp_path, [f"Wood first. {READ}\n{GO}"], [GO])
    t.decide()
    system, plan, consulted, handed = t.model.sent[0]
    assert system == t.specialist.sent[0][0] and plan == t.specialist.sent[0][1]
    assert consulted == {"role": "assistant", "content": f"Wood first. {READ}"}
    assert "--- 1. SEARCH goals.txt | wood ---" in handed["content"] and "Collect wood" in handed["content"]
    assert handed["content"].index("--- end of results ---") < handed["content"].index("MEMORY HAS BEEN CONSULTED")
    assert "Move West" not in handed["content"]


def test_every_prompt_of_both_is_rebuilt_from_the_record_to_the_character(tmp_path: Path) -> None:
    replies = [f"Wood. {READ} {GO}", f"{READ}<|APPEND|>map_notes.txt|a<|END|><|DONE|><|END|>", READ, READ]
    t = Table(tmp_path, replies, [GO, "<|ACTION|>fly<|END|>", GO])
    first, second = t.decide("first"), t.decide("second")
    steps = [
        (recorded(first, 0, "first", t.agent.system), None), (recorded(second, 1, "second", t.agent.system), GO),
    ]  # fmt: skip
    sent = {"specialist": iter(t.specialist.sent), "base": iter(t.model.sent)}
    asked = 0
    for record, last in steps:
        phases: tuple[Phase, ...] = ("log", "plan")
        for phase in phases:
            for number, turn in enumerate(record.log if phase == "log" else record.plan):
                rebuilt = messages(record, t.agent.system, phase, number, "Move West" if last else None)
                assert rebuilt == next(sent[turn.model])
                asked += 1
    assert asked == 7 and not [*sent["specialist"], *sent["base"]]


def test_consulting_ends_with_its_turns_and_where_nothing_is_read(tmp_path: Path) -> None:
    many = Table(tmp_path / "a", [READ, READ], [GO])
    assert [turn.specialist for turn in many.decide().plan] == [True, True, False]
    idle = Table(tmp_path / "b", ["I know enough."], [GO])
    decision = idle.decide()
    assert [turn.specialist for turn in decision.plan] == [True, False] and decision.plan[0].errors
    assert idle.model.sent[0][2]["content"] == "I know enough."


def test_the_model_uses_no_memory_itself(tmp_path: Path) -> None:
    t = Table(tmp_path, [READ], [f"<|TAIL|>goals.txt|1<|END|>{GO}"], turns=1)
    decision = t.decide()
    assert decision.action == "Move West"
    assert not decision.plan[-1].ops and "consulted already" in decision.plan[-1].errors[0]


def test_the_model_has_a_reply_left_whatever_was_consulted(tmp_path: Path) -> None:
    t = Table(tmp_path, [READ] * 5, [GO], turns=9)
    decision = t.decide()
    assert len(decision.plan) == 6 and not decision.fallback


def test_a_specialist_whose_context_is_full_hands_over_what_it_has(tmp_path: Path) -> None:
    t = Table(tmp_path, [READ, ContextTooLong("full")], [GO])
    decision = t.decide()
    assert decision.action == "Move West" and any("did not fit" in text for text in decision.warnings)


def test_only_the_specialists_turns_count_as_memory_work(tmp_path: Path) -> None:
    replies = [READ, f"{READ}<|JUMP|>x<|END|><|DONE|><|END|>", "nothing"]
    t = Table(tmp_path, replies, [GO, "<|ACTION|>fly<|END|>", GO], turns=1)
    behaviour = Behaviour()
    behaviour.add(recorded(t.decide("first"), 0, "first", ""), "second")
    assert (behaviour.counts.memory_turns, behaviour.counts.valid_memory_turns) == (1, 1)
    behaviour.add(recorded(t.decide("second"), 1, "second", ""), "third")
    # LOG had an unknown operation, PLAN none at all; the model's unknown action is no memory work.
    assert (behaviour.counts.memory_turns, behaviour.counts.valid_memory_turns) == (3, 1)


def episode(folder: Path, specialist: Specialist | None, steps: int = 12, ref: str = "crafter/small") -> EpisodeResult:
    loaded = scaffold.load(ref)

    async def once() -> EpisodeResult:
        pool = GamePool(1)
        try:
            job = EpisodeJob(folder, "Crafter", 3, steps, loaded.folder)
            return await play(job, loaded, Scripted(), pool, specialist=specialist)
        finally:
            pool.close()

    return asyncio.run(once())


class Failing(Scripted):
    """`scripted`, until its server is gone."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self._left = calls

    async def complete(self, messages: Sequence[Message]):  # type: ignore[no-untyped-def]
        if not self._left:
            raise ModelUnavailable("gone")
        self._left -= 1
        return await super().complete(messages)


@pytest.mark.parametrize("calls", [9, 10])
def test_an_episode_that_stopped_in_log_or_while_consulting_goes_on_as_if_it_had_not(
    tmp_path: Path, calls: int
) -> None:
    whole = episode(tmp_path / "whole", Specialist(Scripted()))
    with pytest.raises(ModelUnavailable):
        episode(tmp_path / "cut", Specialist(Failing(calls)))
    again = episode(tmp_path / "cut", Specialist(Scripted()))
    assert again.achievements == whole.achievements and again.counts.operations == whole.counts.operations
    then, now = ([r.action for r in trace.read(tmp_path / name / STEPS)[0]] for name in ("whole", "cut"))
    assert then == now
    kept = [(tmp_path / name / "memory" / "steps.txt").read_bytes() for name in ("whole", "cut")]
    assert kept[0] == kept[1]


def test_scripted_beside_itself_plays_as_it_does_alone(tmp_path: Path) -> None:
    alone = episode(tmp_path / "alone", None, 40)
    beside = episode(tmp_path / "beside", Specialist(Scripted()), 40)
    assert (beside.progression, beside.reached_at) == (alone.progression, alone.reached_at)
    assert beside.specialist == "scripted" and alone.specialist == ""
    assert beside.counts.prompt_tokens < alone.counts.prompt_tokens, "the rules are told to one of both only"


def test_a_result_belongs_to_who_did_its_memory_work(tmp_path: Path) -> None:
    episode(tmp_path / "e", Specialist(Scripted()), 2)
    with pytest.raises(EpisodeError, match="with scripted"):
        episode(tmp_path / "e", None, 2)
    shutil.rmtree(tmp_path / "e")
    episode(tmp_path / "e", None, 2)
