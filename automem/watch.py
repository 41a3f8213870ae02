"""What a person sees while an agent plays: the game, its memory operations, its memory folder."""

from __future__ import annotations

import asyncio
from collections import deque

from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from automem.episode import EpisodeJob
from automem.executor import Outcome
from automem.game_pool import RemoteGame
from automem.memory import Memory
from automem.models.registry import NO_LANGUAGE_MODELS
from automem.records import Phase, StepRecord, Turn
from automem.runs import Run
from automem.vocabulary import one_line
from games.protocol import Screen

OPERATIONS_KEPT = 60
FILE_LINES_SHOWN = 6
LEAST_FILES_HEIGHT = 8
"""Rows that the memory folder gets even where the game would fill the terminal."""


def screen_text(screen: Screen) -> Text:
    """A game's screen with its colours."""
    text = Text(no_wrap=True)
    for i, row in enumerate(screen):
        if i:
            text.append("\n")
        for characters, style in row:
            text.append(characters, style=style or None)
    return text


def turn_lines(phase: Phase, turn: Turn) -> list[Text]:
    """A turn in short: every operation with the start of its answer, every error, or the text when there is neither."""
    lines = []
    for op in turn.ops:
        line = _line(phase)
        line.append(op.label, style="bold cyan" if op.ok else "bold red")
        line.append(f"  {one_line(op.result, 160)}", style="default")
        lines.append(line)
    for error in turn.errors:
        lines.append(_line(phase).append(f"! {one_line(error, 300)}", style="red"))
    if not lines:
        lines.append(_line(phase).append(one_line(turn.text, 160) or "(no reply)", style="dim"))
    return lines


def hook_lines(record: StepRecord) -> list[Text]:
    """What the scaffold's hooks did in a step: operations of `maintain`, changed actions, and what went wrong."""
    lines = []
    for op in record.maintained:
        line = _line("hook").append(op.label, style="cyan" if op.ok else "bold red")
        lines.append(line.append(f"  {one_line(op.result, 160)}", style="default"))
    for event in record.hooks:
        told = {"repaired": "action changed to", "again": "asked to think again:"}.get(event.kind)
        line = _line("hook").append(f"{event.method} ", style="cyan")
        style = "red" if told is None else "yellow"
        lines.append(line.append(f"{told or event.kind + ':'} {one_line(event.text, 300)}", style=style))
    return lines


def _line(phase: str) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    return text.append(f"{phase.upper():4} ", style="dim")


class Steps:
    """One line a step: for logs, pipes and terminals that cannot redraw."""

    def __init__(self, console: Console, every: int = 1) -> None:
        """Args: every: print each so-many-th step."""
        self._console = console
        self._every = every

    def reaching(self, model: str) -> None:
        """Say what is waited for."""
        if model not in NO_LANGUAGE_MODELS:
            self._console.print(f"reaching {model}; a server on this machine takes a minute to start", highlight=False)

    def planned(self, run: Run, jobs: list[EpisodeJob]) -> None:
        """See `automem.evaluate.Watcher`."""

    def turn(self, phase: Phase, turn: Turn) -> None:
        """See `automem.agent.Listener`."""

    async def stepped(self, job: EpisodeJob, game: RemoteGame, memory: Memory, record: StepRecord) -> None:
        """Print the step."""
        if record.step % self._every and not (record.terminated or record.truncated):
            return
        turns = (*record.log, *record.plan)
        tokens = sum(turn.prompt_tokens + turn.completion_tokens for turn in turns)
        self._console.print(
            f"{job.task} {job.seed}  step {record.step:>4}  {record.action:<20} "
            f"progression {100 * record.progression:6.2f} %"
            f"  {sum(len(turn.ops) for turn in turns)} operations, {tokens} tokens",
            highlight=False,
            soft_wrap=True,
        )
        for event in record.hooks:
            self._console.print(
                f"  {event.method} {event.kind}: {one_line(event.text, 300)}",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )

    def ended(self, outcome: Outcome) -> None:
        """See `automem.evaluate.Watcher`."""

    def __enter__(self) -> Steps:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Watch:
    """The game, the operations and the memory files of one episode, redrawn as it is played."""

    def __init__(self, console: Console, delay: float = 0.0) -> None:
        """Args: delay: seconds to rest on each step, so that a fast player can be followed."""
        self._console = console
        self._delay = delay
        self._rows = 12
        self._operations: deque[Text] = deque(maxlen=OPERATIONS_KEPT)
        self._title = "starting"
        self._screen: RenderableType = Text("starting the game")
        self._files: RenderableType = Text("")
        self._layout = Layout()
        self._layout.split_column(Layout(name="top", ratio=3), Layout(name="files", ratio=2))
        self._layout["top"].split_row(Layout(name="game", minimum_size=40), Layout(name="operations"))
        self._live = Live(self._draw(), console=console, refresh_per_second=12, screen=False, vertical_overflow="crop")

    def __enter__(self) -> Watch:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def reaching(self, model: str) -> None:
        """Say what is waited for."""
        self._title = f"reaching {model}"
        self._live.update(self._draw())

    def planned(self, run: Run, jobs: list[EpisodeJob]) -> None:
        """See `automem.evaluate.Watcher`."""

    def ended(self, outcome: Outcome) -> None:
        """See `automem.evaluate.Watcher`."""

    def turn(self, phase: Phase, turn: Turn) -> None:
        """Show the operations of a turn at once."""
        self._operations.extend(turn_lines(phase, turn))
        self._live.update(self._draw())

    async def stepped(self, job: EpisodeJob, game: RemoteGame, memory: Memory, record: StepRecord) -> None:
        """Show the game and the folder after a step."""
        screen = await game.screen()
        self._screen = screen_text(screen)
        width = max((sum(len(characters) for characters, _ in row) for row in screen), default=40)
        self._layout["game"].size = min(width, 80) + 4
        self._rows = len(screen)
        self._title = (
            f"{job.task}, seed {job.seed}, step {record.step}: {record.action}  "
            f"progression {100 * record.progression:.2f} %"
        )
        self._files = _folder(memory)
        self._operations.extend(hook_lines(record))
        self._operations.append(Text(f"---- step {record.step}: {record.action}", style="bold green"))
        self._live.update(self._draw())
        if self._delay:
            await asyncio.sleep(self._delay)

    def _draw(self) -> Layout:
        height = min(max(self._rows + 2, 14), max(self._console.size.height - LEAST_FILES_HEIGHT, 6))
        self._layout["top"].size = height
        newest = list(self._operations)[-(height - 2) :]
        self._layout["game"].update(Panel(self._screen, title=self._title, title_align="left"))
        self._layout["operations"].update(Panel(Group(*newest), title="memory operations", title_align="left"))
        self._layout["files"].update(Panel(self._files, title="memory folder", title_align="left"))
        return self._layout


def _folder(memory: Memory) -> Table:
    """The files with the end of each."""
    table = Table(expand=True, show_edge=False, pad_edge=False)
    table.add_column("file", no_wrap=True)
    table.add_column("lines", justify="right")
    table.add_column("bytes", justify="right")
    table.add_column("newest lines", no_wrap=True, overflow="ellipsis", ratio=1)
    for name, lines, size in memory.listing():
        newest = memory.tail(name, FILE_LINES_SHOWN)
        table.add_row(name, f"{lines}", f"{size}", Text("\n".join(newest)))
    return table
