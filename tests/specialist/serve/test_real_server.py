"""Specialists on a real vLLM: loaded while it answers, themselves, and as PEFT computes them."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from automem.models import cores
from automem.models.protocol import Message, Sampling
from automem.models.served import Served
from automem.models.vllm_server import Attached
from specialist.adapter import Adapter
from specialist.serve import loading
from specialist.serve.bases import base
from specialist.serve.merged import ensure_merged
from specialist.serve.model import SpecialistModel, make_memory_model, make_pair
from tests.specialist.serve.logprobs import from_model, from_vllm, prompts, texts

pytestmark = pytest.mark.vllm

AGREES = 0.3
"""Nats by which log-probabilities may differ: the server computes in bfloat16, whose steps are 0.06 to 0.13 where
logits are large. 99 of 100 tokens must, the mean by far; what a model holds for impossible may be off further."""

SHARE = 0.99

BUSY = 8


def asking(number: int) -> list[Message]:
    """A prompt as long as a step's, new every time: nothing of it is cached."""
    return [{"role": "user", "content": f"Episode {number}. {texts()[0]}"}]


def test_a_busy_server_loads_an_adapter_within_two_seconds_and_no_request_fails(
    lora_server: Attached, random_adapters: list[Adapter]
) -> None:
    async def play() -> tuple[list[float], int]:
        model = make_pair("smollm2", None, Sampling(max_tokens=48)).memory
        await model.ready()
        answered, seconds, stop = 0, [], False

        async def episode(number: int) -> None:
            nonlocal answered
            while not stop:
                reply = await model.complete(asking(number))  # raises when a request fails
                assert reply.completion_tokens > 0
                answered += 1
                number += BUSY

        episodes = [asyncio.create_task(episode(number)) for number in range(BUSY)]
        while answered < BUSY:
            await asyncio.sleep(0.05)
            _ = [task.result() for task in episodes if task.done()]  # raises what went wrong
        for adapter in random_adapters:  # twice as many as there are slots
            began = time.monotonic()
            assert await asyncio.to_thread(loading.load, lora_server.api_base, adapter)
            seconds.append(time.monotonic() - began)
            before = answered
            while answered < before + 2:  # they go on, and the server is as busy at the next load
                await asyncio.sleep(0.05)
        stop = True
        await asyncio.gather(*episodes)
        await model.close()
        return seconds, answered

    for adapter in random_adapters:
        loading.unload(lora_server.api_base, adapter)
    seconds, answered = asyncio.run(play())
    print(f"loading into a busy server: {[round(s, 3) for s in seconds]} s, {answered} requests answered")
    assert max(seconds) < 2
    assert {adapter.served_name for adapter in random_adapters} <= loading.loaded(lora_server.api_base)


def test_base_and_specialists_answer_at_once_from_one_server(
    lora_server: Attached, random_adapters: list[Adapter]
) -> None:
    async def play() -> dict[str, str]:
        pairs = [make_pair("smollm2", adapter, Sampling(max_tokens=24)) for adapter in random_adapters[:3]]
        models = [pairs[0].gameplay, *(pair.memory for pair in pairs)]
        # Three adapters, two slots: one waits for its turn, none fails.
        replies = await asyncio.gather(*(model.complete(asking(0)) for model in models for _ in range(2)))
        for model in models:
            assert isinstance(model, (Served, SpecialistModel))
            assert model.server is not None and model.server.api_base == lora_server.api_base
            await model.close()
        return {reply.model: reply.text for reply in replies}

    said = asyncio.run(play())
    assert set(said) == {"smollm2", *(f"smollm2+specialist-{one.identity[:12]}" for one in random_adapters[:3])}
    # One may happen to say what the base model says; were adapters ignored, all would.
    assert len(set(said.values())) >= 3
    assert lora_server.alive()


def test_what_the_server_computes_is_what_peft_computes(
    lora_server: Attached, random_adapters: list[Adapter], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    one, folder = random_adapters[0], base("smollm2").folder()
    loading.load(lora_server.api_base, one)
    read = prompts(AutoTokenizer.from_pretrained(folder))
    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ours = {"smollm2": [from_vllm(lora_server.api_base, "smollm2", ids) for ids in read]}
    ours[one.served_name] = [from_vllm(lora_server.api_base, one.served_name, ids) for ids in read]

    def differences(model: torch.nn.Module, name: str) -> torch.Tensor:
        found = [torch.tensor(from_model(model, ids)) - torch.tensor(served) for ids, served in ours[name]]
        return torch.cat(found).abs()

    without = differences(plain, one.served_name)
    noise = differences(plain, "smollm2")
    adapted = differences(PeftModel.from_pretrained(plain, one.folder), one.served_name)
    monkeypatch.setenv("AUTOMEM_CACHE", str(tmp_path))
    copy = AutoModelForCausalLM.from_pretrained(ensure_merged(folder, one), dtype=torch.bfloat16)
    merged = differences(copy.float(), one.served_name)
    for name, found in (("base", noise), ("adapter", adapted), ("merged copy", merged), ("no adapter", without)):
        share = found.quantile(SHARE)
        print(f"{name}: mean {found.mean():.4f}, 99 % {share:.3f}, max {found.max():.3f} nats, {len(found)} tokens")
    assert without.quantile(SHARE) > 4 * AGREES, "the adapter must change much, or agreeing would prove nothing"
    for found in (adapted, merged):
        assert found.mean() < AGREES / 4
        assert found.quantile(SHARE) < AGREES
        # A merged copy is kept in bfloat16, which rounds by itself.
        assert found.mean() < 2 * noise.mean() + 0.02, "hardly further off than the base model without any adapter"
    if not cores.multiply_bfloat16():  # then the server computes in float32, and every token must agree
        assert adapted.max() < AGREES


def test_an_adapter_that_the_server_has_no_room_for_is_refused_by_it_in_words(
    lora_server: Attached, random_adapters: list[Adapter], tmp_path: Path
) -> None:
    from specialist.adapter import BaseModelId
    from tests.specialist.serve.adapters import a_real_adapter

    folder = base("smollm2").folder()
    own = BaseModelId(name="smollm2", fingerprint=base("smollm2").fingerprint())
    large = a_real_adapter(tmp_path / "large", folder, own, seed=9, rank=16)
    with pytest.raises(Exception, match=r"has rank 16, more than the server .* Start it with --max-lora-rank 16"):
        loading.load(lora_server.api_base, large)
    model = make_memory_model("smollm2", random_adapters[0], Sampling(max_tokens=4))
    assert asyncio.run(model.complete(asking(1))).text, "and goes on answering"
    asyncio.run(model.close())
