"""The recipe's quotas, over candidates that are made up: scores, places and lessons."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from automem.records import Phase
from specialist.candidate import Place
from specialist.recipe import DataRecipe
from specialist.select.judging import Judged
from specialist.select.quotas import ENOUGH, FULL_EPISODE, TWIN, Fate, Waiting, choose
from specialist.select.similar import Lesson


def waiting(seed: int, step: int, phase: Phase, score: float, teaches: str = "") -> Waiting:
    place = Place("run", "Crafter", seed, step, phase)
    lesson = Lesson(teaches or f"{seed}-{step}-{phase}", "seen")
    return Waiting(place, Judged(step, phase, score, True, (), "fine", lesson))


def recipe(**fields: float) -> DataRecipe:
    return DataRecipe.model_validate({"minimum": 1, "similar": 1, **fields})


def accepted(fates: dict[Place, Fate]) -> list[Place]:
    return [place for place, fate in fates.items() if fate.accepted]


BOTH: tuple[Phase, ...] = ("log", "plan")
MANY = [waiting(seed, step, phase, float(step % 4)) for seed in range(5) for step in range(50) for phase in BOTH]


@pytest.mark.parametrize(("share", "logs"), [(0.5, 50), (0.0, 0), (1.0, 100), (0.33, 33)])
def test_log_and_plan_are_shared_as_the_recipe_says(share: float, logs: int) -> None:
    chosen = accepted(choose(MANY, recipe(examples=100, log_share=share)))
    assert Counter(place.phase for place in chosen) == Counter({"log": logs, "plan": 100 - logs})


def test_an_episode_gives_its_share_and_no_more_also_of_both_phases() -> None:
    fates = choose(MANY, recipe(examples=400, per_episode=20))
    chosen = accepted(fates)
    assert set(Counter(place.seed for place in chosen).values()) == {20}
    assert Counter(place.phase for place in chosen) == {"log": 50, "plan": 50}
    full = [fate for fate in fates.values() if fate.why == FULL_EPISODE]
    assert full and {fate.reason for fate in full} == {"episode has its 20"}


def test_the_best_come_first_and_equals_are_spread_over_episodes_and_steps() -> None:
    fates = choose(MANY, recipe(examples=60))
    chosen = accepted(fates)
    assert {place.step % 4 for place in chosen} == {3}
    assert set(Counter((place.seed, place.phase) for place in chosen).values()) == {6}
    assert max(place.step for place in chosen) > 25 > min(place.step for place in chosen)
    assert {fate.reason for fate in fates.values() if fate.why == ENOUGH} == {
        "enough LOG examples", "enough PLAN examples",
    }  # fmt: skip


def test_the_order_in_which_they_are_given_does_not_matter() -> None:
    mixed = MANY[:]
    random.Random(1).shuffle(mixed)
    asked = recipe(examples=70, per_episode=15, log_share=0.3)
    assert choose(mixed, asked) == choose(MANY, asked)


def test_of_near_duplicates_the_best_is_kept_and_named() -> None:
    twins = [waiting(1, step, "log", float(step), "the same") for step in range(3)]
    other = waiting(2, 9, "log", 0.5, "another")
    plan = waiting(1, 2, "plan", 1.0, "the same")
    fates = choose([*twins, other, plan], recipe(examples=10))
    assert accepted(fates) == [p for p in fates if p in (twins[2].place, other.place, plan.place)]
    assert fates[twins[0].place] == Fate(TWIN, "near-duplicate of run/Crafter/seed-1/2/log")


def test_what_a_phase_lacks_leaves_the_other_its_quota() -> None:
    few = [w for w in MANY if w.place.phase == "plan" or w.place.step < 2]
    chosen = accepted(choose(few, recipe(examples=100)))
    assert Counter(place.phase for place in chosen) == {"log": 10, "plan": 50}


candidates = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 9), st.sampled_from(BOTH), st.integers(0, 3), st.sampled_from("abcdef")
    ),
    unique_by=lambda one: one[:3],
    max_size=40,
)


@settings(deadline=None)
@given(candidates, st.integers(1, 20), st.integers(1, 6), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_quotas_hold_and_nothing_is_left_out_without_need(found, examples: int, most: int, share: float) -> None:
    given = [waiting(seed, step, phase, float(score), word) for seed, step, phase, score, word in found]
    asked = recipe(examples=examples, per_episode=most, log_share=share)
    fates = choose(given, asked)
    chosen = accepted(fates)
    phases, episodes = Counter(p.phase for p in chosen), Counter(p.episode for p in chosen)
    wanted = {"log": round(examples * share), "plan": examples - round(examples * share)}
    lessons = Counter((w.place.phase, w.judged.lesson) for w in given if w.place in chosen)
    assert fates.keys() == {w.place for w in given}
    assert all(phases[phase] <= wanted[phase] for phase in BOTH)
    assert all(number <= most for number in episodes.values())
    assert all(number == 1 for number in lessons.values())
    for one in given:
        if one.place not in chosen:
            full = phases[one.place.phase] == wanted[one.place.phase] or episodes[one.place.episode] == most
            assert full or lessons[one.place.phase, one.judged.lesson]


def test_what_is_chosen_does_not_depend_on_what_the_run_is_called() -> None:
    renamed = [replace(one, place=replace(one.place, run="another/name")) for one in MANY]
    mine, theirs = (accepted(choose(given, recipe(examples=60))) for given in (MANY, renamed))
    assert [place.within for place in mine] == [place.within for place in theirs]
