"""Hooks of a scaffold in real episodes: what they show, keep, change and get wrong, and that it can be resumed."""

from __future__ import annotations

import asyncio
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from automem import scaffold, trace
from automem.episode import MEMORY, STEPS, EpisodeJob, EpisodeResult, play
from automem.game_pool import GamePool
from automem.models.fixed import Fixed
from automem.models.protocol import ContextTooLong, Message, ModelUnavailable
from automem.records import HookEvent, StepRecord, messages
from automem.sandbox import Sandbox, SandboxConfig
from automem.scaffold import Scaffold

GO = "<|ACTION|>Move West<|END|>"
Child = Callable[..., Scaffold]
QUICK = SandboxConfig(call_seconds=0.5, losses=2)


@pytest.fixture
def child(tmp_path: Path) -> Child:
    """A Crafter scaffold with these hooks, texts and own operations."""

    def make(hooks: str, shows: Sequence[str] = (), own: str = "") -> Scaffold:
        folder = tmp_path / "scaffold"
        shutil.copytree(scaffold.find("crafter/v0"), folder)
        toml = (folder / "scaffold.toml").read_text().replace('"CREATE"]', f'"CREATE"]\n{own}')
        (folder / "scaffold.toml").write_text(f"{toml}\n[hooks]\nshows = {list(shows)}\n")
        for name in ("log.j2", "plan.j2"):
            with (folder / "prompts" / name).open("a") as file:
                file.writelines(f"\n{shown}=[{{{{ hooks.{shown} }}}}]" for shown in shows)
        (folder / "hooks.py").write_text(textwrap.dedent(hooks))
        return scaffold.load(str(folder))

    return make


def follow(plan: Sequence[str] = (), log: Sequence[str] = (), fail_at: int | None = None) -> Fixed:
    """Answers each phase with these replies in turn, then with GO and DONE. Fails at a call."""
    calls: Iterator[int] = iter(range(10**6))

    def rule(asked: Sequence[Message]) -> str:
        if next(calls) == fail_at:
            raise ModelUnavailable("gone")
        turn = len(asked) // 2 - 1
        if "# LOG" in asked[1]["content"]:
            return log[turn] if turn < len(log) else "<|DONE|><|END|>"
        return plan[turn] if turn < len(plan) else GO

    return Fixed(rule)


def run(folder: Path, loaded: Scaffold, model: Fixed, steps: int = 8) -> tuple[EpisodeResult, list[StepRecord]]:
    async def once() -> EpisodeResult:
        pool, sandbox = GamePool(1), Sandbox(QUICK)
        try:
            return await play(
                EpisodeJob(folder, "Crafter", 5, steps, loaded.folder), loaded, model, pool, None, sandbox
            )
        finally:
            pool.close()
            await sandbox.close()

    result = asyncio.run(asyncio.wait_for(once(), 120))
    found, damage = trace.read(folder / STEPS)
    assert damage is None
    return result, found


def plan_prompt(record: StepRecord) -> str:
    return record.plan[0].prompt.before + record.plan[0].prompt.after


def test_texts_stand_in_both_phases_and_state_lasts_for_the_episode(tmp_path: Path, child: Child) -> None:
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
    _, records = run(tmp_path / "episode", loaded, follow(), 3)
    assert "note=[crafter Crafter 0None]\nunsaid=[]" in plan_prompt(records[0])
    seen = "note=[crafter Crafter 0None 1Move West 2Move West]"
    assert seen in plan_prompt(records[2]) and seen in records[2].log[0].prompt.after
    assert all(record.hooks == () for record in records)


def test_maintain_keeps_a_file_current_and_reads_what_the_model_wrote(tmp_path: Path, child: Child) -> None:
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
    result, records = run(tmp_path / "episode", loaded, follow(log=["<|APPEND|>map_notes.txt|a step<|END|>"]), 3)
    kept = (tmp_path / "episode" / MEMORY / "state.txt").read_text()
    assert kept == "2 ['a step'] ['goals.txt', 'map_notes.txt', 'state.txt']['a step', 'a step']\n"
    assert [(op.name, op.by, op.ok) for op in records[1].maintained] == [("WRITE", "maintain", True)]
    assert result.counts.hook_ops == 3 and result.counts.writes == 2 and result.counts.duplicate_writes == 1


