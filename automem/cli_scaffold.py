"""``automem scaffold …``: versions of scaffolds on the command line. Thin: it checks, calls, and prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from automem.completion import complete_scaffold
from automem.errors import UserError
from automem.width import endless, wide

if TYPE_CHECKING:
    from automem.lineage import Lineage

scaffold_app = typer.Typer(
    help="Scaffolds: which versions there are, how they descend and differ, and what they scored.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

console = Console()

LEAST = 60
"""Columns that a version needs beside the branches of the tree."""

EXIT_ERRORS = 1
"""The scaffold was checked, and is not right."""


def complete_game(incomplete: str) -> list[str]:
    """Games that have scaffolds, for shell completion."""
    from automem import scaffold

    return sorted({game for ref in scaffold.available() if (game := ref.split("/")[0]).startswith(incomplete)})


def complete_child(incomplete: str) -> list[str]:
    """The beginning of a new version's name, for shell completion."""
    return [f"{game}/" for game in complete_game(incomplete.split("/")[0])]


Ref = Annotated[
    str,
    typer.Argument(
        metavar="REF",
        help="game/version, a folder, runs/NAME, or 8 or more digits of an identity.",
        autocompletion=complete_scaffold,
    ),
]
Game = Annotated[str | None, typer.Argument(metavar="GAME", help="Only this game's.", autocompletion=complete_game)]


@scaffold_app.command("list", epilog="Example: [bold]automem scaffold list crafter[/bold]")
def list_(game: Game = None) -> None:
    """List the versions that can be played by name."""
    from automem import lineage, runs, scaffold_views

    found, unreadable = runs.read_all()
    known = lineage.read(found)
    _check_game(game, known)
    current = sorted((v for v in known.versions.values() if v.current and game in (None, v.game)), key=lambda v: v.ref)
    loaded = [(v, v.loaded) for v in current if v.loaded is not None]
    changed = {v.identity: runs_ for v, _ in loaded if (runs_ := lineage.changed_since_evaluated(v, found))}
    wide(console).print(scaffold_views.table(known, loaded, changed))
    for broken in known.broken:
        if game in (None, broken.ref.partition("/")[0]):
            console.print(scaffold_views.plain(f"{broken.ref} does not load: {broken.problem}", "red"), soft_wrap=True)
    others = sum(1 for v in known.versions.values() if not v.current and game in (None, v.game))
    _warn(unreadable)
    if others:
        console.print(f"{others} more known only from runs; see: automem scaffold log", highlight=False)


@scaffold_app.command("show", epilog="Example: [bold]automem scaffold show crafter/v0[/bold]", no_args_is_help=True)
def show(ref: Ref) -> None:
    """Show one version: identity, lineage, limits, operations, files, hooks, scores and notes."""
    from automem import lineage, runs, scaffold_views

    loaded = lineage.resolve(ref)
    found = runs.all_runs()
    scaffold_views.show(wide(console), loaded, lineage.read(found), found)


@scaffold_app.command("log", epilog="Example: [bold]automem scaffold log crafter[/bold]")
def log(game: Game = None) -> None:
    """Draw the lineage as a tree, with the score of each version and its interval."""
    from automem import lineage, runs, scaffold_views

    found, unreadable = runs.read_all()
    known = lineage.read(found)
    _check_game(game, known)
    for name in [game] if game else known.games():
        tree, depth = scaffold_views.tree(known, name, found)
        # A long lineage would leave no room for words: let the terminal break its lines, or less -S show them.
        (wide(console) if console.width >= 4 * depth + LEAST else endless()).print(tree)
    _warn(unreadable)
    console.print(scaffold_views.legend(), style="dim", highlight=False, soft_wrap=True)


