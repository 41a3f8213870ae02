"""A training run, from outside: started in processes of its own, followed, and gone on with where it was left."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Protocol

from automem.errors import UserError
from specialist import adapter
from specialist.adapter import Adapter
from specialist.train import spec
from specialist.train.__main__ import DIVERGED
from specialist.train.curve import CurveReader, Row
from specialist.train.launch import command, environment
from specialist.train.plan import TrainPlan, plan
from specialist.train.spec import ADAPTER, LOG, Diverged, Setup, TrainSpec

POLL_SECONDS = 0.25
TAIL = 12
"""Lines of the log that an error ends with."""


class Watcher(Protocol):
    """Who is told how a run goes."""

    def planned(self, plan: TrainPlan) -> None:
        """What will be done."""
        ...

    def row(self, row: Row) -> None:
        """A step was done, or the held-out loss measured. Those of earlier tries are told again."""
        ...


async def train(what: TrainSpec, folder: Path, watcher: Watcher | None = None) -> Adapter:
    """Train an adapter; goes on where the run in `folder` was left, and returns at once what is finished.

    It ends with the process that asked for it, and when it is cancelled; then it can be gone on with.

    Args:
        what: to train.
        folder: of the run; made if it is not there.
        watcher: told about it.

    Raises:
        UserError: it cannot be trained here; nothing was started. Or it ended without an adapter.
        Diverged: the loss left all bounds, now or in an earlier try.
    """
    planned = await asyncio.to_thread(plan, what, folder)
    if watcher:
        watcher.planned(planned)
    if planned.problems:
        raise UserError("\n".join(["this cannot be trained here:", *(f"  {text}" for text in planned.problems)]))
    if (folder / ADAPTER).is_dir():
        _tell(CurveReader(folder), watcher)
        return adapter.load(folder / ADAPTER)
    reason = spec.failure(folder)
    if reason:
        raise Diverged(reason)
    assert planned.begun is not None, "there are no problems"
    planned.begun.write(folder)
    status = await _run(planned.begun.setup, folder, watcher)
    if status == DIVERGED:
        raise Diverged(spec.failure(folder) or "the loss left all bounds")
    if status:
        raise UserError(_ended(status, folder))
    return adapter.load(folder / ADAPTER)


async def _run(setup: Setup, folder: Path, watcher: Watcher | None) -> int:
    """Run the processes until they end; their exit status."""
    reader = CurveReader(folder)
    with (folder / LOG).open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *command(setup, folder),
            stdin=asyncio.subprocess.PIPE,
            stdout=log,
            stderr=asyncio.subprocess.STDOUT,
            env=environment(setup, os.environ),
            start_new_session=True,  # Ctrl-C in the terminal is for us, and we end them
        )
    ended = asyncio.create_task(process.wait())
    try:
        while not ended.done():
            await asyncio.wait({ended}, timeout=POLL_SECONDS)
            _tell(reader, watcher)
        return ended.result()
    finally:
        # They end with their standard input.
        assert process.stdin is not None
        process.stdin.close()
        await asyncio.shield(ended)
        _tell(reader, watcher)


def _tell(reader: CurveReader, watcher: Watcher | None) -> None:
    for row in reader.new():
        if watcher:
            watcher.row(row)


def _ended(status: int, folder: Path) -> str:
    """What to tell when the processes ended without an adapter."""
    log = folder / LOG
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-TAIL:]
    happened = f"was ended by signal {-status}, perhaps for want of memory" if status < 0 else f"failed ({status})"
    return "\n".join([f"training {happened}; it can be gone on with. {log} ends:", *lines])
