"""The demo's loop: two revisions by `rules` with `scripted`, small enough to watch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from automem.evaluate import default_workers, make_model
from automem.runs import PlayedModel
from meta import loop, page
from meta.progress import LoopProgress
from meta.settings import GateSettings, LoopBudget, SearchSettings
from meta.storage import PAGE

STEPS = 400
SEEDS = 10
"""As many as in the paper: its gate needs no more, and is easily fooled; a real loop uses the sequential one."""


async def short_loop(console: Console) -> tuple[str, dict[str, Any], Path]:
    """Run it and write its page. Returns: the loop's name, its result, the page."""
    request = loop.LoopRequest(
        game="crafter",
        model=PlayedModel(name="scripted"),
        held_out=f"20000..{20000 + SEEDS - 1}",
        steps=STEPS,
        gate=GateSettings(kind="paper", most=SEEDS, batch=SEEDS),
        search=SearchSettings(iterations=2, attempts=1, continuations=0),
        budget=LoopBudget(minutes=3),
    )
    planned = loop.plan(request)
    model = make_model(request.model, processes=0)
    folder, result = await loop.run(planned, False, model, LoopProgress(console), default_workers("scripted"))
    written = folder.folder / PAGE
    page.write(folder, written)
    return folder.config.name, result, written
