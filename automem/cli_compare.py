"""``automem compare``: runs or benches, paired by task and seed. Thin: it checks, calls, and prints."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from automem.completion import complete_bench_or_run

console = Console()


def compare(
    first: Annotated[
        str, typer.Argument(metavar="RUN_A", help="A run, or a bench.", autocompletion=complete_bench_or_run)
    ],
    second: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN_B",
            help="What to hold against it; of a bench alone, its agents are held against its first.",
            autocompletion=complete_bench_or_run,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Compare two runs, paired by task and seed; two benches, agent by agent; or the agents of one bench."""
    from automem import compare_view
    from automem.bench import pairs
    from automem.compare import compare as held_against

    both = pairs.runs_to_compare(first, second)
    found = [held_against(a, b) for a, b in both]
    if as_json:
        import orjson

        # One comparison of two runs stays one object.
        shown = found if pairs.is_of_benches(first, second) else found[0]
        sys.stdout.write(orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    for comparison in found:
        compare_view.show(comparison, console)
