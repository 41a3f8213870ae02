"""What a search that is resumed goes on with: what decides it as it was, the rest as it is named now."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from automem.runs import PlayedModel
from automem.sandbox import SandboxConfig
from specialist.search import run as searches
from specialist.search import storage
from specialist.search.settings import BaseSettings, SearchConfig, TrainSettings
from specialist.search.storage import SearchFolder
from tests.specialist.search.test_search import Watcher, request


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[SearchConfig]:
    """The settings with which each search was begun or gone on with; nothing else happens."""
    found: list[SearchConfig] = []

    class Begun:
        def __init__(self, search: SearchFolder, *_: Any) -> None:
            found.append(search.config)

        async def run(self) -> dict[str, Any]:
            return {}

    monkeypatch.setenv("AUTOMEM_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(searches, "Search", Begun)
    monkeypatch.setattr(searches, "outlook", lambda *_: SimpleNamespace(problems=()))
    monkeypatch.setattr(searches.base_model, "folder", lambda name: tmp_path)
    return found


def go(resume: bool, server: str, teacher: str, device: Any, unsafe: bool) -> None:
    """Begin a search, or go on with it, with what may change."""
    planned = searches.plan(
        request(
            "moved",
            base=BaseSettings(name="smollm2", server="hosted_vllm/base", api_base=server),
            teacher=PlayedModel(name="hosted_vllm/large", api_base=teacher),
            training=TrainSettings(device=device),
            sandbox=SandboxConfig(unsafe=unsafe),
            resume=resume,
        )
    )
    asyncio.run(searches.run(planned, resume, Watcher(), 1))


def test_servers_devices_and_what_code_may_do_are_as_they_are_named_now(begun: list[SearchConfig]) -> None:
    here, there = "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"
    go(False, here, here, "cpu", unsafe=True)
    go(True, there, "", "auto", unsafe=False)
    first, second = begun
    assert (first.base.api_base, first.training.device, first.sandbox.unsafe) == (here, "cpu", True)
    assert (second.base.api_base, second.training.device, second.sandbox.unsafe) == (there, "auto", False)
    assert second.collect.teacher.api_base == here, "it was not named again"
    assert storage.load("moved").config == second


def test_a_search_that_goes_on_was_created_when_it_was(
    begun: list[SearchConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    go(False, "", "", "auto", unsafe=False)
    monkeypatch.setattr(searches.runs, "now", lambda: "later")
    versions = searches.runs.versions()
    monkeypatch.setattr(searches.runs, "versions", lambda tasks=(): {**versions, "python": "4.0"})
    go(True, "", "", "cpu", unsafe=False)
    assert (begun[1].created, begun[1].versions) == (begun[0].created, begun[0].versions)
