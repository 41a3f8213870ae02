"""A merged copy: a base model with an adapter worked into its weights, as a Hugging Face folder.

It is served without room for adapters, which saves reckoning the adapter at every token, and costs a copy of
the whole model on disk and in memory. Made once for a base model and an adapter, and kept in the user's cache.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from automem.cache import cache_dir
from automem.errors import UserError
from automem.models.made_once import made_once
from specialist.adapter import Adapter

MERGING = 1
"""Raised when merging itself changes, so that older copies are made again."""

_WEIGHTS = re.compile(r"\.(safetensors|bin|pt|pth|gguf|h5|msgpack|onnx)(\.index\.json)?$")

MERGER = (sys.executable, "-m", "specialist.serve.merged")


def merged_folder(adapter: Adapter) -> Path:
    """Where the merged copy of this adapter and its base model is or will be; it may not exist yet."""
    base, own = adapter.manifest.base.fingerprint[:16], adapter.identity[:16]
    return cache_dir() / "models" / f"merged-{base}-{own}-c{MERGING}"


def ensure_merged(base: Path, adapter: Adapter) -> Path:
    """The folder of the merged copy; made the first time.

    Args:
        base: Hugging Face folder of the adapter's base model; that it is that one is for the caller to check.
        adapter: the adapter.

    Raises `UserError` when it cannot be made: PEFT is missing, or the disk is full.
    """
    command = [*MERGER, str(base.resolve()), str(adapter.folder.resolve())]
    return made_once(
        merged_folder(adapter),
        command,
        lambda said: UserError(f"{adapter.folder}: working it into {base} failed:\n{said}"),
    )


def merge(base: Path, adapter: Path, target: Path) -> None:
    """Write `base` with `adapter` worked in, in the base model's own number format."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(base, dtype="auto")
    own = model.dtype
    if own in (torch.bfloat16, torch.float16) and model.num_parameters() < 3e9:
        model = model.float()  # rounded once, when it is written, instead of at each sum
    adapted = PeftModel.from_pretrained(model, adapter)
    adapted.merge_and_unload(safe_merge=True).to(own).save_pretrained(target)
    for file in base.iterdir():
        # As they are: a tokenizer that was read and written again may cut text differently.
        if file.is_file() and not (target / file.name).exists() and not _WEIGHTS.search(file.name):
            shutil.copyfile(file, target / file.name)


if __name__ == "__main__":
    merge(*map(Path, sys.argv[1:4]))
