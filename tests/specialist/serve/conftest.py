"""One real vLLM with room for adapters, and real adapters for it: for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from automem.models.vllm_server import Attached, LoraSlots, attach
from specialist.adapter import Adapter, BaseModelId
from specialist.serve.bases import base
from tests.specialist.serve.adapters import a_real_adapter


@pytest.fixture(scope="session")
def lora_server() -> Iterator[Attached]:
    """The embedded model with room for adapters of rank 8. Mark tests that use it with ``vllm``."""
    with attach(base("smollm2").config(LoraSlots())) as server:
        yield server


@pytest.fixture(scope="session")
def random_adapters(tmp_path_factory: pytest.TempPathFactory) -> list[Adapter]:
    """Four adapters of the embedded model that say different things."""
    found = base("smollm2")
    own = BaseModelId(name="smollm2", fingerprint=found.fingerprint())
    folder = tmp_path_factory.mktemp("adapters")
    return [a_real_adapter(folder / str(seed), found.folder(), own, seed=seed) for seed in range(4)]
