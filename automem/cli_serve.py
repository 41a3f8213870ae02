"""``automem serve``: a base model and specialists at one local address. Thin: it checks, calls, and prints."""

from __future__ import annotations

import threading
from typing import Annotated

import typer
from rich.console import Console

console = Console()
errors = Console(stderr=True)


def serve(
    model: Annotated[
        str, typer.Option("--model", help="smollm2, the folder of a model, or its name on Hugging Face.")
    ] = "smollm2",
    specialist: Annotated[
        list[str] | None,
        typer.Option("--specialist", metavar="FOLDER", help="A trained specialist; may be repeated."),
    ] = None,
    merged: Annotated[
        bool,
        typer.Option(
            "--merged",
            help="Serve a copy with the one specialist worked in, and nothing else: no adapter to reckon with.",
        ),
    ] = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any that is free.")] = 0,
    max_loras: Annotated[
        int, typer.Option("--max-loras", min=0, help="Specialists asked at one moment; 0: those given, at least 2.")
    ] = 0,
    max_rank: Annotated[
        int, typer.Option("--max-rank", min=0, help="Room for specialists of this rank; 0: for those given.")
    ] = 0,
) -> None:
    """Serve a model, and specialists of it, until Ctrl-C."""
    from automem.models.protocol import ModelUnavailable
    from specialist.serve import standing

    stop = threading.Event()
    try:
        with errors.status("looking at what is to be served"):
            planned = standing.plan(
                model, specialist or [], merged=merged, max_loras=max_loras or None, max_rank=max_rank or None
            )
        with errors.status(f"starting vLLM for {planned.config.served_name}"):
            server = standing.start(planned, port or None, stop)
        with server:
            for line in standing.how_to_use(planned, server):
                console.print(line, markup=False, highlight=False, soft_wrap=True)
            while server.alive():
                stop.wait(0.5)
    except KeyboardInterrupt:
        stop.set()
        errors.print("ended", markup=False)
        return
    raise ModelUnavailable(f"the server ended by itself. Its log: {server.log}")
