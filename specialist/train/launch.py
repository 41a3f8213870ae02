"""How the processes of a training run are started: the same program everywhere, on a CPU, a GPU or many."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from automem.models import vllm_server
from specialist.train.spec import Setup


def command(setup: Setup, folder: Path, port: int | None = None) -> list[str]:
    """What is started: one process, or one for each device by way of accelerate.

    Args:
        setup: how it computes.
        folder: of the run.
        port: on loopback, by which several processes find each other; a free one when not given.
    """
    module = ["-m", "specialist.train", str(folder), "--with-parent"]
    if setup.processes == 1:
        return [sys.executable, *module]
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--num_machines", "1", "--mixed_precision", "no"]
    launcher += ["--dynamo_backend", "no", "--num_processes", str(setup.processes)]
    launcher += ["--main_process_ip", vllm_server.HOST, "--main_process_port", str(port or _free_port())]
    # On CPUs too: accelerate has no other way to start several processes on one machine without MPI.
    launcher.append("--multi_gpu")
    if setup.device == "cpu":
        launcher += ["--num_cpu_threads_per_process", str(max(1, len(os.sched_getaffinity(0)) // setup.processes))]
    return [*launcher, *module]


def environment(setup: Setup, inherited: Mapping[str, str]) -> dict[str, str]:
    """The processes' environment: ours without keys, and nothing that phones home; the base model is there."""
    found = {name: value for name, value in inherited.items() if not name.endswith(("_API_KEY", "_TOKEN"))}
    found |= {
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONPATH": os.pathsep.join([_ours(), *filter(None, [inherited.get("PYTHONPATH")])]),
    }
    if setup.device == "cpu":
        preload = [*filter(None, (inherited.get("LD_PRELOAD"), vllm_server.tcmalloc()))]
        found |= {"CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true"}
        if preload:
            found["LD_PRELOAD"] = ":".join(preload)
    elif setup.processes == 1:
        # Else the trainer would want to use all of them from one process.
        found.setdefault("CUDA_VISIBLE_DEVICES", "0")
        found["CUDA_VISIBLE_DEVICES"] = found["CUDA_VISIBLE_DEVICES"].split(",")[0]
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((vllm_server.HOST, 0))
        return probe.getsockname()[1]


def _ours() -> str:
    """The folder from which our packages are imported."""
    return str(Path(__file__).resolve().parents[2])
