"""`automem demo`: every game played by `scripted`, then a few steps of each by the embedded model."""

from __future__ import annotations

import asyncio
from typing import Any

from rich.console import Console

from automem import evaluate, tables
from automem.evaluate import Request, Watcher
from automem.models.protocol import Model
from automem.progress import Progress
from automem.runs import PlayedModel, Run
from automem.watch import Steps, Watch

SUITE = "demo"

EMBEDDED_STEPS = 2
"""Steps of each game with the embedded model: LOG starts at the second, and two cores are slow."""

REST = 0.02
"""Seconds of rest on each step of `scripted` on a terminal, so that a person can follow."""


async def play_demo(console: Console) -> None:
    """Play, then print the results and where they are.

    Raises what the embedded model's server raises, after the results of `scripted` were printed.
    """
    embedded = evaluate.make_model(PlayedModel(name="smollm2"), processes=1)
    # The server takes half a minute to start: long enough for `scripted` to play meanwhile.
    starting = asyncio.create_task(embedded.ready())
    played: list[tuple[Run, dict[str, Any]]] = []
    try:
        console.rule("scripted: a deterministic player, no LLM; it knows of the past what it wrote to memory")
        view = Watch(console, REST) if console.is_terminal else Steps(console, every=50)
        played.append(await _play("scripted", None, evaluate.make_model(PlayedModel(name="scripted"), 0), view, 1))
        console.rule("smollm2: 135 million parameters; it shows that the path is real, not that it plays well")
        if not starting.done():
            console.print("waiting for its server to start")
        await starting
        played.append(await _play("smollm2", EMBEDDED_STEPS, embedded, Progress(console), 3))
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await embedded.close()
        for _, summary in played:
            console.print(tables.summary(summary))
        for run, _ in played:
            console.print(f"run folder: {run.folder}", highlight=False, markup=False, soft_wrap=True)


async def _play(name: str, steps: int | None, model: Model, view: Watcher, workers: int) -> tuple[Run, dict[str, Any]]:
    request = Request(SUITE, PlayedModel(name=name), steps=steps)
    return await evaluate.run(evaluate.plan(request), False, model, view, workers)
