"""One step of the agent: what the model is shown, what is run, and what is played."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from automem import scaffold
from automem.agent import Agent, Decision
from automem.memory import Memory
from automem.models.protocol import ContextTooLong, ModelUnavailable
from automem.records import Phase, StepRecord, Turn, messages
from tests.listed import Listed


@dataclass
class Rules:
    """Three actions of a game that does not exist."""

    task: str = "Crafter"
    actions: dict[str, str] = field(
        default_factory=lambda: {"Noop": "wait", "Move West": "go left", "a": "x", "A": "y"}
    )
    instructions: str = "Survive."
    default_action: str = "Noop"


class Table:
    """An agent with a model that follows a list of replies, and everything that it was sent."""

    def __init__(self, folder: Path, replies: Sequence[str | Exception], ref: str = "crafter/v0") -> None:
        model = Listed(replies)
        self.sent = model.sent
        loaded = scaffold.load(ref)
        files, limits = [file.spec() for file in loaded.schema.files], loaded.schema.limits.for_memory()
        self.memory = Memory(folder / "memory", files, limits, initial=loaded.initial)
        self.agent = Agent(model, loaded, self.memory, Rules())

    def decide(self, observation: str = "You see grass") -> Decision:
        return asyncio.run(self.agent.decide(observation))


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Table]:
    return lambda *replies: Table(tmp_path, replies)


GO = "<|ACTION|>Move West<|END|>"


def test_the_first_step_has_no_outcome_to_log(table: Callable[..., Table]) -> None:
    decision = table(GO).decide()
    assert decision.log == () and len(decision.plan) == 1
    assert decision.action == decision.raw_action == "Move West" and not decision.fallback


def test_log_records_the_last_action_before_the_next_is_planned(table: Callable[..., Table], tmp_path: Path) -> None:
    t = table(GO, "<|APPEND|>map_notes.txt|went west<|END|><|DONE|><|END|>", "<|TAIL|>map_notes.txt|1<|END|>", GO)
    t.decide("first")
    decision = t.decide("second")
    log, plan_before, plan_after = t.sent[1:]
    assert "second" in log[1]["content"] and "last action, Move West" in log[1]["content"]
    assert "went west" in plan_after[-1]["content"] and "went west" not in plan_before[-1]["content"]
    assert [len(decision.log), len(decision.plan)] == [1, 2]
    assert (tmp_path / "memory" / "map_notes.txt").read_text() == "went west\n"


def test_log_and_plan_of_a_step_share_everything_up_to_the_end_of_the_observation(table: Callable[..., Table]) -> None:
    t = table(GO, "<|DONE|><|END|>", GO)
    t.decide("first")
    t.decide("second")
    log, plan = t.sent[1:]
    assert log[0] == plan[0] == t.sent[0][0]
    end = log[1]["content"].index("=== END OF OBSERVATION ===")
    assert log[1]["content"][:end] == plan[1]["content"][:end] and "second" in plan[1]["content"][:end]


def test_a_write_in_plan_is_answered_and_not_run(table: Callable[..., Table], tmp_path: Path) -> None:
    t = table("<|APPEND|>map_notes.txt|early<|END|>", GO)
    decision = t.decide()
    assert "APPEND" in t.sent[1][-1]["content"]
    assert decision.plan[0].errors and not decision.plan[0].ops
    assert not (tmp_path / "memory" / "map_notes.txt").exists()


@pytest.mark.parametrize("written", ["move west", "MOVE WEST", '"Move West"', "`move west`", "Move West."])
def test_an_action_in_other_case_or_quotes_is_understood(table: Callable[..., Table], written: str) -> None:
    decision = table(f"<|ACTION|>{written}<|END|>").decide()
    assert (decision.action, decision.raw_action, decision.invalid) == ("Move West", written, 0)


def test_actions_that_differ_only_in_case_are_taken_exactly(table: Callable[..., Table]) -> None:
    assert table("<|ACTION|>A<|END|>").decide().action == "A"


def test_an_unknown_action_is_told_and_another_may_follow(table: Callable[..., Table]) -> None:
    t = table("<|ACTION|>Move Wast<|END|>", GO)
    decision = t.decide()
    assert "'Move Wast' is not an action" in t.sent[1][-1]["content"] and "Move West" in t.sent[1][-1]["content"]
    assert (decision.action, decision.invalid, decision.fallback) == ("Move West", 1, False)


def test_a_model_that_commits_nothing_costs_a_counted_fallback(table: Callable[..., Table]) -> None:
    t = table(*["I wonder."] * 5)
    decision = t.decide()
    assert (decision.action, decision.raw_action, decision.fallback) == ("Noop", None, True)
    assert len(decision.plan) == 5
    assert "no operation was found" in t.sent[1][-1]["content"]
    assert "1 reply left" in t.sent[4][-1]["content"]


def test_log_ends_at_its_limit(table: Callable[..., Table]) -> None:
    t = table(GO, *["<|COUNT|>map_notes.txt|x<|END|>"] * 5, GO)
    t.decide()
    decision = t.decide()
    assert len(decision.log) == 5 and decision.action == "Move West"


def test_a_model_that_cannot_be_reached_is_no_action(table: Callable[..., Table]) -> None:
    t = table(ModelUnavailable("gone"))
    with pytest.raises(ModelUnavailable):
        t.decide()
    assert t.agent.step == 0


def test_a_context_that_overflows_later_ends_the_phase(table: Callable[..., Table]) -> None:
    decision = table("<|READ|>goals.txt<|END|>", ContextTooLong("8192")).decide()
    assert decision.fallback and len(decision.plan) == 1
    assert any("the next prompt did not fit" in warning for warning in decision.warnings)


def test_a_context_that_overflows_at_once_is_an_error(table: Callable[..., Table]) -> None:
    with pytest.raises(ContextTooLong):
        table(ContextTooLong("8192"), ContextTooLong("8192")).decide()


def test_half_a_surrogate_pair_can_be_stored(table: Callable[..., Table], tmp_path: Path) -> None:
    t = table(GO, "<|APPEND|>map_notes.txt|\ud83d here<|END|><|DONE|><|END|>", GO)
    t.decide()
    decision = t.decide()
    decision.log[0].text.encode("utf-8")
    assert "here" in (tmp_path / "memory" / "map_notes.txt").read_text("utf-8")


def test_a_reply_cannot_run_operations_without_end(table: Callable[..., Table]) -> None:
    t = table("<|READ|>goals.txt<|END|>" * 60_000, GO)
    decision = t.decide()
    assert len(decision.plan[0].ops) == 50
    assert "only the first 50 operations" in t.sent[1][-1]["content"]


def test_spans_give_back_the_operation_as_it_was_written(table: Callable[..., Table]) -> None:
    text = "Let me look. <|SEARCH|>map_notes.txt|a|b<|END|> and\n<|TAIL|>goals.txt|2<|END|>"
    decision = table(text, GO).decide()
    assert [text[slice(*op.span)] for op in decision.plan[0].ops] == [
        "<|SEARCH|>map_notes.txt|a|b<|END|>",
        "<|TAIL|>goals.txt|2<|END|>",
    ]


def test_the_exact_prompts_can_be_rebuilt_from_the_record(table: Callable[..., Table]) -> None:
    t = table(
        GO,
        "<|APPEND|>map_notes.txt|one<|END|><|READ|>goals.txt<|END|>",
        "",
        "<|BOGUS|>x<|END|><|DONE|><|END|>",
        "<|SEARCH|>*|tree<|END|>",
        GO,
    )
    t.decide("first")
    decision = t.decide("second")
    record = StepRecord(
        1, "second", decision.log, decision.plan, decision.raw_action, decision.action, 0, False, 0, 0, {}, False, False
    )
    rebuilt = [messages(record, t.agent.system, "log", i, "Move West") for i in range(len(decision.log))]
    rebuilt += [messages(record, t.agent.system, "plan", i, "Move West") for i in range(len(decision.plan))]
    assert rebuilt == t.sent[1:]


def test_a_listener_hears_every_turn(table: Callable[..., Table]) -> None:
    heard: list[tuple[Phase, str]] = []

    class Ear:
        def turn(self, phase: Phase, turn: Turn) -> None:
            heard.append((phase, turn.text))

    t = table(GO, "<|DONE|><|END|>", GO)
    t.agent.listener = Ear()
    t.decide()
    t.decide()
    assert heard == [("plan", GO), ("log", "<|DONE|><|END|>"), ("plan", GO)]


# A template that fails although its trial went well: a plain text takes its place.

BOOM = "{% if 'boom' in observation %}{{ 1 // 0 }}{% endif %}"


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Table]:
    """An agent with crafter/v0, some of whose files have text added in front, and with longer results."""

    def made(files: dict[str, str], *replies: str | Exception, result_chars: int = 2000) -> Table:
        folder = tmp_path / "crafter" / "mine"
        shutil.copytree(Path(__file__).resolve().parent.parent / "scaffolds" / "crafter" / "v0", folder)
        for name, text in files.items():
            path = folder / name
            path.write_text(text + path.read_text() if path.exists() else text)
        toml = folder / "scaffold.toml"
        toml.write_text(toml.read_text().replace("result_chars = 2000", f"result_chars = {result_chars}"))
        return Table(tmp_path, replies, str(folder))

    return made


def test_a_first_message_that_fails_is_said_plainly(changed: Callable[..., Table]) -> None:
    t = changed({"prompts/log.j2": BOOM, "prompts/plan.j2": "one\n" + BOOM}, GO, "<|DONE|><|END|>", GO)
    t.decide("first")
    decision = t.decide("boom")
    log, plan = (sent[1]["content"] for sent in t.sent[1:])
    assert log.startswith("=== STEP 1 | last action: Move West ===\nboom\n=== END OF OBSERVATION ===")
    assert "Finish with <|DONE|><|END|>." in log and "goals.txt: " in log
    assert "Finish with <|ACTION|>name of the action<|END|>." in plan and "goals.txt: " in plan
    assert (decision.action, decision.fallback, len(decision.log)) == ("Move West", False, 1)
    assert decision.warnings == (
        "a plain text was used instead of log.j2: log.j2:1: ZeroDivisionError: integer division or modulo by zero",
        "a plain text was used instead of plan.j2: plan.j2:2: ZeroDivisionError: integer division or modulo by zero",
    )


def test_results_that_fail_are_said_plainly_and_noted_once(changed: Callable[..., Table]) -> None:
    look = "<|READ|>goals.txt<|END|><|BOGUS|>x<|END|>"
    t = changed({"prompts/results.j2": BOOM}, look, look, look, GO)
    decision = t.decide("boom")
    said = t.sent[3][-1]["content"]
    assert said.startswith("--- 1. READ goals.txt ---\n") and "--- end of results ---\n! " in said and "BOGUS" in said
    assert said.endswith("2 replies left in PLAN. Finish with <|ACTION|>name of the action<|END|>.")
    assert decision.action == "Move West" and len(decision.plan) == 4
    assert len(decision.warnings) == 1 and "instead of results.j2: results.j2:1:" in decision.warnings[0]


def test_a_message_that_a_template_makes_too_long_is_said_plainly(changed: Callable[..., Table]) -> None:
    t = changed({"prompts/plan.j2": "{{ observation }}{{ observation }}"}, GO)
    decision = t.decide("x" * 150_000)
    assert t.sent[0][1]["content"].count("=== END OF OBSERVATION ===") == 1
    assert decision.action == "Move West" and "renders to more than" in decision.warnings[0]


def test_results_too_long_for_any_text_end_the_phase(changed: Callable[..., Table]) -> None:
    t = changed({"files/big.txt": "x" * 19_900}, "<|READ|>big.txt<|END|>" * 30, result_chars=20_000)
    decision = t.decide()
    assert decision.fallback and len(decision.plan) == 1
    assert any("the next prompt did not fit" in warning for warning in decision.warnings)


def test_a_plain_text_that_does_not_fit_the_model_is_an_error(changed: Callable[..., Table]) -> None:
    with pytest.raises(ContextTooLong):
        changed({"prompts/plan.j2": BOOM}, ContextTooLong("8192")).decide("boom")


def test_a_plain_prompt_can_be_rebuilt_from_the_record(changed: Callable[..., Table]) -> None:
    t = changed({"prompts/plan.j2": BOOM, "prompts/results.j2": BOOM}, "<|READ|>goals.txt<|END|>", GO)
    decision = t.decide("boom")
    record = StepRecord(
        0, "boom", (), decision.plan, decision.raw_action, decision.action, 0, False, 0, 0, {}, False, False
    )
    assert [messages(record, t.agent.system, "plan", i, None) for i in range(2)] == t.sent
    assert [turn.prompt.block for turn in decision.plan] == ["observation", "results"]
