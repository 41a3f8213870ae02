"""A trained specialist on disk: PEFT's files, and a manifest that says what it is.

    adapter_config.json, adapter_model.safetensors    as PEFT writes them
    manifest.json                                     recipe, data, base model, scaffold, versions, losses

It is known by the hash of its weights and configuration, under which servers load it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from automem.errors import UserError
from specialist.recipe import Recipe

MANIFEST = "manifest.json"
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
FORMAT: Literal[1] = 1
"""Version of the manifest."""

UNUSUAL = ("use_rslora", "use_dora", "rank_pattern", "alpha_pattern", "layers_to_transform", "fan_in_fan_out")
"""Settings of PEFT's that change what weights do."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BaseModelId(_Strict):
    """The model that an adapter belongs to.

    Attributes:
        name: as people name it: ``smollm2``, or a name of a Hugging Face model.
        fingerprint: of its configuration and weights (`specialist.base_model.fingerprint`).
    """

    name: str
    fingerprint: str


class Manifest(_Strict):
    """All of ``manifest.json``."""

    format: Literal[1] = FORMAT
    identity: str
    """SHA-256 of the weights and of what of the configuration decides (`identity_of`)."""
    base: BaseModelId
    recipe: Recipe
    data: str
    """Identity of the dataset."""
    scaffold: str
    """Identity of the scaffold whose prompts it was trained on."""
    game: str
    consult_turns: int
    """Turns of PLAN for which it consults memory at most."""
    created: str
    versions: dict[str, str]
    losses: dict[str, float]
    """``train``, ``held_out_before`` and ``held_out_after``: mean negative log-likelihood of a target token, nats."""


@dataclass(frozen=True)
class Adapter:
    """A trained adapter."""

    folder: Path
    manifest: Manifest
    rank: int
    modules: tuple[str, ...]

    @property
    def identity(self) -> str:
        """See `Manifest.identity`."""
        return self.manifest.identity

    @property
    def served_name(self) -> str:
        """The name under which servers load it: new for every content, so that no cached block of another is used."""
        return f"specialist-{self.identity[:16]}"


def load(folder: Path | str) -> Adapter:
    """The adapter in a folder. Raises `UserError` when it is none, is incomplete or was changed."""
    folder = Path(folder)
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
        config = _config(folder)
        found = identity_of(folder)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder}: no adapter of this version of AutoMem: {error}") from error
    if found != manifest.identity:
        raise UserError(
            f"{folder}: was changed since it was trained (identity {found[:12]}, not {manifest.identity[:12]})"
        )
    return Adapter(folder, manifest, int(config["r"]), tuple(sorted(config["target_modules"])))


def identity_of(folder: Path) -> str:
    """SHA-256 of the weights and of the settings that decide what they do.

    Paths and other words of the configuration file do not count: the same adapter trained elsewhere is the same.
    """
    config = _config(folder)
    decides = {name: config[name] for name in ("r", "lora_alpha")}
    decides["target_modules"] = sorted(config["target_modules"])
    # What our training leaves as it is; others' adapters may have it.
    decides |= {name: config[name] for name in UNUSUAL if config.get(name)}
    digest = hashlib.sha256(json.dumps(decides, sort_keys=True).encode())
    digest.update((folder / WEIGHTS).read_bytes())
    return digest.hexdigest()


def _config(folder: Path) -> dict[str, Any]:
    return json.loads((folder / CONFIG).read_bytes())
