"""The configuration file: what holds for every run on this machine, and no scaffold can change.

``automem.toml`` in the working folder, or the file that ``AUTOMEM_CONFIG`` names; there need be none::

    [sandbox]              # limits of scaffold code, see automem.sandbox.limits
    call_seconds = 2.0
    memory_mb = 256

A run stores what held when it began.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from automem.errors import UserError
from automem.sandbox.limits import SandboxConfig

FILE = "automem.toml"


class Config(BaseModel):
    """All of ``automem.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sandbox: SandboxConfig = SandboxConfig()
    """Limits of scaffold code."""


def load() -> Config:
    """The configuration; all defaults when there is no file. Raises `UserError` with every field that is wrong."""
    named = os.environ.get("AUTOMEM_CONFIG")
    path = Path(named or FILE)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if named:
            raise UserError(f"AUTOMEM_CONFIG={named}: there is no such file") from None
        return Config()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path}: not valid TOML: {error}") from error
    sandbox = data.get("sandbox")
    if isinstance(sandbox, dict) and "unsafe" in sandbox:
        # A folder that somebody else made must not be enough to run its code without containment.
        raise UserError(f"{path}: sandbox.unsafe cannot be set in a file; say --unsafe-hooks on the command line")
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        problems = "\n".join(f"  {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise UserError(f"{path}: {error.error_count()} problem(s):\n{problems}") from error
