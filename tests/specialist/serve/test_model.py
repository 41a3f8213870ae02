"""A specialist as a model to ask: found by its name, loaded again when it was lost, refused when it cannot be."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from automem.errors import UserError
from automem.models import smollm2
from automem.models.litellm_model import LiteLLM
from automem.models.protocol import ModelUnavailable, Sampling
from automem.models.scripted.model import Scripted
from automem.models.served import Served
from automem.models.vllm_server import LoraSlots
from specialist.serve import loading
from specialist.serve.bases import base, context_tokens
from specialist.serve.model import SpecialistModel, make_memory_model, make_pair
from tests.specialist.serve.adapters import an_adapter
from tests.specialist.serve.runtime import Runtime, running

HELLO = [{"role": "user", "content": "Hello"}]
THEIRS = "hosted_vllm/base"


def last_chat(server: Runtime) -> dict[str, object]:
    return [body for path, body in server.requests if path == "/v1/chat/completions"][-1]


def test_it_is_loaded_and_asked_under_its_own_name(tmp_path: Path) -> None:
    one = an_adapter(tmp_path / "one")

    async def ask(server: Runtime) -> None:
        pair = make_pair(THEIRS, one, Sampling(max_tokens=9), api_base=server.url)
        assert isinstance(pair.gameplay, LiteLLM)
        memory, gameplay = await pair.memory.complete(HELLO), await pair.gameplay.complete(HELLO)
        assert (memory.text, gameplay.text) == (f"I am {one.served_name}", "I am base")
        assert memory.model == pair.memory.name == f"{THEIRS}+specialist-{one.identity[:12]}"
        assert last_chat(server)["max_tokens"] == 9
        for model in (pair.memory, pair.gameplay):
            await model.close()
            await model.close()

    with running() as server:
        asyncio.run(ask(server))
        assert server.loads() == 1


def test_episodes_at_once_survive_that_somebody_unloads_it(tmp_path: Path) -> None:
    one = an_adapter(tmp_path / "one")

    async def ask(server: Runtime) -> None:
        model = make_memory_model(THEIRS, one, api_base=server.url)
        await model.ready()
        loading.unload(server.url, one)
        replies = await asyncio.gather(*(model.complete(HELLO) for _ in range(8)))
        assert {reply.text for reply in replies} == {f"I am {one.served_name}"}
        await model.close()

    with running() as server:
        asyncio.run(ask(server))


def test_a_server_that_loads_nothing_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    with running(refuses=(404, {"detail": "Not Found"})) as server:
        model = make_memory_model(THEIRS, an_adapter(tmp_path / "one"), api_base=server.url)
        with pytest.raises(ModelUnavailable, match="takes no adapters while it runs"):
            asyncio.run(model.ready())


def test_one_that_the_user_loaded_at_the_start_is_found(tmp_path: Path) -> None:
    one = an_adapter(tmp_path / "one")
    with running(refuses=(404, {}), adapters={one.served_name: "/there"}) as server:
        model = make_memory_model(THEIRS, one, api_base=server.url)
        assert asyncio.run(model.complete(HELLO)).text == f"I am {one.served_name}"


def a_model(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 100_000}))
    (folder / "model.safetensors").write_bytes(b"0" * 1000)
    return folder


def test_another_base_model_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    one, folder = an_adapter(tmp_path / "one"), a_model(tmp_path / "model")
    with running(root=str(folder)) as server:
        model = make_memory_model(THEIRS, one, api_base=server.url)
        with pytest.raises(UserError, match="belongs to another base model: smollm2, fingerprint ffffffffffff, not"):
            asyncio.run(model.ready())
        assert server.loads() == 0


@pytest.mark.parametrize("merged", [False, True])
def test_a_server_of_ours_is_not_started_for_another_base_models_adapter(
    tmp_path: Path, merged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attach(*_: object, **__: object) -> None:
        raise AssertionError("a server was started")

    monkeypatch.setattr("automem.models.served.attach", attach)
    model = make_memory_model(str(a_model(tmp_path / "model")), an_adapter(tmp_path / "one"), merged=merged)
    with pytest.raises(UserError, match="another base model"):
        asyncio.run(model.ready())


def test_what_cannot_be_is_said_at_once(tmp_path: Path) -> None:
    one = an_adapter(tmp_path / "one", rank=16)
    with pytest.raises(UserError, match="rank 16 is above the server's maximum, 8"):
        make_memory_model("smollm2", one, slots=LoraSlots())
    for name in ("scripted", "openai gpt", "nowhere"):
        with pytest.raises(UserError, match="is no model that AutoMem can serve"):
            make_memory_model(name, one)
    with pytest.raises(UserError, match="only a vLLM can load"):
        make_memory_model("openai/gpt-4o-mini", one, api_base="http://127.0.0.1:1/v1")
    with pytest.raises(UserError, match="leave --api-base out, or --merged"):
        make_memory_model(THEIRS, one, merged=True, api_base="http://127.0.0.1:1/v1")


def test_who_plays_and_who_remembers(tmp_path: Path) -> None:
    one = an_adapter(tmp_path / "one")
    pair = make_pair("smollm2", one)
    assert isinstance(pair.gameplay, Served) and isinstance(pair.memory, SpecialistModel)
    assert (pair.gameplay.name, pair.memory.name) == ("smollm2", f"smollm2+specialist-{one.identity[:12]}")
    untrained = make_pair("smollm2", None)
    assert (untrained.gameplay.name, untrained.memory.name) == ("smollm2", "smollm2")
    scripted = Scripted()
    assert make_pair("smollm2", one, gameplay=scripted).gameplay is scripted
    assert make_pair("smollm2", one, merged=True).memory.name.endswith("-merged")


def test_memory_work_of_a_small_model_gets_longer_replies_than_its_play() -> None:
    small, other = base("smollm2"), base("some/model")
    assert small.memory_sampling(Sampling()) == Sampling(max_tokens=256, stop=smollm2.STOPS)
    assert small.sampling(Sampling()).max_tokens == 64
    asked = Sampling(max_tokens=7, stop=("x",), temperature=0.5)
    assert small.memory_sampling(asked) == asked
    assert other.memory_sampling(Sampling()) == other.sampling(Sampling()) == Sampling()


def test_a_folder_is_served_under_its_own_name_with_the_context_that_it_has(tmp_path: Path) -> None:
    folder = a_model(tmp_path / "my-model")
    config = base(str(folder)).config(None)
    assert (config.model, config.served_name, config.max_model_len) == (str(folder), "my-model", 16_384)
    (folder / "config.json").write_text(json.dumps({"text_config": {"max_position_embeddings": 2048}}))
    assert context_tokens(folder) == 2048
