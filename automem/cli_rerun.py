"""``automem rerun``: play a stored run again, and say whether it came out the same. Thin: it checks, calls, prints."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from automem.cli_options import Episodes, Resume, UnsafeHooks, Workers, stopped
from automem.cli_options import again as go_on
from automem.completion import complete_run, complete_task
from automem.errors import UserError
from automem.vocabulary import one_line

if TYPE_CHECKING:
    from automem.rerun import Part
    from automem.runs import PlayedSpecialist, Run
    from specialist.play import Chosen

console = Console()
errors = Console(stderr=True)

EXIT_OTHERWISE = 1
"""It did not come out the same, or could not be compared to its end."""


def rerun(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run, by name or folder.", autocompletion=complete_run)],
    name: Annotated[
        str | None, typer.Option("--name", "--run", help="Name of the new run; RUN-rerun when not given.")
    ] = None,
    resume: Resume = False,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="OTHER", help="Play nothing: hold this run against RUN.", autocompletion=complete_run
        ),
    ] = None,
    task: Annotated[str | None, typer.Option("--task", help="Only this task.", autocompletion=complete_task)] = None,
    seeds: Annotated[str | None, typer.Option("--seeds", help="Only these: 42..51, 1,3,5 or 7.")] = None,
    episodes: Episodes = None,
    workers: Workers = 0,
    api_base: Annotated[
        str, typer.Option("--api-base", help="URL of the model's server, where it is another one now.")
    ] = "",
    specialist: Annotated[
        Path | None, typer.Option("--specialist", help="Where the specialist's adapter lies now, if it was moved.")
    ] = None,
    specialist_api_base: Annotated[
        str, typer.Option("--specialist-api-base", help="URL of the specialist's server, where it is another one now.")
    ] = "",
    unsafe_hooks: UnsafeHooks = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Play a run again from what it stored, and say whether it came out the same.

    Where it did not: at which step it first differed, and why. Exits with 1 then, and when an episode could not be
    compared to its end.
    """
    import orjson

    from automem import reproduced, rerun_view, runs
    from automem.rerun import Part

    part = Part(task, seeds, episodes)
    then = runs.load(run)
    if against is not None:
        playing = {"--name": name, "--resume": resume, "--workers": workers, "--api-base": api_base,
                   "--specialist": specialist, "--specialist-api-base": specialist_api_base,
                   "--unsafe-hooks": unsafe_hooks}  # fmt: skip
        if given := [option for option, value in playing.items() if value]:
            raise UserError(f"--against plays nothing: leave out {', '.join(given)}")
        now, label = runs.load(against), against
    else:
        now = _play(then, part, name, resume, workers, (api_base, specialist_api_base), specialist, unsafe_hooks)
        label = now.config.name
    found = reproduced.compare(then, now, _wanted(then, now, part, against is None), (run, label))
    if as_json:
        sys.stdout.write(orjson.dumps(rerun_view.plain(found), option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        rerun_view.show(found, console)
    if not found.same:
        raise typer.Exit(EXIT_OTHERWISE)


def _wanted(then: Run, now: Run, part: Part, played: bool) -> list[tuple[str, int]]:
    """The episodes to compare: those that were played again, or all that were asked for."""
    from automem import rerun as again

    return again.episodes(now.config.tasks if played else part.of(then.config.tasks))


def _play(
    then: Run,
    part: Part,
    name: str | None,
    resume: bool,
    workers: int,
    addresses: tuple[str, str],
    adapter: Path | None,
    unsafe_hooks: bool,
) -> Run:
    """Play it again. Exits with 130 after Ctrl-C. What it says goes where errors go: stdout is for the verdict."""
    from automem import evaluate as evaluation
    from automem import rerun as again
    from automem.progress import Progress

    chosen = None
    if then.config.specialist is not None:
        where = addresses[1]
        if where or not _served_by_us(then.config.specialist):  # an address in the environment is not meant for it
            where = again.address(then, then.config.specialist.model, addresses[1], "--specialist-api-base")
        chosen = _specialist(then.config.specialist, adapter, where)
    planned = again.again(
        then,
        part,
        name=name or again.again_name(then),
        resume=resume,
        api_base=addresses[0],
        specialist=None if chosen is None else chosen.played,
        unsafe_hooks=unsafe_hooks,
    )
    config = planned.plan.config
    workers = workers or evaluation.default_workers(config.model.name)
    model = evaluation.make_model(config.model, processes=min(workers, os.cpu_count() or 1))
    beside = None
    if chosen is not None:
        from specialist import play

        model, beside = play.make(chosen, config.model, model)
    for warning in planned.warnings:
        errors.print(Text(f"! {one_line(warning, 600)}", style="yellow"), soft_wrap=True)
    try:
        now, summary = asyncio.run(evaluation.run(planned.plan, resume, model, Progress(errors), workers, beside))
    except KeyboardInterrupt:
        raise stopped(config.name, True) from None
    if not summary["complete"]:
        told = f"not all episodes could be played to their end; once the cause is mended: {go_on(config.name)}"
        errors.print(told, style="red", markup=False, highlight=False, soft_wrap=True)
    return now


def _served_by_us(played: PlayedSpecialist) -> bool:
    """Whether an adapter plays on a server of ours, which has no address that a person knows."""
    from specialist.serve.model import THEIRS

    return bool(played.identity) and not played.model.name.startswith(THEIRS)


def _specialist(played: PlayedSpecialist, moved: Path | None, api_base: str) -> Chosen:
    """The specialist of a run, as it was chosen then. Raises `UserError` when it is gone, or is not the same."""
    from specialist import play
    from specialist.adapter import MANIFEST, load
    from specialist.serve.model import specialist_name

    asked = played.model.model_copy(update={"api_base": api_base})
    if not played.identity:
        return play.choose(asked, consult_turns=played.consult_turns)
    folder = Path(moved or played.adapter)
    if not (folder / MANIFEST).is_file():
        raise UserError(
            f"{folder}: the adapter of the run's specialist is not there any more (identity {played.identity[:12]}); "
            "put it back, or say with --specialist FOLDER where it lies now"
        )
    adapter = load(folder)
    if adapter.identity != played.identity:
        raise UserError(
            f"{folder} holds another adapter (identity {adapter.identity[:12]}) than the run's specialist "
            f"({played.identity[:12]}); say with --specialist FOLDER where that one lies"
        )
    base = played.model.name.removesuffix(specialist_name("", adapter, played.merged))
    asked = asked.model_copy(update={"name": str(folder)})
    return play.choose(asked, base=base, merged=played.merged, consult_turns=played.consult_turns)
