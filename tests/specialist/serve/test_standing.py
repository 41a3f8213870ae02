"""What `automem serve` checks, starts and tells, with a stand-in for vLLM."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from automem.errors import UserError
from automem.models.vllm_server import LoraSlots
from specialist.base_model import fingerprint
from specialist.serve import standing
from tests.models.test_vllm_server import eventually
from tests.specialist.serve.adapters import an_adapter
from tests.specialist.serve.test_model import a_model


def test_everything_that_is_wrong_is_said_before_anything_starts(tmp_path: Path) -> None:
    model = str(a_model(tmp_path / "model"))
    other, another = an_adapter(tmp_path / "a"), an_adapter(tmp_path / "b", weights=b"other")
    with pytest.raises(UserError) as raised:
        standing.plan(model, [str(other.folder), str(another.folder)])
    assert str(raised.value).count("belongs to another base model") == 2
    with pytest.raises(UserError, match="no adapter of this version"):
        standing.plan(model, [str(tmp_path / "nothing")])
    for several in ([], [str(other.folder), str(another.folder)]):
        with pytest.raises(UserError, match=f"a merged copy holds one specialist; {len(several)} were given"):
            standing.plan(model, several, merged=True)
    for room in ({"max_loras": 3}, {"max_rank": 8}):
        with pytest.raises(UserError, match="leave out --max-loras and --max-rank"):
            standing.plan(model, [str(other.folder)], merged=True, **room)
    with pytest.raises(UserError, match="is no model that AutoMem can serve"):
        standing.plan("scripted", [])


def test_room_is_made_for_what_is_given_and_for_more_where_that_is_asked_for(tmp_path: Path) -> None:
    model = a_model(tmp_path / "model")
    own = fingerprint(model)
    a = an_adapter(tmp_path / "a", rank=4, modules=("q_proj",), fingerprint=own)
    b = an_adapter(tmp_path / "b", rank=16, modules=("o_proj",), fingerprint=own)
    same = an_adapter(tmp_path / "same", rank=4, modules=("q_proj",), fingerprint=own)
    planned = standing.plan(str(model), [str(one.folder) for one in (a, b, same)])
    assert planned.names == ("model", a.served_name, b.served_name)
    assert planned.config.lora == LoraSlots(2, 16, ("q_proj", "k_proj", "v_proj", "o_proj"))
    roomy = standing.plan(str(model), [str(a.folder)], max_loras=5, max_rank=60)
    assert roomy.config.lora == LoraSlots(5, 64, ("q_proj", "k_proj", "v_proj"))
    assert standing.plan(str(model), []).config.lora == LoraSlots()


FAKE = Path(__file__).parents[2] / "models" / "fake_vllm.py"


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


SERVE = """
import sys
from automem.models import vllm_server
launch = vllm_server._launch
def fake(config, folder, command, *rest):
    return launch(config, folder, (sys.executable, sys.argv[1]), *rest)
vllm_server._launch = fake
import typer
from automem.cli_serve import serve
app = typer.Typer()
app.command()(serve)
app(sys.argv[2:])
"""


def test_it_stands_until_ctrl_c_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = a_model(tmp_path / "my model")
    monkeypatch.setenv("AUTOMEM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE_VLLM", str(tmp_path / "plan.json"))
    (tmp_path / "plan.json").write_text("{}")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    asked = [sys.executable, "-c", SERVE, str(FAKE), "--model", str(model), "--port", str(port)]
    server = subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        told = [server.stdout.readline().rstrip() for _ in range(9)]
        assert told[0] == f"serving at http://127.0.0.1:{port}/v1"
        assert told[1] == "  my model"
        assert any(line.startswith("  curl ") and f":{port}/v1/chat/completions" in line for line in told)
        assert f"  automem eval smoke --model 'hosted_vllm/my model' --api-base http://127.0.0.1:{port}/v1" in told
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=20)
        assert server.returncode == 0
        eventually(lambda: not answers(port), "nobody listens at its port any more")
    finally:
        server.kill()
        server.communicate()
