"""The figures by which `specialist.select.rules` judges: ``weights.toml``, checked when it is read."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Annotated

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from automem.errors import UserError

FILE = Path(__file__).with_name("weights.toml")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Limits(_Strict):
    """Section ``[limits]``: bounds that signals look at."""

    horizon: Annotated[int, Field(ge=1)]
    """Steps, that of the read included, within which progress counts for it."""
    patience: Annotated[int, Field(ge=0)]
    """Steps that must have been left for a note to count as never read."""
    talk: Annotated[int, Field(ge=1)]
    """Characters outside operations from which on a phase is not concise at all."""


class Weight(_Strict):
    """How much a signal counts: `weight` points for each of it, for `most` of it at most."""

    weight: float
    most: Annotated[float, Field(gt=0)]


class Weights(_Strict):
    """All of ``weights.toml``."""

    threshold: float
    """Score from which on a candidate is accepted."""
    lowest: float
    highest: float
    limits: Limits
    signals: dict[str, Weight]

    @model_validator(mode="after")
    def _all_signals(self) -> Weights:
        from specialist.select.signals import SIGNALS

        missing, unknown = sorted(SIGNALS.keys() - self.signals.keys()), sorted(self.signals.keys() - SIGNALS.keys())
        if missing or unknown:
            raise ValueError(f"signals: missing {', '.join(missing) or 'none'}; unknown {', '.join(unknown) or 'none'}")
        if not self.lowest <= self.threshold <= self.highest:
            raise ValueError(f"threshold {self.threshold} is not between lowest and highest")
        return self

    @property
    def version(self) -> str:
        """The same for the same figures, whatever the file looks like."""
        return hashlib.sha256(orjson.dumps(self.model_dump(), option=orjson.OPT_SORT_KEYS)).hexdigest()[:12]


def load(path: Path = FILE) -> Weights:
    """The weights in a file. Raises `UserError` with every field that is wrong."""
    try:
        return Weights.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        listed = "\n".join(f"  {'.'.join(map(str, e['loc'])) or 'weights'}: {e['msg']}" for e in error.errors())
        raise UserError(f"{path}: {error.error_count()} problem(s):\n{listed}") from error
    except ValueError as error:
        raise UserError(f"{path}: not valid TOML: {error}") from error