OWN = """
[[ops.own]]
name = "MARK"
args = "word|word"
meaning = "remember words"

[[ops.own]]
name = "LATER"
meaning = "in LOG only"
phase = "log"
"""

MARKING = """
    from automem.hooks import append

    class Hooks:
        def op_MARK(self, args, memory):
            return f"marked {' and '.join(args)}", [append("marks.txt", args[0])]
        def op_LATER(self, args, memory):
            return "later"
"""


def test_an_own_operation_answers_and_writes_in_log_only(tmp_path: Path, child: Child) -> None:
    loaded = child(MARKING, own=OWN)
    mark = "<|MARK|>a|b<|END|>"
    model = follow(plan=[f"{mark}<|LATER|><|END|>"], log=[f"{mark}<|LATER|><|END|><|TAIL|>marks.txt|1<|END|>"])
    result, records = run(tmp_path / "episode", loaded, model, 2)
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


def test_actions_are_repaired_or_doubted_once_and_the_model_decides(tmp_path: Path, child: Child) -> None:
    loaded = child(CHECKING)

    def first(name: str, *replies: str) -> StepRecord:
        return run(tmp_path / name, loaded, follow(plan=[f"<|ACTION|>{r}<|END|>" for r in replies]), 1)[1][0]

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


def test_what_goes_wrong_in_a_hook_is_noted_and_the_episode_goes_on(tmp_path: Path, child: Child) -> None:
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
    result, records = run(tmp_path / "episode", loaded, follow(), 3)
    assert [op.ok for op in records[0].maintained] == [False, True]
    methods = [[event.method for event in record.hooks] for record in records]
    assert methods == [["observe", "maintain", "check_action"]] * 3
    assert "note=[kept]" in plan_prompt(records[1]) and "note=[]" in plan_prompt(records[2])
    assert "KeyError" in records[2].hooks[0].text and "hooks.py" in records[2].hooks[0].text
    assert result.counts.hook_errors == 9 and result.steps == 3


LOSING = """
    class Hooks:
        def reset(self, game, task):
            self.count = 0
        def observe(self, step):
            self.count += 1
            while step.number == 3:
                pass
            return {"note": str(self.count)}
        def maintain(self, step, memory):
            self.count += 100
            return [("APPEND", "count.txt", str(self.count))]
        def check_action(self, step, action):
            self.count += 10_000
"""


def test_a_resumed_episode_has_the_hooks_state_also_after_a_lost_process(
    tmp_path: Path, child: Callable[..., Scaffold]
):
    loaded = child(LOSING, ["note"])
    whole, records = run(tmp_path / "whole", loaded, follow(log=["<|TAIL|>count.txt|2<|END|>"]))
    assert [(e.method, e.kind) for record in records for e in record.hooks] == [("observe", "lost")]
    # Three steps before the loss; step 3 counts anew from its maintain on.
    assert (tmp_path / "whole" / MEMORY / "count.txt").read_text().split() == [
        "101", "10202", "20303", "100", "10201", "20302", "30403", "40504",
    ]  # fmt: skip
    for fail_at in (2, 8, 13):
        folder = tmp_path / f"broken-{fail_at}"
        with pytest.raises(ModelUnavailable):
            run(folder, loaded, follow(log=["<|TAIL|>count.txt|2<|END|>"], fail_at=fail_at))
        again, found = run(folder, loaded, follow(log=["<|TAIL|>count.txt|2<|END|>"]))
        assert found == records
        assert again == whole


def test_a_resumed_episode_has_own_operations_and_checks_as_they_were(tmp_path: Path, child: Child) -> None:
    loaded = child(
        """
        from automem.hooks import Again, append

        class Hooks:
            marks = 0
            def op_MARK(self, args, memory):
                self.marks += 1
                return str(self.marks), [append("marks.txt", str(self.marks))]
            def op_LATER(self, args, memory):
                raise ValueError("no")
            def check_action(self, step, action):
                return Again(f"mark {self.marks}") if self.marks % 3 else "Move North"
        """,
        own=OWN,
    )
    own = ["<|LATER|><|END|><|MARK|>a|b<|END|><|LATER|><|END|><|MARK|>c|d<|END|>"]
    whole, records = run(tmp_path / "whole", loaded, follow(own, own))
    with pytest.raises(ModelUnavailable):
        run(tmp_path / "broken", loaded, follow(own, own, fail_at=17))
    again, found = run(tmp_path / "broken", loaded, follow(own, own))
    assert found == records and again == whole
    assert {e.kind for record in records for e in record.hooks} == {"again", "repaired", "error"}


