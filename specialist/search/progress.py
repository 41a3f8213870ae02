"""What a person sees while a search runs: what is collected, trained, played and decided, and how long it may take."""

from __future__ import annotations

import time

from rich.console import Console
from rich.live import Live
from rich.text import Text

from automem.episode import EpisodeJob
from automem.game_pool import RemoteGame
from automem.memory import Memory
from automem.records import Phase, StepRecord, Turn
from automem.vocabulary import one_line
from meta.gate import Look
from meta.points import bounded
from specialist.search.ledger import Row
from specialist.search.storage import SearchFolder
from specialist.train.curve import Row as CurveRow
from specialist.train.memory import GIB
from specialist.train.plan import TrainPlan

COLOURS = {"accepted": "green", "rejected": "red", "diverged": "yellow", "failed": "yellow"}


class SearchProgress:
    """Lines that stay, one for each thing that happened, and on a terminal a line that lives."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._start = time.monotonic()
        self._busy, self._since = "", 0.0
        self._steps, self._planned = 0, 0
        self._usd = 0.0
        self._tokens = 0
        self._curve: CurveRow | None = None
        self._loss: float | None = None
        self._held_out: float | None = None
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._draw, transient=True)

    def __enter__(self) -> SearchProgress:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def opened(self, search: SearchFolder, done: int) -> None:
        """Say what goes on."""
        config = search.config
        self._say(
            f"search {config.name}: a specialist of {config.base.name} for {config.gameplay.name}, "
            f"{config.scaffold.ref}, recipe {config.recipe.name or 'of its own'}, {config.decider.kind} decides"
        )
        if done:
            self._say(f"{done} training runs were over before; nothing of them is done again")

    def doing(self, text: str, steps: int = 0) -> None:
        """Say what begins."""
        self._busy, self._since = one_line(text, 200), time.monotonic()
        self._steps, self._planned, self._curve = 0, steps, None
        self._say(self._busy, "dim")

    def told(self, text: str) -> None:
        """Say what came of it."""
        self._say(one_line(text, 400))

    def planned(self, plan: TrainPlan) -> None:
        """Say what training will take."""
        if not plan.problems:
            self._say(f"  {planned_line(plan)}", "dim")

    def row(self, row: CurveRow) -> None:
        """Note how far training is; held-out losses stay to be read."""
        self._curve = row
        if row.loss is not None:
            self._loss = row.loss
        if row.held_out is not None:
            self._held_out = row.held_out
            self._say(f"  step {row.step} of {row.steps}: held-out loss {row.held_out:.4f}", "dim")

    def looked(self, number: str, look: Look) -> None:
        """Say what the gate sees."""
        self._say(f"  {number} after {look.seeds} seeds: {bounded(look.mean, look.lower, look.upper)}", "dim")

    def ended(self, row: Row) -> None:
        """Say how a training run ended."""
        losses = row.losses
        shown = [f"held-out loss {losses['held_out_before']:.3f} -> {losses['held_out_after']:.3f}"] * (
            "held_out_after" in losses
        )
        told = ", ".join([*shown, *filter(None, [one_line(row.told, 600)])])
        self._say(f"{row.number} {row.outcome}: {told}", COLOURS.get(row.outcome, "default"))

    def turn(self, phase: Phase, turn: Turn) -> None:
        """Count tokens and money of episodes."""
        self._tokens += turn.prompt_tokens + turn.completion_tokens
        self._usd += turn.cost or 0.0

    async def stepped(self, job: EpisodeJob, game: RemoteGame, memory: Memory, record: StepRecord) -> None:
        """Count steps."""
        self._steps += 1

    def _say(self, line: str, style: str = "default") -> None:
        self._console.print(Text(line, style=style), highlight=False, soft_wrap=True)

    def _draw(self) -> Text:
        parts = [self._busy, f"{(time.monotonic() - self._start) / 60:.1f} min"]
        if self._curve is not None:
            parts += _training(self._curve, self._loss, self._held_out)
        elif self._planned:
            parts.append(f"{self._steps:,} of at most {self._planned:,} steps")
            if self._steps:
                left = (time.monotonic() - self._since) * (self._planned / self._steps - 1)
                parts.append(f"at most {left / 60:.0f} min left")
        if self._usd:
            parts.append(f"{self._usd:.2f} USD")
        return Text(", ".join(parts), style="dim")


def planned_line(plan: TrainPlan) -> str:
    """What a training run will take, in a line."""
    left_out = f" ({plan.left_out} are too long)" if plan.left_out else ""
    return (
        f"{plan.examples} examples{left_out}, {plan.epoch_tokens:,} tokens an epoch, {plan.target_tokens:,} of "
        "them learnt; "
        f"{plan.steps} steps of {plan.step_examples}; {plan.adapter_parameters:,} weights; "
        f"{plan.memory_needed / GIB:.1f} GiB of memory, {plan.memory_free / GIB:.1f} are free"
    )


def _training(row: CurveRow, loss: float | None, held_out: float | None) -> list[str]:
    parts = [f"step {row.step} of {row.steps}"]
    if loss is not None:
        parts.append(f"loss {loss:.3f}")
    if held_out is not None:
        parts.append(f"held-out {held_out:.3f}")
    if row.tokens_per_second is not None:
        parts.append(f"{row.tokens_per_second:.0f} tokens/s")
    if row.left is not None:
        parts.append(f"{row.left / 60:.1f} min left")
    return parts
