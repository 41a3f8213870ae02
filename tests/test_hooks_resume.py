"""Hooks of an episode that goes on after a break: their state is what it would have been without one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from automem.episode import MEMORY
from automem.models.protocol import ModelUnavailable
from tests.hook_episodes import OWN, Child, Stage, follow, plan_prompt, staged, write_child


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with staged() as stage:
        yield stage


@pytest.fixture
def child(tmp_path: Path) -> Child:
    """Writes a scaffold with the hooks that it is given."""
    return partial(write_child, tmp_path / "scaffold")


LOSING = """
    import collections

    class Hooks:
        def reset(self, game, task):
            self.count = 0
        def observe(self, step):
            self.count += 1
            if step.number == 3:
                collections._sys.modules["os"]._exit(0)
            return {"note": str(self.count)}
        def maintain(self, step, memory):
            self.count += 100
            return [("APPEND", "count.txt", str(self.count))]
        def check_action(self, step, action):
            self.count += 10_000
"""


def test_a_resumed_episode_has_the_hooks_state_also_after_a_lost_process(
    stage: Stage, tmp_path: Path, child: Child
) -> None:
    loaded = child(LOSING, ["note"])
    whole, records = stage.play(tmp_path / "whole", loaded, follow(log=["<|TAIL|>count.txt|2<|END|>"]))
    assert [(e.method, e.kind) for record in records for e in record.hooks] == [("observe", "lost")]
    # Three steps before the loss; step 3 counts anew from its maintain on.
    assert (tmp_path / "whole" / MEMORY / "count.txt").read_text().split() == [
        "101", "10202", "20303", "100", "10201", "20302", "30403", "40504",
    ]  # fmt: skip
    for fail_at in (2, 8, 13):
        folder = tmp_path / f"broken-{fail_at}"
        with pytest.raises(ModelUnavailable):
            stage.play(folder, loaded, follow(log=["<|TAIL|>count.txt|2<|END|>"], fail_at=fail_at))
        again, found = stage.play(folder, loaded, follow(log=["<|TAIL|>count.txt|2<|END|>"]))
        assert found == records
        assert again == whole


def test_a_resumed_episode_has_own_operations_and_checks_as_they_were(
    stage: Stage, tmp_path: Path, child: Child
) -> None:
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
    whole, records = stage.play(tmp_path / "whole", loaded, follow(own, own))
    with pytest.raises(ModelUnavailable):
        stage.play(tmp_path / "broken", loaded, follow(own, own, fail_at=17))
    again, found = stage.play(tmp_path / "broken", loaded, follow(own, own))
    assert found == records and again == whole
    assert {e.kind for record in records for e in record.hooks} == {"again", "repaired", "error"}


def test_hooks_that_cannot_be_rebuilt_are_told_once_and_go_on_afresh(
    stage: Stage, tmp_path: Path, child: Child
) -> None:
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
        stage.play(tmp_path / "episode", loaded, follow(fail_at=8), 8)
    forgetful = replace(loaded, hooks=replace(loaded.hooks, text=AGAIN_ASTRAY))
    _, records = stage.play(tmp_path / "episode", forgetful, follow(), 8)
    first_new = next(record for record in records if record.hooks)
    assert [(e.call, e.method, e.kind) for e in first_new.hooks] == [(-1, "reset", "lost")]
    assert "note=[1]" in plan_prompt(first_new)
    assert [len(record.hooks) for record in records].count(1) == 1


AGAIN_ASTRAY = """
import collections

class Hooks:
    def reset(self, game, task):
        self.count = 0
    def observe(self, step):
        if step.number == 2:
            collections._sys.modules["os"]._exit(0)
        self.count += 1
        return {"note": str(self.count)}
"""
