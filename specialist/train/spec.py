"""What a training run is told, and what was decided for it: ``train.json`` in its folder.

::

    <folder>/
      train.json        `Begun`: everything that decides the run
      curve.jsonl       losses and speed as they come (`specialist.train.curve`)
      train.log         what the libraries say
      checkpoints/      from which a killed run goes on
      failed.json       why it was stopped, if it was
      adapter/          the trained adapter (`specialist.adapter`), once it is finished
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from automem.errors import UserError
from specialist.adapter import BaseModelId
from specialist.recipe import Recipe

BEGUN, LOG, CHECKPOINTS, FAILED, ADAPTER = "train.json", "train.log", "checkpoints", "failed.json", "adapter"
FORMAT: Literal[1] = 1
"""Version of the folder's layout."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TrainSpec(_Strict):
    """What is to be trained."""

    dataset: Path
    """Folder of a dataset (`specialist.example`)."""
    base: str
    """``smollm2``, a folder, or a name on Hugging Face."""
    recipe: Recipe
    device: Literal["auto", "cpu", "gpu"] = "auto"
    """``auto`` takes GPUs where there are any."""
    processes: Annotated[int, Field(ge=0)] = 0
    """That train together, each on a GPU or a share of the cores; 0 takes all GPUs, or one process on a CPU."""
    max_rank: Annotated[int, Field(ge=1)] | None = None
    """The highest rank that the server will have room for; None where it makes the room that is needed."""


class Setup(_Strict):
    """How a run computes; a run that goes on computes as it began."""

    device: Literal["cpu", "gpu"]
    processes: Annotated[int, Field(ge=1)]
    dtype: Literal["float32", "bfloat16"]
    """Of the base model and of activations; the adapter is float32."""
    batch: Annotated[int, Field(ge=1)]
    """Examples of a pass: as many of a step's as memory allows."""
    checkpointing: bool
    """Whether activations are computed twice to save memory. What examples share is then computed for each."""


class Begun(_Strict):
    """All of ``train.json``."""

    format: Literal[1] = FORMAT
    spec: TrainSpec
    setup: Setup
    base: BaseModelId
    data: str
    """Identity of the dataset."""

    def write(self, folder: Path) -> None:
        """Write it down, whole or not at all; makes the folder. A run that goes on is told the same again."""
        folder.mkdir(parents=True, exist_ok=True)
        scratch = folder / f".{BEGUN}.part"
        scratch.write_text(self.model_dump_json(indent=2), encoding="utf-8")
        scratch.replace(folder / BEGUN)

    def same(self, other: Begun) -> bool:
        """Whether a run begun so is the run that `other` describes, wherever its data lies."""
        return (self.spec.recipe, self.base.fingerprint, self.data) == (
            other.spec.recipe,
            other.base.fingerprint,
            other.data,
        )


def begun(folder: Path) -> Begun | None:
    """What a folder's run was told; None when it was not begun. Raises `UserError`."""
    path = folder / BEGUN
    try:
        return Begun.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise UserError(f"{path}: no training run of this version of AutoMem: {error}") from error


def failure(folder: Path) -> str | None:
    """Why a run was stopped for good; None when it was not."""
    try:
        return str(json.loads((folder / FAILED).read_bytes())["reason"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder / FAILED}: cannot be read: {error}") from error


def record_failure(folder: Path, reason: str) -> None:
    """Write down that a run was stopped for good."""
    scratch = folder / f".{FAILED}.part"
    scratch.write_text(json.dumps({"reason": reason}, indent=2), encoding="utf-8")
    scratch.replace(folder / FAILED)


class Diverged(Exception):
    """Training was stopped because the loss left all bounds. The text says when; ``failed.json`` keeps it."""
