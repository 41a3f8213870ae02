"""How fast traces answer questions: ``python benchmarks/trace_questions.py [--steps 100000]``.

Writes a run of ten episodes of a tenth of the steps each and one long episode, with the records of a
scaffold that notes every observation verbatim (about 8 kB of JSON a step, 470 characters of it into
memory), through the code that writes them in play. The ten are killed at the worst moment, just before their
index would say what the last steps come to. Then asks what people ask. No game is played.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from automem import runs, scaffold, trace
from automem.episode import MEMORY, RESULT, STEPS, write_json
from automem.memory import Memory
from automem.ops import Op
from automem.records import Executed, Prompt, StepRecord, Turn
from automem.runs import PlannedTask, PlayedModel, PlayedScaffold, RunConfig
from automem.scaffold import Scaffold
from automem.trace import index
from automem.trace.search import search
from automem.trace.stats import so_far
from automem.trace.tally import Tally

THINGS = ("grass", "tree", "water", "stone", "coal", "zombie", "table", "sand", "path", "cow")
PLACES = ("north", "south-east", "west", "north-west", "south")
QUERIES = ("tree", "water", "coal", "zombie", "diamond", "table")
ACTIONS = ("Move West", "Move East", "Move North", "Move South", "Do", "Sleep", "Noop")
HEADS = {
    "log": "\n\n# LOG\nThe observation is the outcome of your last action, {action}. Record in memory what will help "
    "later: where you are, what is around, what the action changed.\n\nFiles now:\n{files}\n",
    "plan": "\n\n# PLAN\nChoose the next action. Read what you need from memory first: search for places and things, "
    "or look at the latest entries. Memory cannot be changed now.\n\nFiles now:\n{files}\n",
}


def observation(chosen: random.Random) -> str:
    """What a game might show, about 440 characters."""
    seen = ", ".join(
        f"{chosen.choice(THINGS)} {chosen.randint(1, 9)} steps to your {chosen.choice(PLACES)}" for _ in range(14)
    )
    return f"You see: {seen}.\nhealth {chosen.randint(1, 9)}/9, food {chosen.randint(1, 9)}/9"


class Episode:
    """An episode that writes itself: memory, records and trace are real, everything said is made up."""

    def __init__(self, folder: Path, played: Scaffold, seed: int, indexed: bool = True) -> None:
        folder.mkdir(parents=True)
        self._chosen = random.Random(seed)
        files = [file.spec() for file in played.schema.files]
        self.memory = Memory(
            folder / MEMORY, files, played.schema.limits.for_memory(), initial=played.initial, replace=True
        )
        self.tally = Tally()
        self.writer = trace.TraceWriter(folder / STEPS, self.memory if indexed else None, played.identity, self.tally)
        self._action = "Noop"
        self._before: StepRecord | None = None

    def record(self, step: int) -> StepRecord:
        """The next step; memory is changed as it says."""
        seen = observation(self._chosen)
        listing = "\n".join(f"- {name}: {lines} lines, {size} bytes" for name, lines, size in self.memory.listing())

        def turn(phase: str, prompt: Prompt, ops: list[Op], text: str) -> Turn:
            done = tuple(self._run(op) for op in ops)
            return Turn("fixed", prompt, text, done, (), 2000, len(text) // 4, 1500, None, 0.1)

        def asked(phase: str) -> Prompt:
            return Prompt("", "observation", HEADS[phase].format(action=self._action, files=listing))

        note = f"Step {step}, {self._action}: {seen}".replace("\n", " ")
        log = turn("log", asked("log"), [Op("APPEND", ("map_notes.txt", note), (0, 500))], f"I note it. {note}")
        search = [Op("SEARCH", ("map_notes.txt", query), (0, 40)) for query in self._chosen.sample(QUERIES, 2)]
        consult = turn("plan", asked("plan"), search, "I look. " + " ".join(op.label for op in search))
        self._action = self._chosen.choice(ACTIONS)
        act = turn("plan", Prompt("", "results", "\nGo on."), [], f"<|ACTION|>{self._action}<|END|>")
        self.memory.flush()
        return StepRecord(
            step, seen, (log,) if step else (), (consult, act), self._action, self._action, 0, False,
            0.1, min(1.0, step / 1e6), {"collect_wood": 1 + step // 100}, False, False, (),
            "You play a game. " * 100 if step == 0 else None,
        )  # fmt: skip

    def _run(self, op: Op) -> Executed:
        result = self.memory.run(op)
        return Executed(
            op.name, op.args, op.span, op.label, result.text, result.ok, result.found, result.bytes_added,
            result.duplicate, result.truncated,
        )  # fmt: skip

    def append(self, record: StepRecord) -> None:
        """Write a step; the one before it is counted first, as in play."""
        if self._before is not None:
            self.tally.add(self._before, record.observation)
        self._before = record
        self.writer.append(record)

    def play(self, steps: int) -> None:
        """Write so many steps."""
        for step in range(steps):
            self.append(self.record(step))
        self.writer.close()
        self.memory.close()


def make_run(name: str, seeds: int, steps: int, killed: bool) -> Path:
    """A run of made-up episodes, unfinished: without ``episode.json``.

    Args:
        killed: each plays in a process that ends without closing anything.
    """
    played = scaffold.load("crafter/v0")
    config = RunConfig(
        name=name,
        target="crafter",
        created=runs.now(),
        model=PlayedModel(name="fixed"),
        scaffolds={"crafter": PlayedScaffold(ref=played.ref, identity=played.identity, folder="scaffolds/crafter/v0")},
        tasks=(PlannedTask(task="Crafter", seeds=tuple(range(seeds)), steps=steps),),
        versions=runs.versions(),
    )
    run = runs.create(config, {"crafter": played})
    for job in run.jobs():
        if killed and (child := os.fork()):
            os.waitpid(child, 0)
            continue
        episode = Episode(job.folder, played, job.seed)
        if not killed:
            episode.play(steps)
            continue
        try:
            for step in range(steps):
                episode.append(episode.record(step))
        finally:
            os._exit(0)
    return run.folder


def cpu_seconds() -> float:
    """What all processors have done so far for this process and for those that it started and that are over."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def seconds(what: Callable[[], object]) -> tuple[float, float]:
    """Seconds that one call takes, and of all processors together while it does."""
    cpu, start = cpu_seconds(), time.perf_counter()
    what()
    return time.perf_counter() - start, cpu_seconds() - cpu


