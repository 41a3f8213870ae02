"""``automem report``: one HTML file about runs. Thin: it checks, calls, and prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from automem.completion import complete_run

errors = Console(stderr=True)
console = Console()

MOST_RUNS = 16


def report(
    names: Annotated[
        list[str], typer.Argument(metavar="RUN", help="Runs, by name or folder.", autocompletion=complete_run)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="The file to write; in the working folder, named after the run.")
    ] = None,
    replays: Annotated[
        int | None, typer.Option("--replays", min=0, help="Episodes of each run to watch, at most; all by default.")
    ] = None,
    no_pictures: Annotated[
        bool, typer.Option("--no-pictures", help="Do not play the games again for their pictures.")
    ] = False,
    workers: Annotated[
        int, typer.Option("--workers", min=0, help="Episodes read at once; 0: as many as there are processors.")
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is not a report.")] = False,
) -> None:
    """Write a report of runs: one HTML file with figures, charts and a replay of every episode."""
    from automem import runs
    from automem.errors import UserError
    from automem.report.gather import gather
    from automem.report.page import page
    from automem.report.write import writable, write

    chosen = list(dict.fromkeys(names))
    if len(chosen) > MOST_RUNS:
        raise UserError(f"{len(chosen)} runs are too many for a report; name at most {MOST_RUNS}")
    found = [runs.load(name) for name in chosen]
    target = out or Path(f"report-{'-'.join(run.config.name for run in found)}"[:100] + ".html")
    writable(target, force)
    with errors.status("reading") as status:
        gathered = gather(
            found,
            pictures=not no_pictures,
            replays=replays,
            workers=workers,
            told=lambda episode: status.update(f"read {episode}"),
        )
        status.update("drawing charts")
        text = page(gathered)
    size = write(text, target)
    unfinished = sum(not e.finished for e in gathered.episodes) + len(gathered.missing)
    if unfinished:
        errors.print(f"{unfinished} episodes are not finished or cannot be read; the report names them", markup=False)
    console.print(f"{target}: {size / 1e6:.1f} MB", markup=False, highlight=False, soft_wrap=True)
