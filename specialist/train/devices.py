"""What this machine can train on: its GPUs, cores and free memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from automem.models import cores

# In a process of its own: looking at a GPU takes memory of it for as long as the process lives.
_LOOK = """
import json, torch
found = []
for i in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
    free, total = torch.cuda.mem_get_info(i)
    found.append([torch.cuda.get_device_name(i), free, total, torch.cuda.is_bf16_supported()])
print(json.dumps(found))
"""

_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that torch can use.

    Attributes:
        name: as its maker calls it.
        free, total: bytes of memory.
        bfloat16: whether it computes in it.
    """

    name: str
    free: int
    total: int
    bfloat16: bool


@dataclass(frozen=True, slots=True)
class Machine:
    """What is there.

    Attributes:
        gpus: those that torch can use.
        unusable: why a GPU that is there cannot be used; empty when there is none.
        cores: that we may use.
        free: bytes of memory that can be had.
        bfloat16: whether the cores multiply in it.
    """

    gpus: tuple[Gpu, ...]
    unusable: str
    cores: int
    free: int
    bfloat16: bool


def machine() -> Machine:
    """Look at this machine; some seconds where there may be a GPU."""
    gpus, unusable = _gpus()
    return Machine(gpus, unusable, len(os.sched_getaffinity(0)), free_memory(), cores.multiply_bfloat16())


def free_memory() -> int:
    """Bytes that a new process can have: of the machine, and of what a container allows."""
    facts = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(facts["MemAvailable"].split()[0]) * 1024
    try:
        allowed = (_GROUPS / "memory.max").read_text().strip()
        stat = dict(line.split() for line in (_GROUPS / "memory.stat").read_text().splitlines())
        if allowed != "max":
            used = int((_GROUPS / "memory.current").read_text()) - int(stat.get("inactive_file", 0))
            free = min(free, int(allowed) - used)
    except (OSError, ValueError):
        pass
    return max(free, 0)


def _gpus() -> tuple[tuple[Gpu, ...], str]:
    if not (shutil.which("nvidia-smi") or Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists()):
        return (), ""
    done = subprocess.run([sys.executable, "-c", _LOOK], capture_output=True, text=True, timeout=300, check=False)
    try:
        found = tuple(Gpu(*one) for one in json.loads(done.stdout))
    except ValueError:
        return (), (done.stderr.strip().splitlines() or ["torch could not look at it"])[-1]
    return found, "" if found else "the torch that is installed does not use it"
