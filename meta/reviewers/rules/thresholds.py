"""The figures on which rules decide, read from ``thresholds.toml`` once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("thresholds.toml")


@lru_cache(maxsize=1)
def thresholds() -> Mapping[str, Mapping[str, Any]]:
    """Section -> name -> value, as the file says."""
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


@lru_cache(maxsize=64)
def pattern(text: str) -> re.Pattern[str]:
    """A regular expression of the file, compiled; case does not matter."""
    return re.compile(text, re.IGNORECASE)
