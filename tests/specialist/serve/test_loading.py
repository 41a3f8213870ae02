"""Adapters in and out of a server that stands in for vLLM: once, whoever asks, and with words that help."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from automem.models.protocol import ModelUnavailable
from specialist.serve import loading
from tests.specialist.serve.adapters import an_adapter
from tests.specialist.serve.runtime import running, vllm_error


def test_an_adapter_is_loaded_once_under_the_name_of_its_content(tmp_path: Path) -> None:
    one, other = an_adapter(tmp_path / "one"), an_adapter(tmp_path / "other", weights=b"others")
    with running() as server:
        assert loading.load(server.url, one)
        assert not loading.load(server.url, one)
        assert server.loads() == 1
        assert loading.load(server.url, other)
        assert server.adapters == {
            one.served_name: str(tmp_path / "one"),
            other.served_name: str(tmp_path / "other"),
        }
        assert loading.loaded(server.url) == {one.served_name, other.served_name}
        assert loading.unload(server.url, one)
        assert not loading.unload(server.url, one)
        assert loading.loaded(server.url) == {other.served_name}


def test_all_who_load_the_same_at_once_are_content(tmp_path: Path) -> None:
    one = an_adapter(tmp_path / "one")
    # Answers only once all eight have asked: none of them can have seen it in the list before.
    with running(wait_for=8) as server, ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: loading.load(server.url, one), range(8)))
    assert sorted(done) == [False] * 7 + [True]


def test_a_relative_folder_is_named_as_the_server_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one = an_adapter(Path("one"))
    with running() as server:
        loading.load(server.url, one)
        assert server.adapters[one.served_name] == str(tmp_path / "one")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((404, {"detail": "Not Found"}), "takes no adapters while it runs.*VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"),
        (
            (500, vllm_error("LoRA is not enabled. Use --enable-lora to enable LoRA.", 500)),
            "takes no adapters while it runs.*--max-lora-rank 16",
        ),
        (
            (500, vllm_error("LoRA rank 12 is greater than max_lora_rank 8.", 500)),
            "rank 12, more than .* Start it with --max-lora-rank 16",
        ),
        ((404, vllm_error("No adapter found for /elsewhere: LoRA", 404)), "cannot read .*must see the same folder"),
        ((500, vllm_error("something odd", 500)), "did not load .*something odd.*HTTP 500"),
        ((502, "<html>bad gateway</html>"), "bad gateway.*HTTP 502"),
    ],
)
def test_a_refusal_says_what_to_do(tmp_path: Path, answer: tuple[int, object], told: str) -> None:
    one = an_adapter(tmp_path / "one", rank=12)
    with running(refuses=answer) as server, pytest.raises(ModelUnavailable, match=f"(?s){told}"):
        loading.load(server.url, one)


def test_a_key_is_sent_and_never_shown(tmp_path: Path) -> None:
    one = an_adapter(tmp_path / "one")
    with running(key="quite-secret-words") as server:
        with pytest.raises(ModelUnavailable, match="401"):
            loading.load(server.url, one)
        assert loading.load(server.url, one, "quite-secret-words")
    with running(refuses=(500, vllm_error("no: quite-secret-words", 500))) as server:
        with pytest.raises(ModelUnavailable) as raised:
            loading.load(server.url, one, "quite-secret-words")
        assert "quite-secret" not in str(raised.value)


def test_nobody_there(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    with pytest.raises(ModelUnavailable, match=r"no server answers at .*refused"):
        loading.load(address, an_adapter(tmp_path / "one"))


def test_a_server_that_says_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "ANSWER_SECONDS", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(ModelUnavailable, match="no answer within"):
            loading.loaded(f"http://127.0.0.1:{silent.getsockname()[1]}/v1")


def test_a_proxy_in_the_environment_is_not_for_loopback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with running() as server:
        assert loading.load(server.url, an_adapter(tmp_path / "one"))
