"""What a person sees while an evaluation runs: each episode, the running mean, tokens a second, time left."""

from __future__ import annotations

import time

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from automem.episode import RESULT, EpisodeJob
from automem.executor import Outcome
from automem.game_pool import RemoteGame
from automem.memory import Memory
from automem.models.registry import NO_LANGUAGE_MODELS
from automem.records import Phase, StepRecord, Turn
from automem.runs import Run
from automem.vocabulary import one_line

ROWS = 12
"""Episodes listed at once; the others are counted."""


class Progress:
    """A live table on a terminal, one line an episode elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._start = time.monotonic()
        """When the episodes began; starting a server does not count."""
        self._playing: dict[tuple[str, int], tuple[EpisodeJob, StepRecord]] = {}
        self._finished: list[Outcome] = []
        self._found = 0
        self._total = 0
        self._tokens = 0
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._draw, transient=True)

    def __enter__(self) -> Progress:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def reaching(self, model: str) -> None:
        """Say what is waited for."""
        if model not in NO_LANGUAGE_MODELS:
            self._console.print(f"reaching {model}; a server on this machine takes a minute to start", highlight=False)

    def planned(self, run: Run, jobs: list[EpisodeJob]) -> None:
        """Learn how many episodes there are."""
        self._start = time.monotonic()
        self._total = len(jobs)
        self._found = sum((job.folder / RESULT).exists() for job in jobs)
        self._console.print(f"run {run.config.name}: {len(jobs)} episodes", highlight=False, markup=False)
        if self._found:
            self._console.print(f"{self._found} of them are finished already", highlight=False)

    def turn(self, phase: Phase, turn: Turn) -> None:
        """Count the tokens."""
        self._tokens += turn.prompt_tokens + turn.completion_tokens

    async def stepped(self, job: EpisodeJob, game: RemoteGame, memory: Memory, record: StepRecord) -> None:
        """Note where the episode stands."""
        self._playing[job.task, job.seed] = (job, record)

    def ended(self, outcome: Outcome) -> None:
        """Say how the episode ended."""
        job, result = outcome.job, outcome.result
        self._playing.pop((job.task, job.seed), None)
        self._finished.append(outcome)
        if result is None:
            told = one_line(outcome.error or "", 600)
            self._console.print(Text(f"{job.task} {job.seed}: not finished: {told}", style="red"))
            return
        end = "ended" if result.terminated else "at its limit"
        self._console.print(
            f"{len(self._finished)}/{self._total}  {job.task} {job.seed}: {100 * result.progression:.2f} % "
            f"in {result.steps} steps ({end}); mean {100 * self._mean():.2f} %",
            highlight=False,
        )

    def _mean(self) -> float:
        values = [o.result.progression for o in self._finished if o.result is not None]
        return sum(values) / len(values) if values else 0.0

    def _seconds(self) -> float:
        return max(time.monotonic() - self._start, 1e-9)

    def _left(self) -> str:
        """Time left, as if the episodes to come took as long as those that were played here."""
        played = sum(o.result is not None for o in self._finished) - self._found
        under_way = sum(record.step / job.steps for job, record in self._playing.values())
        done = max(played, 0) + under_way
        if done <= 0.01:
            return "?"
        seconds = self._seconds() / done * max(self._total - self._found - done, 0)
        return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"

    def _draw(self) -> Group:
        table = Table(show_edge=False, pad_edge=False, box=None)
        for name in ("task", "seed", "step", "", "progression"):
            table.add_column(name, justify="left" if name == "task" else "right")
        for job, record in list(self._playing.values())[:ROWS]:
            bar = ProgressBar(total=job.steps, completed=record.step + 1, width=20)
            step = f"{record.step + 1}/{job.steps}"
            table.add_row(job.task, str(job.seed), step, bar, f"{100 * record.progression:.2f} %")
        line = Text(
            f"{len(self._finished)}/{self._total} episodes, mean {100 * self._mean():.2f} %, "
            f"{self._tokens / self._seconds():,.0f} tokens/s, time left {self._left()}"
        )
        return Group(table, line)
