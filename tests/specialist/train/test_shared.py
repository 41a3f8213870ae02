"""The loss: of targets only, and the same however examples are put together."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from specialist.train.tokens import Tokenised


@pytest.fixture
def model(tiny: Path) -> Any:
    """The tiny model in float64, with an adapter that changes something."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    from specialist.train.shared import add_prefix

    torch.manual_seed(1)
    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(tiny), config)
    add_prefix(model.get_base_model())
    return model.double()


@pytest.fixture
def examples() -> list[Tokenised]:
    """Three of one beginning, of different lengths."""
    rng = random.Random(0)

    def draw(count: int) -> tuple[int, ...]:
        return tuple(rng.randrange(3, 250) for _ in range(count))

    begins = draw(60)
    return [Tokenised(begins + draw(own), draw(target)) for own, target in ((20, 8), (33, 5), (12, 12))]


def loss_and_gradient(model: Any, passes: list[list[Tokenised]], sharing: bool) -> tuple[float, Any]:
    import torch

    from specialist.train.batch import tensors
    from specialist.train.shared import target_loss

    model.zero_grad()
    total = 0.0
    for one in passes:
        losses, counts = target_loss(model, tensors(one, padding=2, sharing=sharing))
        assert counts.tolist() == [len(example.target) for example in one]
        loss = losses.sum()
        loss.backward()
        total += float(loss.detach())
    return total, torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.requires_grad])


@pytest.mark.parametrize("sharing", [False, True])
def test_a_pass_learns_what_its_examples_teach_one_by_one(model: Any, examples: list[Tokenised], sharing: bool):
    import torch

    apart, apart_gradient = loss_and_gradient(model, [[example] for example in examples], sharing=False)
    joined, joined_gradient = loss_and_gradient(model, [examples], sharing)
    assert joined == pytest.approx(apart, rel=1e-5)
    assert apart_gradient.norm() > 1
    torch.testing.assert_close(joined_gradient, apart_gradient, rtol=1e-4, atol=1e-5)


def test_the_loss_is_that_of_the_target_and_of_nothing_else(model: Any, examples: list[Tokenised]):
    import torch

    example = examples[0]
    ids = torch.tensor([example.prompt + example.target])
    with torch.no_grad():
        told = model(input_ids=ids).logits.log_softmax(-1)[0]
    first = len(example.prompt)
    expected = -sum(float(told[first + at - 1, token]) for at, token in enumerate(example.target))
    loss, _ = loss_and_gradient(model, [[example]], sharing=True)
    assert loss == pytest.approx(expected, rel=1e-5)


def test_what_is_shared_is_computed_once(model: Any, examples: list[Tokenised]):
    from specialist.train.batch import tensors

    inputs = tensors(examples, padding=2, sharing=True)
    assert inputs["prefix_ids"].shape == (1, 60)
    assert inputs["input_ids"].shape == (3, 38)
    assert "prefix_ids" not in tensors(examples[:1], padding=2, sharing=True)