@scaffold_app.command(
    "new", epilog="Example: [bold]automem scaffold new crafter/v2 --from crafter/v1[/bold]", no_args_is_help=True
)
def new(
    child: Annotated[
        str,
        typer.Argument(metavar="GAME/VERSION", help="Name of the new version.", autocompletion=complete_child),
    ],
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="REF", help="Its parent; the game's v0 by default.", autocompletion=complete_scaffold
        ),
    ] = None,
) -> None:
    """Make a version from another one, to change it: its files, its own name, its parent's identity."""
    from automem.child import make_child
    from automem.scaffold_views import plain

    made = make_child(child, source or f"{child.partition('/')[0]}/v0")
    folder = made.scaffold.folder
    lines = [f"{folder} is a child of {made.parent} ({made.parent_identity[:12]})."]
    if made.restore:
        lines += [
            f"Its files are those of {source}, changed after it was evaluated; its parent is the version as it "
            "was evaluated. Put the files of that one back:",
            f"  {made.restore}",
        ]
    lines += [
        "Next:",
        f"  edit the files in {folder}; say in {folder / 'notes.md'} what changes and why",
        f"  automem scaffold check {child}",
        f"  automem scaffold diff {source or made.parent} {child}",
        f"  automem eval {made.scaffold.game} --scaffold {child} --model scripted",
    ]
    for line in lines:
        console.print(plain(line), soft_wrap=True)


@scaffold_app.command(
    "diff",
    epilog="Example: [bold]automem scaffold diff crafter/v0 crafter/v1 --html diff.html[/bold]",
    no_args_is_help=True,
)
def diff(
    a: Annotated[
        str, typer.Argument(metavar="A", help="The old version, named as for show.", autocompletion=complete_scaffold)
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The new version.", autocompletion=complete_scaffold)],
    side_by_side: Annotated[
        bool, typer.Option("--side-by-side", "-s", help="Old and new lines beside each other.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page instead.", dir_okay=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="With --html: replace whatever file is there.")] = False,
) -> None:
    """Say in words what differs between two versions, then show it line by line."""
    from automem import lineage
    from automem.scaffold_diff import compare_scaffolds, page, terminal

    old, new = lineage.resolve(a), lineage.resolve(b)
    found = compare_scaffolds(old, new, lineage.read())
    if html is None:
        terminal.show(console, found, side_by_side)
        return
    page.write(html, page.render(found), force)
    console.print(f"written: {html}", markup=False, highlight=False, soft_wrap=True)


@scaffold_app.command("check", epilog="Example: [bold]automem scaffold check crafter/v1[/bold]", no_args_is_help=True)
def check(
    ref: Ref,
    smoke: Annotated[bool, typer.Option("--smoke/--no-smoke", help="Play a short episode with `scripted`.")] = True,
    unsafe_hooks: Annotated[
        bool, typer.Option("--unsafe-hooks", help="Run its code even where nothing can contain it.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")] = False,
) -> None:
    """Say all that is wrong with a version, by file and line, and what to do. Exits with 1 when it cannot be used."""
    from automem import check as checker
    from automem import lineage

    named = lineage.locate(ref)
    report = checker.check(ref if _is_ref(ref, named) else str(named), smoke=smoke, unsafe=unsafe_hooks)
    if as_json:
        # The standard library's: it can write the name of a folder that is not UTF-8.
        sys.stdout.write(json.dumps(report.as_dict(), indent=2) + "\n")
    else:
        checker.show(report, console)
    if not report.ok:
        raise typer.Exit(EXIT_ERRORS)


@scaffold_app.command("adopt", epilog="Example: [bold]automem scaffold adopt my-loop[/bold]", no_args_is_help=True)
def adopt(run: Annotated[str, typer.Argument(metavar="RUN", help="A loop, by name or folder.")]) -> None:
    """Take the best version that a loop found into scaffolds/, with the versions between it and where it began."""
    from meta import storage
    from meta.adopt import adopt as take

    for folder in take(storage.load(run)):
        console.print(f"{folder}", markup=False, highlight=False, soft_wrap=True)


def _warn(unreadable: Iterable[Path]) -> None:
    """Name each ``run.toml`` that cannot be read."""
    from automem import lineage, scaffold_views

    for path in unreadable:
        console.print(scaffold_views.plain(lineage.told_unreadable(path), "yellow"), soft_wrap=True)


def _is_ref(text: str, folder: Path) -> bool:
    """Whether a version was named by ``game/version`` or its folder, and not by a run or an identity."""
    return (folder.parent.name, folder.name) == tuple(text.split("/")) or folder == Path(text)


def _check_game(game: str | None, known: Lineage) -> None:
    if game is not None and game not in known.games():
        raise UserError(f"no scaffold plays {game!r}; there are scaffolds for {', '.join(known.games()) or 'no game'}")