def timed(what: Callable[[], object]) -> str:
    """The same in words. On a machine that does other things, too, the second figure is the better one."""
    return "{:.3f} s ({:.2f} s of CPU)".format(*seconds(what))


def fresh(question: str) -> str:
    """How long a question takes in a process that has asked nothing yet, imports left out; the best of five."""
    ask = (
        "import time; from automem import trace; trace.EpisodeTrace, trace.RunTrace; "
        f"wall, cpu = time.perf_counter(), time.process_time(); {question}; "
        "print(time.perf_counter() - wall, time.process_time() - cpu)"
    )
    said = [subprocess.run([sys.executable, "-c", ask], check=True, capture_output=True, text=True) for _ in range(5)]
    wall, cpu = (min(column) for column in zip(*(map(float, one.stdout.split()) for one in said), strict=True))
    return f"{wall:.3f} s ({cpu:.2f} s of CPU)"


@contextlib.contextmanager
def sealed(folder: Path) -> Iterator[None]:
    """With its index sealed, as that of a finished episode is after the first question."""
    path = index.path_of(folder / STEPS)
    before = path.read_bytes()
    while len(path.read_bytes()) == len(before):
        time.sleep(1)  # a seal wants a trace that was left alone for a while
        index.seal(folder / STEPS, index.load(folder / STEPS))
    yield
    path.write_bytes(before)


