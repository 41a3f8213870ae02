"""What a person sees while a loop runs: what is reviewed, played and decided, and what it has cost so far."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from automem.episode import EpisodeJob
from automem.game_pool import RemoteGame
from automem.memory import Memory
from automem.models.registry import NO_LANGUAGE_MODELS
from automem.records import Phase, StepRecord, Turn
from automem.scaffold import Scaffold
from automem.vocabulary import one_line
from meta.evidence import Attempt
from meta.gate import Look
from meta.points import bounded
from meta.reviewer import Spent
from meta.storage import LoopFolder

COLOURS = {"accepted": "green", "rejected": "red", "invalid": "yellow", "failed": "yellow"}


class LoopProgress:
    """Lines that stay, one for each thing that happened, and on a terminal a live view of what is under way."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._start = time.monotonic()
        self._busy: dict[str, str] = {}
        self._bounded = True
        self._usd = 0.0
        self._tokens = 0
        self._steps = 0
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._draw, transient=True)

    def __enter__(self) -> LoopProgress:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def reaching(self, model: str) -> None:
        """Say what is waited for."""
        if model not in NO_LANGUAGE_MODELS:
            self._say(f"reaching {model}; a server on this machine takes a minute to start")

    def opened(self, loop: LoopFolder, done: Sequence[Attempt]) -> None:
        """Say what goes on."""
        config = loop.config
        self._usd += loop.spent().usd
        self._bounded = config.gate.kind == "sequential"
        self._say(f"loop {config.name}: {config.root.ref}, {config.model.name} plays, {config.reviewer.kind} reviews")
        if done:
            self._say(f"{len(done)} attempts are over already")

    def began(self, revision: int, parent: Scaffold, alpha: float) -> None:
        """Say what a revision is made from."""
        # The gate `paper` looks at the mean alone: it bounds no error.
        share = f"; error share of each candidate {100 * alpha:.2f} %" if self._bounded else ""
        self._say(f"revision {revision}, from {parent.ref}{share}")

    def playing(self, number: str, version: Scaffold, seeds: int) -> None:
        """Note what is played."""
        self._busy[number] = f"playing {version.ref}, {seeds} seeds"

    def doing(self, number: str, text: str) -> None:
        """Note what is done."""
        self._busy[number] = one_line(text, 200)

    def reviewed(self, number: str, description: str, spent: Spent) -> None:
        """Say what a review came to."""
        self._usd += spent.usd
        self._say(f"  {number} {one_line(description, 300)}{_cost(spent)}")

    def looked(self, number: str, look: Look) -> None:
        """Say what the gate sees."""
        self._say(f"  {number} after {look.seeds} seeds: {bounded(look.mean, look.lower, look.upper)}", "dim")

    def ended(self, attempt: Attempt) -> None:
        """Say how an attempt ended."""
        self._busy.pop(attempt.number, None)
        line = f"  {attempt.number} {attempt.outcome}: {one_line(attempt.why, 600)}"
        self._say(line, COLOURS.get(attempt.outcome, "default"))

    def turn(self, phase: Phase, turn: Turn) -> None:
        """Count tokens and money of episodes."""
        self._tokens += turn.prompt_tokens + turn.completion_tokens
        self._usd += turn.cost or 0.0

    async def stepped(self, job: EpisodeJob, game: RemoteGame, memory: Memory, record: StepRecord) -> None:
        """Count steps."""
        self._steps += 1

    def _say(self, line: str, style: str = "default") -> None:
        self._console.print(Text(line, style=style), highlight=False, soft_wrap=True)

    def _draw(self) -> Group:
        table = Table(show_edge=False, pad_edge=False, box=None, show_header=False)
        for number, text in self._busy.items():
            table.add_row(Text(number, style="bold"), Text(text))
        seconds = time.monotonic() - self._start
        money = f", {self._usd:.2f} USD" if self._usd else ""
        line = f"{seconds / 60:.1f} min, {self._steps:,} steps, {self._tokens:,} tokens of the task model{money}"
        return Group(table, Text(line, style="dim"))


def _cost(spent: Spent) -> str:
    parts = []
    if spent.turns:
        parts.append(f"{spent.turns} calls, {spent.prompt_tokens + spent.completion_tokens:,} tokens")
    if spent.usd:
        parts.append(f"{spent.usd:.2f} USD")
    return f" ({', '.join(parts)})" if parts else ""
