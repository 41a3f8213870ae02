"""What tests in several places need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from automem.models import smollm2
from automem.models.vllm_server import Attached, attach


@pytest.fixture(scope="session")
def smollm2_server() -> Iterator[Attached]:
    """The embedded model, served by a real vLLM: one for all tests, and for the programs they run.

    Mark tests that use it with ``vllm``. ``--model smollm2`` in a subprocess finds this server.
    """
    with attach(smollm2.server_config()) as server:
        yield server
