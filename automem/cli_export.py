"""``automem export``: results in the files of another benchmark. Thin: it checks, calls, and prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from automem.completion import complete_run

errors = Console(stderr=True)
console = Console()

FORMATS = ("balrog",)

SHOWN = 20
"""Missing episodes of a run that are named."""


def _complete_format(incomplete: str) -> list[str]:
    return [name for name in FORMATS if name.startswith(incomplete.lower())]


def export(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run or a bench, by name or folder.", autocompletion=complete_run)
    ],
    format: Annotated[
        str, typer.Option("--format", help="Whose files to write: balrog.", autocompletion=_complete_format)
    ] = "balrog",
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder to write; in the working folder, named after the run.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the folder where it is an earlier export.")] = False,
) -> None:
    """Write the results of a run, or of every agent of a bench, as files that another benchmark's tools read."""
    from automem.balrog import export as exporting
    from automem.errors import UserError
    from automem.visible import visible

    if format.lower() not in FORMATS:
        raise UserError(f"--format {format}: there is {', '.join(FORMATS)}")
    with errors.status("reading"):
        written = exporting.export(run, out, force)
    for part in written:
        for one in part.left_out[:SHOWN]:
            told = f"{part.run}: left out: {one.task}, seed {one.seed}: {one.why}"
            errors.print(visible(told), markup=False, highlight=False, soft_wrap=True)
        if len(part.left_out) > SHOWN:
            more = len(part.left_out) - SHOWN
            errors.print(
                f"{part.run}: and {more} more; {part.folder / exporting.MARK} lists all",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
        missing = f", {len(part.left_out)} left out" if part.left_out else ""
        console.print(
            f"{part.folder}: {part.episodes} episodes{missing}", markup=False, highlight=False, soft_wrap=True
        )