def writer_overhead(folder: Path, steps: int) -> dict[str, float]:
    """Microseconds that counting and writing a record takes, without and with the index."""
    played = scaffold.load("crafter/v0")
    found = {}
    episodes = {name: Episode(folder / name, played, 1, name == "with") for name in ("without", "with")}
    times: dict[str, list[float]] = {name: [] for name in episodes}
    for step in range(steps):
        for name, episode in episodes.items():
            record = episode.record(step)
            times[name].append(seconds(lambda: episode.append(record))[1])  # noqa: B023 - called at once
    for name, episode in episodes.items():
        episode.writer.close()
        found[name] = 1e6 * statistics.fmean(times[name])
    return found


QUERIES_ASKED = {
    "SQL, count of steps": "select count(*) from steps",
    "SQL, tokens by phase": "select phase, sum(prompt_tokens), sum(completion_tokens) from turns group by phase",
    "SQL, operations by name": "select name, count(*), avg(added) from ops group by name",
    "SQL, steps that show a word": "select step from steps where observation like '%diamond%'",
    "SQL, replies by length": "select phase, avg(length(reply)) from turns group by phase",
}


def figures(steps: int, keep: Path | None) -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    folder = Path(tempfile.mkdtemp(prefix="trace-questions-"))
    os.environ["AUTOMEM_RUNS"] = str(keep or folder)
    try:
        for name, seeds, length in (("long", 1, steps), ("ten", 10, steps // 10 - 1)):
            if not runs.exists(name):
                making = functools.partial(make_run, name, seeds, length, seeds > 1)
                yield f"made {seeds} x {length} steps", timed(making)
        yield from one_episode(Path(os.environ["AUTOMEM_RUNS"]) / "long" / "episodes" / "Crafter" / "seed-0", steps)
        yield "statistics of ten episodes, unfinished", timed(lambda: trace.RunTrace("ten").stats())
        finish("ten")
        yield "statistics of ten episodes, finished", timed(lambda: trace.RunTrace("ten").stats())
        for name, microseconds in writer_overhead(folder / "overhead", min(steps, 10_000)).items():
            yield f"writing a record {name} the index", f"{microseconds:.1f} µs"
    finally:
        shutil.rmtree(folder)


def one_episode(folder: Path, steps: int) -> Iterator[tuple[str, str]]:
    """Questions to one long episode."""
    size = (folder / STEPS).stat().st_size
    yield "trace, bytes a step", f"{size / steps:.0f}"
    yield "index, bytes a step", f"{index.path_of(folder / STEPS).stat().st_size / steps:.1f}"
    asked = trace.EpisodeTrace(folder)
    yield f"memory at step {steps - 2}, first question", timed(lambda: asked.memory(steps - 2))
    first = f"trace.EpisodeTrace({str(folder)!r}).memory({steps - 2})"
    yield "the same in a new process", fresh(first)
    with sealed(folder):
        yield "the same, index sealed", fresh(first)
    chosen = random.Random(0)
    times = [seconds(lambda: asked.memory(chosen.randrange(steps))) for _ in range(20)]
    for name, middle in (("median", statistics.median), ("slowest", max)):
        wall, cpu = (middle(column) for column in zip(*times, strict=True))
        yield f"memory at 20 random steps, {name}", f"{wall:.3f} s ({cpu:.2f} s of CPU)"
    for name, query in QUERIES_ASKED.items():
        yield name, timed(lambda: trace.sql(asked, query))  # noqa: B023 - called at once
    yield "search for a word that is nowhere", timed(lambda: search([asked], "unicorn", seconds=900))
    yield (
        "search for an expression that is nowhere",
        timed(lambda: search([asked], "uni+corn", regex=True, seconds=900)),
    )


def finish(name: str) -> None:
    """Give every episode of a run the ``episode.json`` that it would have in the end."""
    for episode in trace.RunTrace(name).episodes:
        played = so_far(episode)
        write_json(episode.folder / RESULT, {**asdict(played), "counts": played.counts.as_dict()})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, default=None, help="make the runs here, or use those that are here")
    arguments = parser.parse_args()
    for name, figure in figures(arguments.steps, arguments.keep):
        print(f"{name:45}{figure:>28}", flush=True)
