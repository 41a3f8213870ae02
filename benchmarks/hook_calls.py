"""What a call to scaffold code costs, and what open episodes cost in memory.

    python benchmarks/hook_calls.py [--mode bubblewrap] [--calls 5000] [--episodes 200]

The code is some 300 lines of the kind that scaffolds have; `observe` reads a screen as large as
NetHack's and looks for what is near, `check_action` returns at once. Times are of whole calls, from
one process to the other and back. Memory is what the kernel counts for all processes of the
sandbox together, shared pages once.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console
from rich.table import Table

from automem.sandbox import Process, Sandbox, SandboxConfig, choose_mode

STATUS = (
    "Agent the Stripling St:18/02 Dx:12 Co:18 In:7 Wi:9 Ch:8 Neutral S:0\nDlvl:1 $:0 HP:16(16) Pw:1(1) AC:6 Xp:1/0 T:1"
)
ROOM = ["-" * 40, *("|" + "." * 38 + "|" for _ in range(18)), "-" * 40]
ROOM[7] = "|......@...d..........<.........^.......|"

HOOKS = """
from __future__ import annotations
import re
from collections import Counter, deque
from dataclasses import dataclass, field
from automem.hooks import Again, Memory, Operation, Step, upsert, write

STATUS = re.compile(r"HP:(?P<hp>-?\\d+)\\((?P<top>\\d+)\\).*T:(?P<turn>\\d+)")
SIGN = re.compile(r"[^-.| ]")

@dataclass
class Place:
    x: int
    y: int
    sign: str
    seen: int = 0
    notes: list[str] = field(default_factory=list)

class Hooks:
    def __init__(self):
        self.places: dict[tuple[int, int], Place] = {}
        self.recent: deque[str] = deque(maxlen=16)
        self.counts: Counter[str] = Counter()

    def reset(self, game: str, task: str) -> None:
        self.game, self.task = game, task

    def observe(self, step: Step) -> dict[str, str]:
        self.recent.append(step.action or "")
        self.counts[step.action or ""] += 1
        found = STATUS.search(step.observation)
        here = None
        for y, row in enumerate(step.observation.splitlines()[1:22]):
            for seen in SIGN.finditer(row):
                x, sign = seen.start(), seen[0]
                if sign == "@":
                    here = (x, y)
                else:
                    self.places[x, y] = Place(x, y, sign, step.number)
        if here is None:
            return {}
        near = sorted(self.places.values(), key=lambda p: (abs(p.x - here[0]) + abs(p.y - here[1]), p.x, p.y))[:8]
        texts = {"near": "; ".join(f"{p.sign} at {p.x - here[0]:+d},{p.y - here[1]:+d}" for p in near)}
        if found:
            texts["status"] = f"HP {found['hp']} of {found['top']}, turn {found['turn']}"
        if len(set(self.recent)) <= 2 and len(self.recent) == 16:
            texts["warning"] = "You repeat yourself."
        return texts

    def maintain(self, step: Step, memory: Memory) -> list[Operation]:
        return [write("status.txt", f"{file.name}: {file.lines}") for file in memory.files()]

    def check_action(self, step: Step, action: str) -> str | Again | None:
        return None
""" + "".join(
    f'''
    def rule_{n}(self, text: str) -> str | None:
        """What to do about case {n}."""
        words = [word for word in text.split() if len(word) > {n % 5}]
        if len(words) > {n} and words[0] in ("north", "south", "east", "west", "case {n}"):
            return f"{{words[0]}} after {{len(words)}} words, as case {n} says"
        return None
'''
    for n in range(35)
)


def step(number: int) -> list[object]:
    """A step of NetHack, some 1.5 kB."""
    text = "\n".join(
        [f"You see here step {number}.", *ROOM, STATUS, "inventory: a long sword, a dagger, 2 apples. " * 12]
    )
    return [number, text, "north", "north", ["north", "east"] * 8]


async def timed(process: Process, method: str, calls: int) -> list[float]:
    """Microseconds of each call."""
    times = []
    for number in range(calls):
        args = [step(number), "north"][: 2 if method == "check_action" else 1]
        start = time.perf_counter()
        await process.call(method, args)
        times.append((time.perf_counter() - start) * 1e6)
    return times


def processes_below(pid: int) -> set[int]:
    """A process and all its descendants."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, todo = set(), [pid]
    while todo:
        found.add(current := todo.pop())
        todo += parents.get(current, [])
    return found


def resident_mb(pids: Iterable[int]) -> float:
    """Memory of processes in MB, pages that several share counted once (PSS)."""
    total = 0
    for pid in pids:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total * 1024 / 1e6


async def measure(options: argparse.Namespace) -> None:
    """Measure and print both tables."""
    mode = options.mode or choose_mode(SandboxConfig())
    sandbox = Sandbox(SandboxConfig(call_seconds=60), mode)
    console = Console()
    start = time.perf_counter()
    first = await sandbox.open(HOOKS)
    started = time.perf_counter() - start
    table = Table(title=f"{mode}: a call, in microseconds ({len(str(step(0)[1]))} characters of observation)")
    for name in ("", "median", "99 %"):
        table.add_column(name, justify="left" if not name else "right")
    for method in ("check_action", "observe"):
        await timed(first, method, 200)
        times = await timed(first, method, options.calls)
        table.add_row(
            f"{method}, one episode", f"{statistics.median(times):.0f}", f"{statistics.quantiles(times, n=100)[98]:.0f}"
        )
    others = [first, *[await sandbox.open(HOOKS) for _ in range(7)]]
    start = time.perf_counter()
    each = await asyncio.gather(*(timed(process, "observe", options.calls // 4) for process in others))
    rate = sum(map(len, each)) / (time.perf_counter() - start)
    times = [value for series in each for value in series]
    table.add_row(
        "observe, eight episodes at once",
        f"{statistics.median(times):.0f}",
        f"{statistics.quantiles(times, n=100)[98]:.0f}",
    )
    console.print(table)
    console.print(f"  {rate:,.0f} calls a second with eight; start of the sandbox {started * 1e3:.0f} ms")

    start = time.perf_counter()
    opened = [*others, *[await sandbox.open(HOOKS) for _ in range(options.episodes - len(others))]]
    took = (time.perf_counter() - start) / max(1, options.episodes - len(others))
    for number in range(20):
        await asyncio.gather(*(process.call("observe", [step(number)]) for process in opened))
    running = processes_below(os.getpid()) - {os.getpid()}
    try:
        size = f"{resident_mb(running):,.0f} MB"
    except PermissionError:
        size = "memory that only root may look at"
    console.print(f"  {len(opened)} open episodes, 20 calls each: {size}; {took * 1e3:.1f} ms to open one")
    await sandbox.close()


def main() -> None:
    """Measure one mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=["bubblewrap", "landlock", "unsafe"], help="the best that runs here")
    parser.add_argument("--calls", type=int, default=5_000)
    parser.add_argument("--episodes", type=int, default=200)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
