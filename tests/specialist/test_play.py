"""Who acts and who remembers, as a person names them: each with its own sampling, on one server where that can be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from automem.cli_options import chosen_specialist
from automem.errors import UserError
from automem.evaluate import make_model
from automem.models import served
from automem.models.protocol import ModelUnavailable
from automem.models.scripted.model import Scripted
from automem.models.served import Served
from automem.models.vllm_server import Attached, LoraSlots, ServerConfig
from automem.runs import PlayedModel
from specialist import play
from tests.specialist.serve.adapters import an_adapter
from tests.specialist.serve.runtime import Runtime, running

HELLO = [{"role": "user", "content": "Hello"}]
BASE = "hosted_vllm/base"


def test_each_is_asked_with_its_own_sampling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    an_adapter(tmp_path / "one")
    acts = PlayedModel(name=BASE, temperature=0.5, max_tokens=9)
    chosen = play.choose(PlayedModel(name=str(tmp_path / "one"), max_tokens=7), base=BASE)

    async def ask(server: Runtime) -> list[dict[str, Any]]:
        monkeypatch.setenv("HOSTED_VLLM_API_BASE", server.url)
        model, specialist = play.make(chosen, acts, make_model(acts, 1))
        for one in (model, specialist.model):
            await one.complete(HELLO)
            await one.close()
        return [body for path, body in server.requests if path == "/v1/chat/completions"]

    with running() as server:
        asked = asyncio.run(ask(server))
    assert [(body["model"], body["temperature"], body["max_tokens"]) for body in asked] == [
        ("base", 0.5, 9),
        (asked[1]["model"], 0.0, 7),
    ]
    assert asked[1]["model"] != "base"


def test_a_model_that_we_serve_need_not_be_known_to_litellm() -> None:
    acts = PlayedModel(name="Qwen/Qwen2.5-0.5B-Instruct")
    with pytest.raises(UserError, match="LiteLLM knows no provider"):
        play.choose(acts)
    chosen = play.choose(acts, served=True)
    model, specialist = play.make(chosen, acts, Scripted())
    assert isinstance(model, Served) and isinstance(specialist.model, Served)
    assert (model.name, specialist.model.name) == (acts.name, acts.name)
    scripted = Scripted()
    assert play.make(chosen, PlayedModel(name="scripted"), scripted)[0] is scripted
    with pytest.raises(UserError, match="is no model that AutoMem can serve"):
        play.choose(PlayedModel(name="no such model"), served=True)


def test_the_embedded_model_beside_itself_needs_one_server(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: list[ServerConfig] = []

    async def join(config: Callable[[], ServerConfig]) -> Attached:
        wanted.append(config())
        raise ModelUnavailable("enough is known")

    monkeypatch.setattr(served, "join", join)
    acts = PlayedModel(name="smollm2")
    model, specialist = play.make(play.choose(acts), acts, make_model(acts, 1))
    for one in (model, specialist.model):
        with pytest.raises(ModelUnavailable):
            asyncio.run(one.ready())
    assert wanted[0] == wanted[1] and wanted[0].lora == LoraSlots()


def test_a_model_of_ours_has_no_address_that_could_be_named() -> None:
    with pytest.raises(UserError, match="--specialist-api-base: smollm2 has no address"):
        chosen_specialist("smollm2", "", "http://127.0.0.1:9/v1", False, 0, 0)
