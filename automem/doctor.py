"""What is installed, what can run here, what is missing and how to get it: `automem doctor`."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from automem.cache import cache_dir
from automem.models import smollm2, vllm_server
from automem.models.protocol import ModelUnavailable
from automem.sandbox import syscalls
from automem.sandbox.modes import trouble as sandbox_trouble

Status = Literal["ok", "warn", "missing"]

GIB = 2**30
DISK_GIB = 5.0
"""Free space below which a set-up (4 GB) or a long run may fail."""
MEMORY_GIB = 6.0
"""Free memory that vLLM with the embedded model wants, games beside it."""
SETUP = "make setup"
LIBSECCOMP = "apt-get install libseccomp2"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: what was looked at, a word or two.
        status: ``ok``; ``warn`` when something works less well without it; ``missing`` when
            something does not work at all.
        what: what was found, or what is the matter.
        how: how to get it; empty when there is nothing to do.
    """

    name: str
    status: Status
    what: str
    how: str = ""


def checks() -> list[Check]:
    """Look at everything, within some seconds. Starts no server and contacts nobody."""
    looks: tuple[Callable[[], Check], ...] = (
        python,
        games_installed,
        boxoban_levels,
        vllm,
        torch,
        training,
        embedded_model,
        gpu,
        api_keys,
        tcmalloc,
        bubblewrap,
        landlock,
        seccomp,
        cores,
        memory,
        disk,
    )
    return [_guarded(look) for look in looks]


def python() -> Check:
    """The Python that runs us."""
    return Check("python", "ok", f"{platform.python_version()}, {sys.executable}")


def games_installed() -> Check:
    """Whether the three simulators start, tried in a process of its own: two of them are C code."""
    packages = ("nle", "minihack", "crafter")
    absent = [name for name in packages if _version(name) is None]
    if absent:
        return Check("games", "missing", f"not installed: {', '.join(absent)}", SETUP)
    program = "import nle, minihack, crafter"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode:
        return Check("games", "missing", f"they do not start: {_last_line(done.stderr)}", SETUP)
    return Check("games", "ok", ", ".join(f"{name} {_version(name)}" for name in packages))


def boxoban_levels() -> Check:
    """Whether MiniHack's Boxoban is played on the official levels."""
    from games import boxoban

    kinds = {level_set: boxoban.find_source(level_set).kind for level_set in ("hard", "medium")}
    found = ", ".join(f"{level_set}: {kind}" for level_set, kind in kinds.items())
    if set(kinds.values()) == {"official"}:
        return Check("Boxoban levels", "ok", found)
    how = "automem games fetch, or AUTOMEM_BOXOBAN_LEVELS=FOLDER"
    return Check("Boxoban levels", "warn", f"{found}; generated ones do not compare with published results", how)


def vllm() -> Check:
    """Which vLLM, if any, can serve models here."""
    variant = vllm_server.vllm_variant()
    if variant is None:
        return Check("vLLM", "missing", "not installed: no local models; hosted ones and servers of yours work", SETUP)
    return Check("vLLM", "ok", f"{vllm_server.vllm_version()}, for {'GPUs' if variant == 'gpu' else 'CPUs'}")


def torch() -> Check:
    """Whether torch is the build that the installed vLLM wants."""
    found = _version("torch")
    if found is None:
        return Check("torch", "missing", "not installed; only local models and training need it", SETUP)
    if vllm_server.vllm_variant() != "cpu":
        return Check("torch", "ok", found)
    if "+cpu" not in found:
        return Check(
            "torch", "missing", f"{found} is not built for CPUs, as this vLLM wants", f"AUTOMEM_TORCH_INDEX=… {SETUP}"
        )
    beside = [name for name in ("torchvision", "torchaudio", "torchcodec") if _version(name)]
    if beside:
        how = f"pip uninstall {' '.join(beside)}"
        return Check("torch", "missing", f"{found}, but vLLM cannot start beside {', '.join(beside)}", how)
    return Check("torch", "ok", found)


def training() -> Check:
    """Whether specialists can be trained here."""
    found = {name: _version(name) for name in ("peft", "trl", "accelerate")}
    missing = [name for name, version in found.items() if version is None]
    if missing:
        return Check("training", "warn", f"{', '.join(missing)} not installed: loop 2 cannot train specialists", SETUP)
    return Check("training", "ok", ", ".join(f"{name} {version}" for name, version in found.items()))


