"""What a person sees: the newest operations, the game's colours, the memory folder."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest
from rich.console import Console

from automem.episode import EpisodeJob
from automem.game_pool import GamePool
from automem.memory import FileSpec, Memory
from automem.ops import Op
from automem.records import Executed, Prompt, StepRecord, Turn
from automem.watch import Watch, screen_text, turn_lines


def turn(*labels: str, text: str = "", errors: tuple[str, ...] = ()) -> Turn:
    ops = tuple(Executed("TAIL", ("a", "1"), (0, 1), label, f"answer to {label}") for label in labels)
    return Turn("fixed", Prompt(""), text, ops, errors, 1, 1, 0, None, 0.0)


@pytest.mark.parametrize("height", [24, 40])
def test_the_newest_operations_and_the_folder_are_in_view(tmp_path: Path, height: int) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=160, height=height, color_system=None)
    memory = Memory(tmp_path / "memory", [FileSpec("map_notes.txt", "log")])
    memory.run(Op("APPEND", ("map_notes.txt", "a tree to the west")))
    job = EpisodeJob(tmp_path, "NetHackChallenge-v0", 3, 10, tmp_path)
    record = StepRecord(0, "o", (), (turn(),), "north", "north", 0, False, 0.0, 0.125, {}, False, False)

    async def shown() -> str:
        pool = GamePool(1)
        watch = Watch(console)
        try:
            async with pool.game(job.task, job.seed, max_steps=10) as game:
                await game.open()
                for i in range(70):
                    watch.turn("plan", turn(f"TAIL file{i} | 1"))
                watch.turn("log", turn(errors=("SEARCH: query is missing",)))
                watch.turn("log", turn(text="just a thought"))
                await watch.stepped(job, game, memory, record)
        finally:
            pool.close()
        with console.capture() as capture:
            console.print(watch._draw())
        return capture.get()

    seen = asyncio.run(shown())
    for expected in (
        "TAIL file69 | 1",
        "answer to TAIL file69",
        "! SEARCH: query is missing",
        "just a thought",
        "step 0: north",
        "progression 12.50 %",
        *(["Dlvl:1"] if height == 40 else []),  # NetHack's own screen has 24 rows
        "map_notes.txt",
        "a tree to the west",
    ):
        assert expected in seen, expected
    assert "TAIL file1 |" not in seen


def test_escape_sequences_of_a_model_do_not_reach_the_terminal() -> None:
    evil = "\x1b]0;owned\x1b\\ \x1b[2J \x9b31m \x07"
    for line in turn_lines("plan", turn(text=evil)) + turn_lines("plan", turn(errors=(evil,))):
        assert not any(c in line.plain for c in "\x1b\x9b\x07")
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None)
    with console.capture() as shown:
        console.print(*turn_lines("plan", turn("TAIL [red]a[/nosuch] | 1")))
    assert "TAIL [red]a[/nosuch] | 1" in shown.get()


def test_colours_reach_the_terminal() -> None:
    text = screen_text(((("@", "bold red"), (".", "")), (("#", "green"),)))
    assert text.plain == "@.\n#"
    assert [(span.start, span.end, str(span.style)) for span in text.spans] == [(0, 1, "bold red"), (3, 4, "green")]
