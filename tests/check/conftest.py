"""What the tests of the checker need."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.check.broken import Broken


@pytest.fixture
def broken(tmp_path: Path) -> Broken:
    """A copy of crafter/v0 to break."""
    return Broken(tmp_path)
