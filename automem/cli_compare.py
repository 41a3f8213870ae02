"""``automem compare``: runs or benches, paired by task and seed. Thin: it checks, calls, and prints."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from automem.completion import complete_bench_or_run
from automem.visible import visible

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
    from automem.errors import UserError

    both = pairs.runs_to_compare(first, second)
    found, apart = [], []
    for a, b in both:
        try:
            found.append(held_against(a, b))
        except UserError as nothing_in_common:
            apart.append(str(nothing_in_common))
    if not found:
        raise UserError("\n".join(apart))
    for said in apart:  # of several agents, one that finished nothing keeps nobody from seeing the others
        Console(stderr=True).print(Text(visible(f"! {said}"), style="yellow"), soft_wrap=True)
    if as_json:
        import orjson

        # One comparison of two runs stays one object.
        shown = found if pairs.is_of_benches(first, second) else found[0]
        sys.stdout.write(orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    for comparison in found:
        compare_view.show(comparison, console)
