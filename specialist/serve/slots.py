"""What room for adapters a server needs, and what a server cannot serve: said before anything starts.

Rank and modules decide; a recipe has them before its adapter exists.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from automem.errors import UserError
from automem.models.vllm_server import LoraSlots
from specialist.adapter import CONFIG, Adapter
from specialist.recipe import GROUPS

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The maximum ranks that vLLM takes. An adapter of a lower rank is filled up with zeros, and costs as much."""

TOGETHER = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
"""What vLLM computes in one multiplication, if the model has these: room for one is room for all of them."""

_ORDER = GROUPS["all"]


class Adapted(Protocol):
    """What decides the room that an adapter needs: `specialist.adapter.Adapter` and `specialist.recipe.LoraRecipe`."""

    @property
    def rank(self) -> int:
        """Rank of its matrices."""
        ...

    @property
    def modules(self) -> tuple[str, ...]:
        """Names of the modules that it changes, as PEFT has them."""
        ...


def slots_for(adapted: Iterable[Adapted], *, max_loras: int | None = None, max_rank: int | None = None) -> LoraSlots:
    """The least room that holds all of these; what `LoraSlots` has by itself where there are none.

    Args:
        adapted: adapters that exist, and recipes of those that will.
        max_loras: adapters that requests of one moment may use; default as many as are given, at least 2,
            so that the next one can be loaded while the last one is still asked.
        max_rank: at least room for this rank.

    Raises:
        UserError: no vLLM serves an adapter of such a rank.
    """
    needed = list(adapted)
    rank = max([max_rank or 0, *(one.rank for one in needed)]) or LoraSlots().max_rank
    names = {name for one in needed for name in one.modules} or set(LoraSlots().targets)
    return LoraSlots(max_loras or max(len(needed), LoraSlots().max_loras), room_for(rank), _targets(names))


def room_for(rank: int) -> int:
    """The least maximum rank that holds adapters of this rank. Raises `UserError` when vLLM has none."""
    for most in RANKS:
        if rank <= most:
            return most
    raise UserError(
        f"rank {rank} is above {RANKS[-1]}, the highest that vLLM can serve beside its base model."
        " Train with a lower rank, or serve a merged copy (--merged)."
    )


def problems(adapted: Adapted, slots: LoraSlots) -> list[str]:
    """Why a server with these slots cannot serve this adapter, or what a recipe makes; empty when it can.

    Without the modules of an adapter vLLM would not complain: it would answer as if they had not been trained.
    """
    found = []
    if adapted.rank > slots.max_rank:
        found.append(f"rank {adapted.rank} is above the server's maximum, {slots.max_rank}")
    missing = sorted(set(_targets(adapted.modules)) - set(_targets(slots.targets)))
    if missing and slots.targets:
        found.append(f"it changes {', '.join(missing)}, for which the server has no room")
    if isinstance(adapted, Adapter):
        found += _unserved(adapted.folder)
    return found


def other_base(adapter: Adapter, base: str, fingerprint: str) -> str | None:
    """What to tell a person when the adapter was trained on another base model than this; None when it was not."""
    trained = adapter.manifest.base
    if trained.fingerprint == fingerprint:
        return None
    named = "" if trained.name == base else f" {trained.name},"
    return f"it belongs to another base model:{named} fingerprint {trained.fingerprint[:12]}, not {fingerprint[:12]}"


def check(adapter: Adapter, slots: LoraSlots | None, base: str, fingerprint: str | None) -> None:
    """Raise `UserError` with everything that is wrong about serving this adapter.

    Args:
        adapter: the adapter.
        slots: the server's room; None where it is worked into the weights.
        base: what people call the base model.
        fingerprint: of the base model that the server has; None where that cannot be known.
    """
    found = problems(adapter, slots) if slots else []
    if fingerprint is not None and (wrong := other_base(adapter, base, fingerprint)):
        found.append(wrong)
    if found:
        raise UserError(f"{adapter.folder} cannot be served with {base}: {'; '.join(found)}")


def _targets(names: Iterable[str]) -> tuple[str, ...]:
    """These names with all that is computed together with them, always in the same order."""
    found = set(names)
    for whole, parts in TOGETHER.items():
        if found & {whole, *parts}:
            found |= set(parts)
    known = tuple(name for name in _ORDER if name in found)
    return known + tuple(sorted(found - set(known)))


def _unserved(folder: Path) -> list[str]:
    """What of PEFT's ways of adapting vLLM does not compute; our training uses none of them."""
    config: dict[str, Any] = json.loads((folder / CONFIG).read_bytes())
    kinds = {
        "use_dora": "DoRA",
        "lora_bias": "a bias of LoRA",
        "modules_to_save": "modules that were trained whole",
        "layer_replication": "repeated layers",
        "alora_invocation_tokens": "activated LoRA",
    }
    found = [f"it has {kind}, which vLLM does not serve" for key, kind in kinds.items() if config.get(key)]
    if config.get("bias", "none") != "none":
        found.append("it has trained biases, which vLLM does not serve")
    if config.get("peft_type", "LORA") != "LORA":
        found.append(f"it is {config['peft_type']}, not LoRA")
    return found
