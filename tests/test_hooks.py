"""Hooks of a scaffold in real episodes: what they show, keep, change and get wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from automem.episode import MEMORY
from automem.models.fixed import Fixed
from automem.models.protocol import ContextTooLong, Message
from automem.records import HookEvent, StepRecord, messages
from tests.hook_episodes import GO, OWN, Child, Stage, follow, plan_prompt, staged, write_child


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with staged() as stage:
        yield stage


@pytest.fixture
def child(tmp_path: Path) -> Child:
    """Writes a scaffold with the hooks that it is given."""
    return partial(write_child, tmp_path / "scaffold")


def test_texts_stand_in_both_phases_and_state_lasts_for_the_episode(stage: Stage, tmp_path: Path, child: Child) -> None:
    loaded = child(
        """
        class Hooks:
            def reset(self, game, task):
                self.seen = f"{game} {task}"
            def observe(self, step):
                self.seen += f" {step.number}{step.action}"
                return {"note": self.seen}
        """,
        ["note", "unsaid"],
    )
    _, records = stage.play(tmp_path / "episode", loaded, follow(), 3)
    assert "note=[crafter Crafter 0None]\nunsaid=[]" in plan_prompt(records[0])
    seen = "note=[crafter Crafter 0None 1Move West 2Move West]"
    assert seen in plan_prompt(records[2]) and seen in records[2].log[0].prompt.after
    assert all(record.hooks == () for record in records)


def test_maintain_keeps_a_file_current_and_reads_what_the_model_wrote(
    stage: Stage, tmp_path: Path, child: Child
) -> None:
    loaded = child(
        """
        from automem.hooks import Memory, Step, write

        class Hooks:
            def maintain(self, step: Step, memory: Memory):
                names = [file.name for file in memory.files()]
                text = f"{step.number} {memory.read('nothing')}{memory.tail('map_notes.txt', 1)} {names}"
                return [write("state.txt", text + str(memory.search("map_notes.txt", "STEP")))]
        """
    )
    result, records = stage.play(tmp_path / "episode", loaded, follow(log=["<|APPEND|>map_notes.txt|a step<|END|>"]), 3)
    kept = (tmp_path / "episode" / MEMORY / "state.txt").read_text()
    assert kept == "2 ['a step'] ['goals.txt', 'map_notes.txt', 'state.txt']['a step', 'a step']\n"
    assert [(op.name, op.by, op.ok) for op in records[1].maintained] == [("WRITE", "maintain", True)]
    assert result.counts.hook_ops == 3 and result.counts.writes == 2 and result.counts.duplicate_writes == 1


MARKING = """
    from automem.hooks import append

    class Hooks:
        def op_MARK(self, args, memory):
            return f"marked {' and '.join(args)}", [append("marks.txt", args[0])]
        def op_LATER(self, args, memory):
            return "later"
"""


def test_an_own_operation_answers_and_writes_in_log_only(stage: Stage, tmp_path: Path, child: Child) -> None:
    loaded = child(MARKING, own=OWN)
    mark = "<|MARK|>a|b<|END|>"
    model = follow(plan=[f"{mark}<|LATER|><|END|>"], log=[f"{mark}<|LATER|><|END|><|TAIL|>marks.txt|1<|END|>"])
    result, records = stage.play(tmp_path / "episode", loaded, model, 2)
    assert "<|MARK|>word|word<|END|>  remember words" in (records[0].system or "")
    logged = records[1].log[0].ops
    assert [(op.name, op.by, op.result) for op in logged] == [
        ("MARK", "", "marked a and b"),
        ("APPEND", "op_MARK", "added to marks.txt, 1 line now"),
        ("LATER", "", "later"),
        ("TAIL", "", "a"),
    ]
    planned = records[1].plan[0].ops
    assert [(op.name, op.ok) for op in planned] == [("MARK", True), ("LATER", False)]
    assert "LOG only" in planned[1].result and "PLAN" in records[1].hooks[0].text
    sent = messages(records[1], records[0].system or "", "log", 1, "Move West")
    assert "--- 1. MARK a | b ---\nmarked a and b\n--- 2. LATER" in sent[-1]["content"]
    assert result.counts.operations["MARK"] == 3 and result.counts.writes == 0


CHECKING = """
    from automem.hooks import Again

    class Hooks:
        def check_action(self, step, action):
            said = {"go w": "Move West", "Move West": "move west", "Sleep": Again("monsters near"), "Do": "fly"}
            return said.get(action)
