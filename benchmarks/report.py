"""How large reports are, and how fast: ``python benchmarks/report.py [--run RUN]``.

Ten episodes of Crafter of 1,000 steps, played by `scripted` with crafter/v1 if no run is given (some minutes;
seeds that it is known to survive). Makes the report, opens it in headless Chromium some times, and steps
through it: forwards with the arrow key, and to steps anywhere, in all episodes.

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

STEPPING = """async (places) => {
    const root = document.documentElement;
    const painted = () => new Promise((over) => requestAnimationFrame(() => setTimeout(over)));
    const until = async (wanted) => {
        while (root.dataset.shown !== wanted) await new Promise((over) => queueMicrotask(() => setTimeout(over)));
    };
    const found = [];
    for (const [episode, step] of places) {
        const begun = performance.now();
        if (step === null) {
            const [shown, at] = root.dataset.shown.split(",").map(Number);
            document.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));
            await until(`${shown},${at + 1}`);
        } else {
            location.hash = `#watch=${episode},${step}`;
            await until(`${episode},${step}`);
        }
        document.body.getBoundingClientRect();
        const laid = performance.now();
        await painted();
        found.push([laid - begun, performance.now() - begun]);
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
            chosen = random.Random(0)
            for name, places in (
                ("next step", [[0, None]] * arguments.steps),
                ("any step of any episode", [_anywhere(gathered, chosen) for _ in range(arguments.steps)]),
            ):
                times = browser.run(f"({STEPPING})({json.dumps(places)})")
                told(f"{name}, laid out", [laid for laid, _ in times], 50)
                told(f"{name}, painted", [painted for _, painted in times], 50)
            print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


def _anywhere(gathered: Gathered, chosen: random.Random) -> list[int]:
    number = chosen.randrange(len(gathered.episodes))
    return [number, chosen.randrange(gathered.episodes[number].result.steps)]


if __name__ == "__main__":
    main()