def embedded_model() -> Check:
    """Whether `smollm2` is there, and converted already."""
    try:
        smollm2.gguf_file()
    except ModelUnavailable:
        return Check("smollm2", "missing", "its weights are not installed", SETUP)
    folder = smollm2.converted_folder()
    if folder.is_dir():
        return Check("smollm2", "ok", f"converted, {folder}")
    return Check("smollm2", "ok", "installed; its first use converts it, half a minute")


def gpu() -> Check:
    """NVIDIA GPUs, and whether the vLLM here uses them."""
    found = None
    if shutil.which("nvidia-smi"):
        query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
        done = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False)
        found = "; ".join(done.stdout.strip().splitlines()) if done.returncode == 0 else None
    if not found:
        return Check("GPU", "warn", "none: local models run on the CPU, for small ones only")
    if vllm_server.vllm_variant() == "cpu":
        return Check("GPU", "warn", f"{found}, but vLLM here is the build for CPUs", f"AUTOMEM_DEVICE=gpu {SETUP}")
    return Check("GPU", "ok", found)


def api_keys() -> Check:
    """Names of the API keys in the environment; never their values."""
    names = sorted(name for name, value in os.environ.items() if name.endswith("_API_KEY") and value)
    if names:
        return Check("API keys", "ok", ", ".join(names))
    return Check("API keys", "warn", "none in the environment: hosted models ask for one", "export OPENAI_API_KEY=…")


def tcmalloc() -> Check:
    """The allocator that vLLM's CPU build runs faster with."""
    found = vllm_server.tcmalloc()
    if found:
        return Check("tcmalloc", "ok", found)
    return Check("tcmalloc", "warn", "not found: vLLM on CPUs is slower", "apt-get install libtcmalloc-minimal4")


def bubblewrap() -> Check:
    """Whether bubblewrap can contain scaffold code, tried with code."""
    if reason := sandbox_trouble("bubblewrap"):
        if shutil.which("bwrap") is None:
            return Check("bubblewrap", "warn", "not installed", "apt-get install bubblewrap")
        how = LIBSECCOMP if "libseccomp" in reason else "allow unprivileged user namespaces"
        return Check("bubblewrap", "warn", f"cannot run here: {reason}", how)
    return Check("bubblewrap", "ok", f"{shutil.which('bwrap')} contains scaffold code")


def landlock() -> Check:
    """Whether Landlock can take bubblewrap's place where that cannot run, tried with code."""
    if reason := sandbox_trouble("landlock"):
        how = LIBSECCOMP if "libseccomp" in reason else "a kernel with Landlock, 5.13 or newer"
        return Check("Landlock", "warn", f"cannot run here: {reason}", how)
    return Check("Landlock", "ok", "contains scaffold code where bubblewrap cannot")


def seccomp() -> Check:
    """Whether system calls of scaffold code can be filtered, which both ways of containing it need."""
    try:
        instructions = len(syscalls.compiled(starting=False)) // 8
    except OSError as error:
        return Check("seccomp", "missing", f"{error}: no scaffold code can be run", LIBSECCOMP)
    return Check(
        "seccomp",
        "ok",
        f"{len(syscalls.ALLOWED) + len(syscalls.EXECUTABLE) + 1} calls allowed, {instructions} instructions",
    )


def cores() -> Check:
    """The processor cores that this process may use."""
    allowed = len(os.sched_getaffinity(0))
    return Check("cores", "ok" if allowed > 1 else "warn", f"{allowed} of {os.cpu_count()}")


def memory() -> Check:
    """Free memory, as the kernel counts it."""
    facts = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    free, total = (int(facts[name].split()[0]) * 1024 / GIB for name in ("MemAvailable", "MemTotal"))
    enough = free >= MEMORY_GIB
    what = f"{free:.1f} GiB free of {total:.1f}"
    return Check("memory", "ok" if enough else "warn", what if enough else f"{what}; smollm2 wants {MEMORY_GIB:g} GiB")


def disk() -> Check:
    """Free space where runs and converted models go."""
    free = {str(folder): shutil.disk_usage(folder).free / GIB for folder in (Path.cwd(), cache_dir())}
    what = ", ".join(f"{size:.0f} GiB free in {folder}" for folder, size in free.items())
    how = "AUTOMEM_RUNS and AUTOMEM_CACHE name other folders"
    return Check("disk", "ok", what) if min(free.values()) >= DISK_GIB else Check("disk", "warn", what, how)


def _guarded(look: Callable[[], Check]) -> Check:
    """A look that failed is a finding like any other: the rest is still worth seeing."""
    try:
        return look()
    except Exception as error:
        return Check(look.__name__.replace("_", " "), "warn", f"could not be looked at: {error}")


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it says nothing"])[-1]
