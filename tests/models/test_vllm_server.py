"""The life of a managed server, with a stand-in for vLLM: started once, shared, never left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from automem.models import vllm_server
from automem.models.keepalive import descendants
from automem.models.protocol import ModelUnavailable
from automem.models.vllm_server import (
    Attached,
    LoraSlots,
    PrefixCache,
    ServerConfig,
    attach,
    covering,
    environment,
    flags,
)

COMMAND = (sys.executable, str(Path(__file__).with_name("fake_vllm.py")))
CONFIG = ServerConfig(model="toy-folder", served_name="toy")


class Plan:
    """How the stand-in behaves, and what it left."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.set()

    def set(self, **plan: object) -> None:
        self.file.write_text(json.dumps(plan))

    def pids(self) -> tuple[int, int]:
        server, engine = self.file.with_suffix(".pids").read_text().split()
        return int(server), int(engine)

    def starts(self) -> int:
        return len(self.file.with_suffix(".starts").read_text().splitlines())

    def environment(self) -> dict[str, str]:
        return json.loads(self.file.with_suffix(".environment").read_text())


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setenv("AUTOMEM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE_VLLM", str(tmp_path / "plan.json"))
    monkeypatch.delenv("AUTOMEM_VLLM_LINGER", raising=False)
    return Plan(tmp_path / "plan.json")


def start(config: ServerConfig = CONFIG, **options: float) -> Attached:
    return attach(config, command=COMMAND, **options)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def eventually(condition: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"still not, after {seconds} s: {what}"
        time.sleep(0.02)


def all_gone(*pids: int) -> None:
    eventually(lambda: not any(map(alive, pids)), f"processes {pids} have ended")


USER = """
import sys
from automem.models.vllm_server import ServerConfig, attach
server = attach(ServerConfig(model="toy-folder", served_name="toy"), command=tuple(sys.argv[1:]))
print(server.keeper, server.api_base, server.started, flush=True)
sys.stdin.read()
"""


@contextmanager
def users(number: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that all ask for the server at once, and hold it until their input ends."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", USER, *COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(number)
    ]
    try:
        yield started
    finally:
        for user in started:
            user.kill()
            user.communicate()


def said(user: subprocess.Popen[str]) -> tuple[int, str, bool]:
    assert user.stdout is not None
    keeper, base, started = user.stdout.readline().split()
    return int(keeper), base, started == "True"


def test_a_server_is_shared_and_ends_with_its_last_user(plan: Plan) -> None:
    first, second = start(), start()
    assert (first.started, second.started) == (True, False)
    assert first.api_base == second.api_base
    assert first.api_base.startswith("http://127.0.0.1:")
    first.release()
    assert second.alive()
    with start() as third:
        second.release()
        assert third.api_base == second.api_base
        assert plan.starts() == 1
    all_gone(third.keeper, *plan.pids())


def test_nothing_is_left_when_the_last_user_lets_go(plan: Plan) -> None:
    plan.set(stubborn=True)
    with start() as server:
        pids = (server.keeper, *plan.pids())
        assert all(map(alive, pids))
    server.release()
    all_gone(*pids)
    assert not list((plan.file.parent / "cache").rglob("state.json"))


def test_processes_that_start_at_once_start_one_server(plan: Plan) -> None:
    with users(3) as several:
        answers = [said(user) for user in several]
    assert len({base for _, base, _ in answers}) == 1
    assert [started for _, _, started in answers].count(True) == 1
    assert plan.starts() == 1
    all_gone(answers[0][0], *plan.pids())


def test_a_killed_user_takes_its_server_along(plan: Plan) -> None:
    with users(1) as (user,):
        keeper, _, _ = said(user)
        pids = (keeper, *plan.pids())
        user.send_signal(signal.SIGKILL)
        all_gone(*pids)


def test_a_server_survives_the_process_that_started_it_while_another_uses_it(plan: Plan) -> None:
    with users(1) as (starter,):
        said(starter)
        with start() as server:
            starter.send_signal(signal.SIGKILL)
            starter.wait()
            time.sleep(0.5)  # longer than the keeper takes to notice; nothing should happen
            assert server.alive()
            assert server.prefix_cache() == PrefixCache(hits=512, queries=1034)
            pids = (server.keeper, *plan.pids())
        all_gone(*pids)


def test_a_dead_server_is_replaced(plan: Plan) -> None:
    first = start()
    os.kill(plan.pids()[0], signal.SIGKILL)
    eventually(lambda: not first.alive(), "the holder notices")
    second = start()
    assert second.started
    assert plan.starts() == 2
    # Holding on to the dead one keeps nothing of the new one alive.
    second.release()
    all_gone(second.keeper, *plan.pids())
    first.release()


@pytest.mark.parametrize("which", ["outer", "inner"])
def test_a_killed_keeper_takes_all_of_the_server_along(plan: Plan, which: str) -> None:
    with start() as server:
        family = [server.keeper, *descendants(server.keeper)]
        assert set(plan.pids()) < set(family)
        os.kill(family[["outer", "inner"].index(which)], signal.SIGKILL)
        all_gone(*family)
        assert not server.alive()


def test_a_forked_child_does_not_hold_the_server(plan: Plan) -> None:
    server = start()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)  # until the parent closes its end
        os._exit(0)
    os.close(reading)
    server.release()
    all_gone(server.keeper, *plan.pids())
    os.close(writing)
    os.waitpid(child, 0)


def test_a_server_can_stay_for_the_next_user(plan: Plan) -> None:
    first = start(linger_seconds=60)
    first.release()
    time.sleep(0.5)  # longer than the keeper takes to notice
    with start() as second:
        assert not second.started
        assert plan.starts() == 1
        os.kill(second.keeper, signal.SIGTERM)
        all_gone(second.keeper, *plan.pids())


