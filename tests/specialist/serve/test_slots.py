"""What room a server needs, and what it is told that it cannot serve."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from automem.errors import UserError
from automem.models.vllm_server import LoraSlots
from specialist.recipe import GROUPS, LoraRecipe
from specialist.serve.slots import RANKS, check, other_base, problems, room_for, slots_for
from tests.specialist.serve.adapters import an_adapter

QKV = ("q_proj", "k_proj", "v_proj")


@pytest.mark.parametrize(
    ("recipes", "expected"),
    [
        ([], LoraSlots()),
        ([LoraRecipe(rank=8, targets="attention")], LoraSlots(2, 8, (*QKV, "o_proj"))),
        ([LoraRecipe(rank=9, targets="qv")], LoraSlots(2, 16, QKV)),
        ([LoraRecipe(rank=1, targets=("up_proj",))], LoraSlots(2, 1, ("gate_proj", "up_proj"))),
        ([LoraRecipe(rank=256, targets="all")], LoraSlots(2, 256, GROUPS["all"])),
        (
            [LoraRecipe(rank=4, targets="qv"), LoraRecipe(rank=33, targets="mlp"), LoraRecipe(rank=2, targets="qv")],
            LoraSlots(3, 64, (*QKV, "gate_proj", "up_proj", "down_proj")),
        ),
        # A model that has the fused module itself.
        ([LoraRecipe(rank=8, targets=("qkv_proj",))], LoraSlots(2, 8, (*QKV, "qkv_proj"))),
    ],
)
def test_the_least_room_that_holds_them(recipes: list[LoraRecipe], expected: LoraSlots) -> None:
    slots = slots_for(recipes)
    assert slots == expected
    assert not [text for recipe in recipes for text in problems(recipe, slots)]


def test_more_room_can_be_asked_for_and_never_less_than_is_needed() -> None:
    recipe = LoraRecipe(rank=16)
    assert slots_for([recipe], max_loras=4, max_rank=100) == LoraSlots(4, 128, (*QKV, "o_proj"))
    assert slots_for([recipe], max_rank=8).max_rank == 16


@given(st.lists(st.builds(LoraRecipe, rank=st.integers(1, 512), targets=st.sampled_from(tuple(GROUPS))), max_size=4))
def test_room_for_several_is_room_for_each(recipes: list[LoraRecipe]) -> None:
    together = slots_for(recipes)
    assert together.max_rank in RANKS
    for recipe in recipes:
        assert problems(recipe, together) == []
        assert together.hold(slots_for([recipe], max_loras=1))


def test_a_rank_that_no_vllm_serves() -> None:
    assert room_for(512) == 512
    with pytest.raises(UserError, match=r"rank 513 is above 512.*--merged"):
        slots_for([LoraRecipe(rank=513)])


@pytest.mark.parametrize(
    ("recipe", "slots", "told"),
    [
        (LoraRecipe(rank=16), LoraSlots(), ["rank 16 is above the server's maximum, 8"]),
        (
            LoraRecipe(rank=8, targets="all"),
            LoraSlots(),
            ["it changes down_proj, gate_proj, up_proj, for which the server has no room"],
        ),
        (LoraRecipe(rank=8, targets="all"), LoraSlots(targets=()), []),
        (LoraRecipe(rank=8, targets="attention"), LoraSlots(targets=("qkv_proj", "o_proj")), []),
        (LoraRecipe(rank=8, targets="qv"), LoraSlots(targets=("o_proj",)), ["it changes k_proj, q_proj, v_proj,"]),
    ],
)
def test_what_a_server_cannot_serve(recipe: LoraRecipe, slots: LoraSlots, told: list[str]) -> None:
    found = problems(recipe, slots)
    assert len(found) == len(told)
    assert all(text.startswith(start) for text, start in zip(found, told, strict=True))


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"use_dora": True}, "DoRA"),
        ({"modules_to_save": ["lm_head"]}, "trained whole"),
        ({"bias": "all"}, "biases"),
        ({"peft_type": "IA3"}, "IA3, not LoRA"),
    ],
)
def test_other_kinds_of_adapters_are_named(tmp_path: Path, config: dict[str, object], told: str) -> None:
    found = problems(an_adapter(tmp_path / "a", **config), LoraSlots())
    assert len(found) == 1 and told in found[0]
    assert problems(an_adapter(tmp_path / "plain"), LoraSlots()) == []


def test_an_adapter_of_another_base_model_is_refused_with_everything_else(tmp_path: Path) -> None:
    one = an_adapter(tmp_path / "a", rank=16, fingerprint="a" * 64)
    assert other_base(one, "smollm2", "a" * 64) is None
    with pytest.raises(UserError, match=r"(?s)a cannot be served with mine: rank 16 .*; it belongs to .* smollm2, "):
        check(one, LoraSlots(), "mine", "b" * 64)
    check(one, None, "smollm2", "a" * 64)
    check(one, LoraSlots(max_rank=16), "smollm2", None)
