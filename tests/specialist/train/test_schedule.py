"""Which examples are learned when."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from specialist.train.schedule import Shape, common, cost, schedule, shapes_of, together
from specialist.train.tokens import Tokenised

SYSTEMS = {"a": tuple(range(40)), "b": tuple(range(100, 150)), "c": ()}


def tokenised(system: str, own: int, target: int) -> Tokenised:
    return Tokenised((*SYSTEMS[system], *range(1000, 1000 + own)), tuple(range(2000, 2000 + target)), system)


examples = st.lists(
    st.builds(tokenised, st.sampled_from(sorted(SYSTEMS)), st.integers(1, 60), st.integers(2, 9)),
    min_size=1,
    max_size=40,
)
sizes = st.integers(1, 5)


@settings(deadline=None)
@given(examples, sizes, sizes, st.integers(1, 3), st.integers(0, 3))
def test_every_epoch_sees_every_example_once(given_: list[Tokenised], batch: int, slots: int, devices: int, seed: int):
    planned = schedule(given_, epochs=1, batch=batch, slots=slots, devices=devices, seed=seed)
    passes = [one for step in planned.steps for one in step]
    assert all(1 <= len(one) <= batch for one in passes)
    assert {len(step) for step in planned.steps} == {slots * devices}
    seen = Counter(i for one in passes for i in one)
    assert set(seen) == set(range(len(given_)))
    # The last step is filled up with passes of the next epoch.
    assert sum(seen.values()) - len(given_) < batch * slots * devices * 2
    assert sum(planned.examples) == sum(seen.values())
    assert sum(planned.tokens) == sum(len(given_[i]) * times for i, times in seen.items())


@settings(deadline=None)
@given(examples, sizes, st.integers(0, 3))
def test_passes_never_compute_more_than_examples_filled_up(given_: list[Tokenised], batch: int, seed: int):
    planned = schedule(given_, epochs=2, batch=batch, slots=2, devices=1, seed=seed)
    for step, computed in zip(planned.steps, planned.computed, strict=True):
        assert computed <= sum(len(one) * max(len(given_[i]) for i in one) for one in step)
    assert planned.largest <= max(planned.computed)


def test_an_epoch_is_in_another_order_than_the_one_before_and_a_seed_decides_both():
    given_ = [tokenised("a", own, 4) for own in range(1, 33)]
    first, again, other = (schedule(given_, epochs=2, batch=4, slots=1, devices=1, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert set(first.steps[:8]) != set(first.steps[8:])


@settings(deadline=None)
@given(examples, sizes)
def test_only_remainders_mix_system_messages(given_: list[Tokenised], batch: int):
    shapes = shapes_of(given_)
    passes = together(range(len(given_)), shapes, batch)
    assert sorted(i for one in passes for i in one) == list(range(len(given_)))
    mixed = [one for one in passes if len({shapes[i].family for i in one}) > 1]
    assert sum(map(len, mixed)) < batch * len(SYSTEMS)


def test_what_examples_share_counts_once():
    shapes = shapes_of([tokenised("a", 10, 5), tokenised("a", 20, 5), tokenised("b", 20, 5)])
    assert [shape.shared for shape in shapes] == [40 + 9, 40 + 9, 50 + 19]
    assert cost(shapes[:2]) == 49 + 2 * (65 - 49)
    assert cost(shapes[1:]) == 2 * 75
    assert cost(shapes[:1]) == 55
    assert shapes_of([tokenised("a", 10, 5)] * 2, sharing=False) == [Shape(0, 0, 55)] * 2


def test_the_token_before_a_target_is_never_shared():
    prompt = tuple(range(50))
    assert common([prompt, prompt]) == 49
    assert common([prompt, (*prompt, 7)]) == 49
    assert common([prompt[:20], prompt[:20]]) == 0, "so little is not worth a computation of its own"
    assert common([prompt, (*prompt[:35], 99, 98)]) == 35
