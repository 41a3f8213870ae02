"""A tiny model to train, one for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("trl", reason="the training libraries are not installed: make setup EXTRAS=train")

from tests.specialist.train.tiny import write_tiny


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny model."""
    return write_tiny(tmp_path_factory.mktemp("tiny") / "model")
