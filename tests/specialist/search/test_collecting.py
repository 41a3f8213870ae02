"""Whoever teaches is asked in the way in which a run would ask it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from automem.models import served
from automem.models.vllm_server import ServerConfig
from automem.runs import PlayedModel
from specialist.search import storage
from specialist.search.collecting import collect
from specialist.search.run import plan
from specialist.serve.bases import MEMORY_WORK_TOKENS
from tests.specialist.search.test_search import SCRIPTED, Watcher, request
from tests.specialist.serve.runtime import running


def test_the_embedded_model_teaches_in_replies_as_long_as_a_specialists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOMEM_RUNS", str(tmp_path / "runs"))
    smollm2 = PlayedModel(name="smollm2")
    planned = plan(request("taught", teacher=smollm2, collect_seeds="100", collect_steps=2))
    search = storage.create(planned.config, planned.scaffold)
    with running() as server:

        async def join(config: Callable[[], ServerConfig]) -> Any:
            return SimpleNamespace(
                api_base=server.url, served_name="base", alive=lambda: True, release=lambda: None
            )  # what a server of ours would be

        monkeypatch.setattr(served, "join", join)
        trace = asyncio.run(collect(search, 1, Watcher(), 1))
    asked = [body["max_tokens"] for path, body in server.requests if path == "/v1/chat/completions"]
    assert asked and set(asked) == {MEMORY_WORK_TOKENS}
    config = trace.run.config
    assert config.specialist is not None
    assert (config.model, config.specialist.model, config.specialist.consult_turns) == (SCRIPTED, smollm2, 1)
