"""How large reports are, and how fast: ``python benchmarks/report.py [--run RUN]``.

Ten episodes of Crafter of 1,000 steps, played by `scripted` with crafter/v1 if no run is given (some minutes;
seeds on which it mostly lives that long). Makes the report, opens it in headless Chromium some times, and steps
through all episodes: with the slider to steps anywhere, and on from there with the arrow key.

Opening: from navigation until the first step is shown. A step: from the key until its picture, turns and
memory are laid out; and until they are painted, which waits for the screen's next frame of 16.7 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from automem import runs  # noqa: E402
from automem.report.gather import Gathered, gather  # noqa: E402
from automem.report.page import page  # noqa: E402
from automem.report.write import write  # noqa: E402
from tests.report.chromium import FOUND, WHY_NOT, Browser  # noqa: E402

SEEDS = "1000,1002,1003,1009,1010,1011,1016,1017,1019,1021"

STEPPING = """async (moves) => {
    const root = document.documentElement;
    const painted = () => new Promise((over) => requestAnimationFrame(() => setTimeout(over)));
    const until = async (wanted) => {
        while (root.dataset.shown !== wanted) await new Promise((over) => setTimeout(over));
    };
    const change = (id, value, event) => {
        document.getElementById(id).value = value;
        document.getElementById(id).dispatchEvent(new Event(event));
    };
    const found = [];
    for (const [way, to] of moves) {
        const [episode, step] = root.dataset.shown.split(",").map(Number);
        const begun = performance.now();
        if (way === "key") {
            document.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));
            await until(`${episode},${step + 1}`);
        } else if (way === "slider") {
            change("at", to, "input");
            await until(`${episode},${to}`);
        } else {
            change("episode", to, "change");
            await until(`${to},0`);
        }
        document.body.getBoundingClientRect();
        const laid = performance.now();
        await painted();
        found.push([way, laid - begun, performance.now() - begun]);
    }
    return found;
}"""


def played() -> runs.Run:
    """A new run, in a folder that is left behind for the next time."""
    folder = Path(tempfile.gettempdir()) / "automem-report-benchmark"
    os.environ["AUTOMEM_RUNS"] = str(folder)
    if not runs.exists("ten"):
        command = [
            sys.executable,
            "-m",
            "automem.cli",
            "eval",
            "crafter",
            "--model",
            "scripted",
            "--scaffold",
            "crafter/v1",
        ]
        command += ["--seeds", SEEDS, "--steps", "1000", "--run", "ten", "--workers", "2"]
        subprocess.run(command, check=True, cwd=ROOT)
    return runs.load("ten")


def made(run: runs.Run, out: Path) -> Gathered:
    """The report, and what it took."""
    begun = time.perf_counter()
    gathered = gather([run])
    between = time.perf_counter()
    size = write(page(gathered), out)
    over = time.perf_counter()
    steps = sum(episode.result.steps for episode in gathered.episodes)
    print(
        f"report of {len(gathered.episodes)} episodes, {steps} steps: {size / 1e6:.2f} MB (at most 20), "
        f"{size / steps:.0f} bytes a step"
    )
    print(
        f"made in {over - begun:.1f} s: {between - begun:.1f} s to read and draw, {over - between:.1f} s for the page"
    )
    return gathered


def told(name: str, times: list[float], limit: float) -> None:
    """Median, 95th percentile and worst, in ms."""
    ordered = sorted(times)
    high = ordered[int(0.95 * (len(ordered) - 1))]
    print(
        f"{name}: median {statistics.median(ordered):.1f}, 95 % {high:.1f}, worst {ordered[-1]:.1f} ms "
        f"(at most {limit:.0f})"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", help="a run, by name or folder")
    parser.add_argument("--opens", type=int, default=5)
    parser.add_argument("--steps", type=int, default=150)
    arguments = parser.parse_args()
    run = runs.load(arguments.run) if arguments.run else played()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "report.html"
        gathered = made(run, out)
        if FOUND is None:
            sys.exit(WHY_NOT)
        with Browser(1280, 800) as browser:
            opened = []
            for _ in range(arguments.opens):
                browser.open(out)
                browser.until("document.documentElement.dataset.shown")
                opened.append(browser.run("performance.now()"))
            told("opening", opened, 2000)
            browser.run("document.getElementById('player').scrollIntoView()")
            times = browser.run(f"({STEPPING})({json.dumps(_moves(gathered, arguments.steps))})")
            for way, name in (
                ("key", "next step"),
                ("slider", "any step of the episode"),
                ("episode", "another episode"),
            ):
                told(f"{name}, laid out", [laid for how, laid, _ in times if how == way], 50)
                told(f"{name}, painted", [painted for how, _, painted in times if how == way], 50)
            print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


def _moves(gathered: Gathered, steps: int) -> list[tuple[str, int]]:
    """Through all episodes: to steps anywhere, and on from there."""
    chosen = random.Random(0)
    moves: list[tuple[str, int]] = []
    while len(moves) < 2 * steps:
        for number, episode in enumerate(gathered.episodes):
            last = episode.result.steps
            anywhere = [("slider", chosen.randrange(last)) for _ in range(8)]
            moves += [("episode", number), *anywhere, ("slider", chosen.randrange(max(1, last - 8))), *[("key", 0)] * 8]
    return moves


if __name__ == "__main__":
    main()