def test_hooks_that_are_lost_again_and_again_are_off_for_the_episode(tmp_path: Path, child: Child) -> None:
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
    _, records = run(tmp_path / "episode", loaded, follow(), 6)
    kinds = [[event.kind for event in record.hooks] for record in records]
    assert kinds == [["lost"], ["lost"], ["off"], [], [], []]


def test_hooks_that_cannot_be_loaded_say_where(tmp_path: Path, child: Child) -> None:
    loaded = child("import re\n\nre.compile('(')\n\nclass Hooks:\n    def observe(self, step):\n        return {}\n")
    _, records = run(tmp_path / "episode", loaded, follow(), 1)
    assert isinstance(records[0].hooks[0], HookEvent) and "hooks.py:3" in records[0].hooks[0].text


def test_a_reset_that_fails_is_told_and_the_hooks_are_not_asked_unprepared(tmp_path: Path, child: Child) -> None:
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
    _, records = run(tmp_path / "episode", loaded, follow(), 4)
    assert [[event.kind for event in record.hooks] for record in records] == [["lost"], ["lost"], ["off"], []]
    assert "reset: ValueError: not today" in records[0].hooks[0].text
    assert all("note=[]" in plan_prompt(record) for record in records)


def test_what_hooks_ask_for_in_a_step_is_bounded(tmp_path: Path, child: Child) -> None:
    loaded = child(
        """
        from automem.hooks import append

        class Hooks:
            def maintain(self, step, memory):
                return [append("many.txt", "x")] * (300 if step.number == 0 else 2)
        """
    )
    _, records = run(tmp_path / "episode", loaded, follow(), 2)
    assert len(records[0].maintained) == 200 and "100 of 300" in records[0].hooks[0].text
    assert len(records[1].maintained) == 2 and not records[1].hooks


def test_what_a_call_may_read_is_bounded(tmp_path: Path, child: Child) -> None:
    loaded = child(
        """
        from automem.hooks import write

        class Hooks:
            def maintain(self, step, memory):
                if step.number == 0:
                    return [write("big.txt", "line\\n" * 20_000)]
                for _ in range(200):
                    memory.read("big.txt")
        """
    )
    _, records = run(tmp_path / "episode", loaded, follow(), 2)
    assert [event.kind for event in records[1].hooks] == ["error"] and "tail" in records[1].hooks[0].text


def test_a_prompt_that_does_not_fit_is_told_plainly(tmp_path: Path, child: Child) -> None:
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

    _, records = run(tmp_path / "episode", loaded, Fixed(small), 2)
    assert [record.action for record in records] == ["Move West", "Move West"]
    assert all("did not fit" in record.warnings[0] for record in records)
    assert "much" not in plan_prompt(records[1])


def test_hooks_that_cannot_be_rebuilt_are_told_once_and_go_on_afresh(tmp_path: Path, child: Child) -> None:
    """What a process met when it was played again is no part of the episode; that its state is gone, is."""
    loaded = child(
        """
        class Hooks:
            def reset(self, game, task):
                self.count = 0
            def observe(self, step):
                self.count += 1
                return {"note": str(self.count)}
        """,
        ["note"],
    )
    with pytest.raises(ModelUnavailable):
        run(tmp_path / "episode", loaded, follow(fail_at=8), 8)
    forgetful = replace(loaded, hooks=replace(loaded.hooks, text=AGAIN_ASTRAY))
    _, records = run(tmp_path / "episode", forgetful, follow(), 8)
    first_new = next(record for record in records if record.hooks)
    assert [(e.call, e.method, e.kind) for e in first_new.hooks] == [(-1, "reset", "lost")]
    assert "note=[1]" in plan_prompt(first_new)
    assert [len(record.hooks) for record in records].count(1) == 1


AGAIN_ASTRAY = """
class Hooks:
    def reset(self, game, task):
        self.count = 0
    def observe(self, step):
        while step.number == 2:
            pass
        self.count += 1
        return {"note": str(self.count)}
"""
