"""Adapters to serve: files of the right shape, and real ones that PEFT wrote for a base model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specialist import adapter
from specialist.adapter import Adapter, BaseModelId, Manifest
from specialist.recipe import LoraRecipe, Recipe

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")


def an_adapter(
    folder: Path,
    *,
    rank: int = 8,
    modules: tuple[str, ...] = ATTENTION,
    weights: bytes = b"weights",
    fingerprint: str = "f" * 64,
    **config: Any,
) -> Adapter:
    """A folder that `adapter.load` takes, with weights that nobody reads."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"peft_type": "LORA", "r": rank, "lora_alpha": 2 * rank, "target_modules": list(modules), **config}
    (folder / adapter.CONFIG).write_text(json.dumps(settings))
    (folder / adapter.WEIGHTS).write_bytes(weights)
    return _with_manifest(folder, rank, modules, BaseModelId(name="smollm2", fingerprint=fingerprint))


def a_real_adapter(folder: Path, base: Path, base_id: BaseModelId, *, seed: int, rank: int = 8) -> Adapter:
    """PEFT's files for the model in `base`; its weights are random, and large enough to change what it says."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.bfloat16)
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=list(ATTENTION), task_type="CAUSAL_LM")
    adapted = get_peft_model(model, config)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:  # PEFT begins with zeros, which change nothing
                parameter.normal_(std=0.1)
    adapted.save_pretrained(folder)
    return _with_manifest(folder, rank, ATTENTION, base_id)


def _with_manifest(folder: Path, rank: int, modules: tuple[str, ...], base: BaseModelId) -> Adapter:
    manifest = Manifest(
        identity=adapter.identity_of(folder),
        base=base,
        recipe=Recipe(lora=LoraRecipe(rank=rank, targets=modules)),
        data="d" * 64,
        scaffold="5" * 64,
        game="crafter",
        consult_turns=1,
        created="2026-01-01T00:00:00+00:00",
        versions={},
        losses={},
    )
    (folder / adapter.MANIFEST).write_text(manifest.model_dump_json())
    return adapter.load(folder)
