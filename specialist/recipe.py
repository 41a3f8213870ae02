"""A recipe: everything that decides what a specialist is trained on, and how. A TOML file, checked when it is read.

Presets are in ``specialist/recipes/``; a name means one of them, anything else is a file's path.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from automem.errors import UserError

PRESETS = Path(__file__).parent / "recipes"

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
MLP = ("gate_proj", "up_proj", "down_proj")
GROUPS: Mapping[str, tuple[str, ...]] = {
    "all": (*ATTENTION, *MLP),
    "attention": ATTENTION,
    "qv": ("q_proj", "v_proj"),
    "mlp": MLP,
}
"""Names of groups of modules, as PEFT calls the modules of decoder models such as Llama and Qwen."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataRecipe(_Strict):
    """What is selected (`specialist.select`)."""

    examples: Annotated[int, Field(ge=1)] = 600
    """Examples wanted, training and held out together; as many as there are good ones for, where that is fewer."""
    minimum: Annotated[int, Field(ge=1)] = 50
    """With fewer good ones nothing is trained."""
    log_share: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Of the examples that are LOG phases; the rest are the consulting parts of PLAN phases."""
    best_episodes: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of each task's episodes, those of the highest return, from which examples are taken."""
    per_episode: Annotated[int, Field(ge=1)] = 40
    """Examples of one episode at most."""
    similar: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Examples at least this alike are near-duplicates: one of them is kept. 1 drops equal ones only."""
    held_out_share: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Of the episodes whose examples are never trained on, but measured."""


class LoraRecipe(_Strict):
    """The adapter."""

    rank: Annotated[int, Field(ge=1, le=1024)] = 16
    alpha: Annotated[float, Field(gt=0)] = 32
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    targets: Literal["all", "attention", "qv", "mlp"] | tuple[str, ...] = "attention"
    """A group of `GROUPS`, or names of modules."""

    @property
    def modules(self) -> tuple[str, ...]:
        """Names of the modules that are adapted."""
        return GROUPS[self.targets] if isinstance(self.targets, str) else self.targets


class TrainRecipe(_Strict):
    """The optimisation."""

    learning_rate: Annotated[float, Field(gt=0, lt=1)] = 2e-4
    schedule: Literal["constant", "linear", "cosine"] = "cosine"
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """Share of the steps over which the learning rate rises to its full height."""
    epochs: Annotated[float, Field(gt=0)] = 2.0
    batch: Annotated[int, Field(ge=1)] = 1
    """Examples of one forward pass on one device."""
    accumulation: Annotated[int, Field(ge=1)] = 8
    """Forward passes of one step on one device."""
    cutoff: Annotated[int, Field(ge=64)] = 16_384
    """Tokens of one example at most; longer ones are left out and counted, never cut."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    seed: int = 0


class Recipe(_Strict):
    """All of a recipe file."""

    name: str = ""
    """For people; a recipe is known by its contents."""
    data: DataRecipe = DataRecipe()
    lora: LoraRecipe = LoraRecipe()
    train: TrainRecipe = TrainRecipe()

    @model_validator(mode="after")
    def _enough(self) -> Recipe:
        if self.data.minimum > self.data.examples:
            raise ValueError(f"data.minimum {self.data.minimum} is more than data.examples {self.data.examples}")
        return self


def presets() -> tuple[str, ...]:
    """Names of the recipes that come with AutoMem."""
    return tuple(sorted(path.stem for path in PRESETS.glob("*.toml")))


def load(name: str) -> Recipe:
    """The preset of this name, or the recipe in this file. Raises `UserError` with every field that is wrong."""
    path = PRESETS / f"{name}.toml" if name in presets() else Path(name)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return Recipe.model_validate({"name": path.stem} | data)
    except FileNotFoundError:
        raise UserError(f"no recipe {name!r}: it is a TOML file, or one of {', '.join(presets())}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        listed = "\n".join(f"  {'.'.join(map(str, e['loc'])) or 'recipe'}: {e['msg']}" for e in error.errors())
        raise UserError(f"{path}: {error.error_count()} problem(s):\n{listed}") from error
    except ValueError as error:
        raise UserError(f"{path}: not valid TOML: {error}") from error
