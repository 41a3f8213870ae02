"""``automem report``: one HTML file about runs. Thin: it checks, calls, and prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from automem.completion import complete_bench_or_run

if TYPE_CHECKING:
    from automem.runs import Run

errors = Console(stderr=True)
console = Console()

MOST_RUNS = 16


def report(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Runs or benches, by name or folder; or one loop or search.",
            autocompletion=complete_bench_or_run,
        ),
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
    """Write a report of runs: one HTML file with figures, charts and a replay of every episode.

    Of a loop or a search it is the page about that: what was tried, what came of it, and why. Of a bench it is about
    the runs of its agents; the bench's own tables and scoreboard are written anew.
    """
    from automem.errors import UserError
    from automem.report.gather import gather
    from automem.report.page import page
    from automem.report.write import writable, write

    chosen = list(dict.fromkeys(names))
    if len(chosen) == 1 and (about := page_about(chosen[0])) is not None:
        target = out or Path(f"report-{Path(chosen[0]).name}"[:100] + ".html")
        with errors.status("drawing charts"):
            size = about(target, force)
        tell(target, size)
        return
    found = _runs(chosen)
    named = "-".join(Path(name).name for name in chosen)
    target = out or Path(f"report-{named}"[:100] + ".html")
    if len(found) > MOST_RUNS:
        raise UserError(f"{len(found)} runs are too many for a report; name at most {MOST_RUNS}")
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
    tell(target, size)


def _runs(names: list[str]) -> list[Run]:
    """The runs of these names; of a bench, those of its agents, its pages written anew."""
    from automem import runs
    from automem.bench import pages, results, storage

    found = []
    for name in names:
        if not storage.is_bench(name):
            found.append(runs.load(name))
            continue
        bench = storage.load(name)
        pages.write(bench, results.refreshed(bench))
        scoreboard = bench.folder / storage.SCOREBOARD
        tell(scoreboard, scoreboard.stat().st_size)
        found += bench.runs()
    return found


def page_about(name: str) -> Callable[[Path, bool], int] | None:
    """What writes the page about the loop or the search of this name or folder; None when it is neither."""
    from meta import storage as loops
    from specialist.search import storage as searches

    if loops.LOOPS.is_one(name):
        from meta.page import write as write_loop

        loop = loops.load(name)
        return lambda path, force: write_loop(loop, path, force)
    if searches.SEARCHES.is_one(name):
        from specialist.page import write as write_search

        search = searches.load(name)
        return lambda path, force: write_search(search, path, force)
    return None


def tell(target: Path, size: int) -> None:
    """Say what was written."""
    console.print(f"{target}: {size / 1e6:.1f} MB", markup=False, highlight=False, soft_wrap=True)