def test_other_configurations_get_other_servers(plan: Plan) -> None:
    with start() as plain, start(ServerConfig("toy-folder", "toy", lora=LoraSlots())) as lora:
        assert plain.api_base != lora.api_base
        assert lora.started
    all_gone(plain.keeper, lora.keeper)


def test_a_server_with_more_room_for_adapters_serves_whoever_needs_less(plan: Plan) -> None:
    def config(lora: LoraSlots | None, **changes: int) -> ServerConfig:
        return ServerConfig("toy-folder", "toy", lora=lora, **changes)

    small, roomy = config(LoraSlots(2, 8, ("q_proj",))), config(LoraSlots(3, 16, ("q_proj", "o_proj")))
    assert covering(small) == small
    with start(roomy) as server:
        assert covering(small) == roomy
        with start(covering(small)) as second:
            assert second.api_base == server.api_base
        for other in (
            config(None),
            config(LoraSlots(4, 8, ("q_proj",))),
            config(LoraSlots(2, 32, ("q_proj",))),
            config(LoraSlots(2, 8, ("up_proj",))),
            config(LoraSlots(2, 8, ())),
            config(LoraSlots(2, 8, ("q_proj",)), max_model_len=512),
        ):
            assert covering(other) == other
        with start(small) as own:
            assert covering(small) == small, "one of just the right size is preferred"
        all_gone(own.keeper)
    all_gone(server.keeper)
    assert covering(small) == small


def test_a_server_can_be_given_its_port(plan: Plan) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with attach(CONFIG, command=COMMAND, port=port) as server:
        assert server.api_base == f"http://127.0.0.1:{port}/v1"
        with start() as second:
            assert second.api_base == server.api_base
    all_gone(server.keeper)


def test_a_server_that_ends_while_starting_shows_the_end_of_its_log(plan: Plan) -> None:
    plan.set(fails=True)
    with pytest.raises(ModelUnavailable, match=r"(?s)ended while starting.*server\.log.*not for you"):
        start()


def test_a_server_that_never_answers_is_given_up_and_ended(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    plan.set(silent=True)
    monkeypatch.setattr(vllm_server, "START_SECONDS", {"cpu": 1.0, "gpu": 1.0})
    monkeypatch.setattr(vllm_server, "BUSY_SECONDS", 1.0)
    with pytest.raises(ModelUnavailable, match="did not answer in time"):
        start()
    all_gone(*plan.pids())


def test_waiting_can_be_stopped(plan: Plan) -> None:
    plan.set(silent=True)
    stop = threading.Event()

    def once_it_runs() -> None:
        eventually(plan.file.with_suffix(".pids").exists, "the stand-in runs")
        stop.set()

    thread = threading.Thread(target=once_it_runs)
    thread.start()
    with pytest.raises(ModelUnavailable, match="was stopped"):
        attach(CONFIG, command=COMMAND, stop=stop)
    thread.join()
    all_gone(*plan.pids())


def test_waiting_for_another_process_that_starts_it_can_be_stopped(plan: Plan) -> None:
    plan.set(silent=True)
    with users(1) as (starter,):
        eventually(plan.file.with_suffix(".pids").exists, "the stand-in runs")
        stop = threading.Event()
        stop.set()
        with pytest.raises(ModelUnavailable, match="was stopped"):
            attach(CONFIG, command=COMMAND, stop=stop)
        starter.kill()
        all_gone(*plan.pids())


def test_a_port_taken_by_somebody_else_is_tried_again(plan: Plan) -> None:
    plan.set(port_taken=1)
    with start() as server:
        assert server.started
        assert plan.starts() == 2
    all_gone(server.keeper)


def test_keys_stay_out_of_the_servers_environment(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("VLLM_API_KEY", "locked")
    with start() as server:
        seen = plan.environment()
    assert not [name for name in seen if name.endswith("_API_KEY")]
    assert seen["VLLM_NO_USAGE_STATS"] == "1"
    all_gone(server.keeper)


def test_flags_follow_the_machine_and_the_configuration() -> None:
    config = ServerConfig("m", "n", lora=LoraSlots(3, 16, ("qkv_proj",)), extra=("--seed", "1"))
    cpu, gpu = flags(config, "cpu"), flags(config, "gpu")
    assert "--enforce-eager" in cpu and "--enforce-eager" not in gpu
    assert "--gpu-memory-utilization" in gpu and "--gpu-memory-utilization" not in cpu
    assert cpu[cpu.index("--enable-lora") : cpu.index("--seed")] == [
        *("--enable-lora", "--max-loras", "3", "--max-lora-rank", "16", "--lora-target-modules", "qkv_proj"),
    ]
    assert "--lora-target-modules" not in flags(ServerConfig("m", "n", lora=LoraSlots(targets=())), "cpu")
    assert "--enable-lora" not in flags(ServerConfig("m", "n"), "cpu")
    assert environment(config, "cpu")["VLLM_CPU_KVCACHE_SPACE"] == "2"
    assert "VLLM_CPU_KVCACHE_SPACE" not in environment(config, "gpu")


def test_equal_configurations_and_only_they_share_a_key() -> None:
    assert ServerConfig("m", "n").key() == ServerConfig("m", "n").key()
    assert ServerConfig("m", "n").key() != ServerConfig("m", "n", max_num_seqs=2).key()


def test_without_vllm_it_says_what_to_do(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_server, "vllm_variant", lambda: None)
    with pytest.raises(ModelUnavailable, match="make setup"):
        attach(CONFIG)