"""


def test_actions_are_repaired_or_doubted_once_and_the_model_decides(stage: Stage, tmp_path: Path, child: Child) -> None:
    loaded = child(CHECKING)

    def first(name: str, *replies: str) -> StepRecord:
        return stage.play(tmp_path / name, loaded, follow(plan=[f"<|ACTION|>{r}<|END|>" for r in replies]), 1)[1][0]

    repaired = first("repaired", "go w")
    assert (repaired.action, repaired.raw_action, repaired.invalid) == ("Move West", "go w", 0)
    assert [(e.kind, e.text) for e in repaired.hooks] == [("repaired", "Move West")]
    insisted = first("insisted", "Sleep", "Sleep")
    assert (insisted.action, len(insisted.plan), insisted.invalid) == ("Sleep", 2, 0)
    assert "monsters near" in insisted.plan[0].errors[0]
    convinced = first("convinced", "Sleep", "Move East")
    assert (convinced.action, [e.kind for e in convinced.hooks]) == ("Move East", ["again"])
    out_of_turns = first("last", "x", "x", "x", "x", "Sleep")
    assert (out_of_turns.action, out_of_turns.fallback, out_of_turns.invalid) == ("Sleep", False, 4)
    assert out_of_turns.hooks == ()
    silent = first("silent", "Sleep", "", "", "", "")
    assert (silent.action, silent.raw_action, silent.fallback) == ("Sleep", "Sleep", False)
    other_case = first("case", "move west")
    assert (other_case.action, other_case.hooks) == ("Move West", ())
    to_nowhere = first("nowhere", "Do")
    assert (to_nowhere.action, to_nowhere.hooks[0].kind) == ("Do", "error")


def test_what_goes_wrong_in_a_hook_is_noted_and_the_episode_goes_on(stage: Stage, tmp_path: Path, child: Child) -> None:
    loaded = child(
        """
        class Hooks:
            def observe(self, step):
                if step.number == 0:
                    return {"note": 3}
                if step.number == 1:
                    return {"other": "x", "note": "kept"}
                raise KeyError("gone")
            def maintain(self, step, memory):
                return [("READ", "goals.txt"), ("WRITE", "a/b", "x"), ("APPEND", "ok.txt", "x")]
            def check_action(self, step, action):
                return 7
        """,
        ["note"],
    )
    result, records = stage.play(tmp_path / "episode", loaded, follow(), 3)
    assert [op.ok for op in records[0].maintained] == [False, True]
    methods = [[event.method for event in record.hooks] for record in records]
    assert methods == [["observe", "maintain", "check_action"]] * 3
    assert "note=[kept]" in plan_prompt(records[1]) and "note=[]" in plan_prompt(records[2])
    assert "KeyError" in records[2].hooks[0].text and "hooks.py" in records[2].hooks[0].text
    assert result.counts.hook_errors == 9 and result.steps == 3


def test_hooks_that_hang_again_and_again_are_off_for_the_episode(tmp_path: Path, child: Child) -> None:
    loaded = child(
        """
        import re
        def observe(step):
            re.match("(a+)+$", "a" * 50 + "b")

        class Hooks:
            def observe(self, step):
                observe(step)
        """
    )
    with staged(call_seconds=1.0) as hurried:
        _, records = hurried.play(tmp_path / "episode", loaded, follow(), 6)
    kinds = [[event.kind for event in record.hooks] for record in records]
    assert kinds == [["lost"], ["lost"], ["off"], [], [], []]
    assert all("took longer than 1 s" in event.text for record in records for event in record.hooks)


def test_hooks_that_cannot_be_loaded_say_where(stage: Stage, tmp_path: Path, child: Child) -> None:
    loaded = child("import re\n\nre.compile('(')\n\nclass Hooks:\n    def observe(self, step):\n        return {}\n")
    _, records = stage.play(tmp_path / "episode", loaded, follow(), 1)
    assert isinstance(records[0].hooks[0], HookEvent) and "hooks.py:3" in records[0].hooks[0].text


def test_a_reset_that_fails_is_told_and_the_hooks_are_not_asked_unprepared(
    stage: Stage, tmp_path: Path, child: Child
) -> None:
    loaded = child(
        """
        class Hooks:
            def reset(self, game, task):
                raise ValueError("not today")
            def observe(self, step):
                return {"note": "asked"}
        """,
        ["note"],
    )
    _, records = stage.play(tmp_path / "episode", loaded, follow(), 4)
    assert [[event.kind for event in record.hooks] for record in records] == [["lost"], ["lost"], ["off"], []]
    assert "reset: ValueError: not today" in records[0].hooks[0].text
    assert all("note=[]" in plan_prompt(record) for record in records)


def test_what_hooks_ask_for_in_a_step_is_bounded(stage: Stage, tmp_path: Path, child: Child) -> None:
    loaded = child(
        """
        from automem.hooks import append

        class Hooks:
            def maintain(self, step, memory):
                return [append("many.txt", "x")] * (300 if step.number == 0 else 2)
        """
    )
    _, records = stage.play(tmp_path / "episode", loaded, follow(), 2)
    assert len(records[0].maintained) == 200 and "100 of 300" in records[0].hooks[0].text
    assert len(records[1].maintained) == 2 and not records[1].hooks


def test_what_a_call_may_read_is_bounded(stage: Stage, tmp_path: Path, child: Child) -> None:
    loaded = child(
        """
        from automem.hooks import write

        class Hooks:
            def maintain(self, step, memory):
                if step.number == 0:
                    return [write("big.txt", ("word " * 100 + "\\n") * 200)]
                for _ in range(200):
                    memory.read("big.txt")
        """
    )
    _, records = stage.play(tmp_path / "episode", loaded, follow(), 2)
    assert records[0].hooks == () and [op.ok for op in records[0].maintained] == [True]
    assert [event.kind for event in records[1].hooks] == ["error"] and "tail" in records[1].hooks[0].text


def test_a_prompt_that_does_not_fit_is_told_plainly(stage: Stage, tmp_path: Path, child: Child) -> None:
    loaded = child(
        """
        class Hooks:
            def observe(self, step):
                return {"note": "much " * 700}
        """,
        ["note"],
    )

    def small(asked: Sequence[Message]) -> str:
        if len(asked[1]["content"]) > 2_500:
            raise ContextTooLong("2500")
        return "<|DONE|><|END|>" if "DONE" in asked[1]["content"] else GO

    _, records = stage.play(tmp_path / "episode", loaded, Fixed(small), 2)
    assert [record.action for record in records] == ["Move West", "Move West"]
    assert all("did not fit" in record.warnings[0] for record in records)
    assert "much" not in plan_prompt(records[1])
