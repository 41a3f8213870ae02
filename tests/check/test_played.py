"""What the record of an episode shows, where no scaffold can bring it about any more: the agent already refuses it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from automem import scaffold
from automem.check import smoke
from automem.check.played import Played, findings_in, first_difference
from automem.sandbox import SandboxConfig
from automem.scaffold import Scaffold


@pytest.fixture(scope="module")
def loaded() -> Scaffold:
    return scaffold.load("nethack/v0")


@pytest.fixture(scope="module")
def both(loaded: Scaffold, tmp_path_factory: pytest.TempPathFactory) -> tuple[Played, Played]:
    """The same episode, played twice."""
    place = tmp_path_factory.mktemp("played")
    first, second = asyncio.run(smoke._twice(loaded, "NetHackChallenge-v0", SandboxConfig(), place))
    assert second is not None
    return first, second


def test_the_same_episode_is_the_same_and_has_nothing_wrong(loaded: Scaffold, both: tuple[Played, Played]) -> None:
    assert first_difference(*both) is None
    assert not list(findings_in(both[0], loaded))


def test_memory_that_changed_between_plan_and_the_next_observation_is_told(
    loaded: Scaffold, both: tuple[Played, Played]
) -> None:
    memories = list(both[0].memories)
    memories[4] = {**memories[4], "goals.txt": "written in PLAN"}
    (finding,) = findings_in(replace(both[0], memories=tuple(memories)), loaded)
    assert (finding.severity, finding.code) == ("error", "write-before-outcome")
    assert "step 4" in finding.message


def test_a_log_before_the_first_action_is_told(loaded: Scaffold, both: tuple[Played, Played]) -> None:
    first, second, *rest = both[0].records
    early = replace(both[0], records=(replace(first, log=second.log), replace(second, log=()), *rest))
    assert {finding.code for finding in findings_in(early, loaded)} == {"write-before-outcome"}


def test_where_two_episodes_part_is_told(both: tuple[Played, Played]) -> None:
    records = list(both[1].records)
    turn = records[7].plan[0]
    other = replace(turn, prompt=replace(turn.prompt, before=f"hint 2{turn.prompt.before}"))
    records[7] = replace(records[7], plan=(other, *records[7].plan[1:]))
    told = first_difference(both[0], replace(both[1], records=tuple(records)))
    assert told is not None and told.startswith("step 7, prompt of PLAN: ") and "hint 2" in told
    assert first_difference(both[0], replace(both[1], records=both[1].records[:-1])) == "one of them ended earlier"
