"""Which tasks there are, and how to make the game of one. No simulator is loaded until a game is made.

Other packages add games through entry points of the group ``automem.games``: the entry's name
is the task, its value a callable ``(task, **options) -> Game``. A name ``game.Task`` says which game
the task belongs to; a name without a dot is a game with one task of the same name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache
from importlib import import_module, metadata
from typing import Any

from games.protocol import Game

ENTRY_POINTS = "automem.games"

_MADE_BY = {
    "crafter": "games.crafter:Crafter",
    "minihack": "games.minihack:MiniHack",
    "nethack": "games.nethack:NetHack",
}
"""Game -> the class that plays it."""

_TASKS = {
    "Crafter": "crafter",
    "MiniHack-Boxoban-Hard-v0": "minihack",
    "MiniHack-Boxoban-Medium-v0": "minihack",
    "MiniHack-MazeWalk-9x9-v0": "minihack",
    "MiniHack-MazeWalk-15x15-v0": "minihack",
    "MiniHack-Corridor-R3-v0": "minihack",
    "MiniHack-CorridorBattle-Dark-v0": "minihack",
    "MiniHack-Quest-Easy-v0": "minihack",
    "MiniHack-Quest-Medium-v0": "minihack",
    "NetHackChallenge-v0": "nethack",
}
"""Task -> its game: BALROG's tasks of the three games."""

_SHORT = {"nethack": "NetHackChallenge-v0"}

_DECIDING = ("crafter", "opensimplex", "nle", "minihack", "gymnasium", "numpy")


class UnknownTask(ValueError):
    """No game has a task of this name; the message lists the nearest names."""


def tasks() -> tuple[str, ...]:
    """Every task's canonical name: BALROG's ten, then those that other packages add."""
    return (*_TASKS, *_added())


def canonical(name: str) -> str:
    """The task that `name` means: letter case is ignored, and ``nethack`` is NetHackChallenge-v0.

    Raises UnknownTask.
    """
    wanted = name.strip().casefold()
    if wanted in _SHORT:
        return _SHORT[wanted]
    known = {task.casefold(): task for task in tasks()}
    if wanted in known:
        return known[wanted]
    raise UnknownTask(f"no task is called {name!r}. {_near(wanted, known)}")


def game_of(task: str) -> str:
    """The game that a task belongs to: ``crafter``, ``minihack``, ``nethack``, or one that a package added.

    Raises UnknownTask.
    """
    task = canonical(task)
    return _TASKS[task] if task in _TASKS else task.partition(".")[0].lower()


def make(task: str, **options: Any) -> Game:
    """A fresh game of this task, to be played once. `options` go to the game, e.g. ``max_steps=200``.

    Raises UnknownTask for a name that no game has, and ModuleNotFoundError, with what to
    install, where the game's simulator is missing.
    """
    task = canonical(task)
    try:
        maker = _maker(task)
        return maker(task, **options)
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.partition(".")[0] in _DECIDING:
            raise ModuleNotFoundError(
                f"{task} needs the Python package {missing.name!r}, which is not installed: "
                f"install this project with its dependencies (pip install -e .)",
                name=missing.name,
            ) from missing
        raise


def facts(task: str) -> dict[str, str]:
    """Labels that results of this task would carry here and now, such as where its levels come from.

    Results with different labels are not comparable. Raises UnknownTask, and what the game raises
    when it cannot be played here (`games.boxoban.BoxobanError`).
    """
    task = canonical(task)
    if game_of(task) != "minihack" or task not in _TASKS:
        return {}
    return import_module("games.minihack").facts(task)


def versions(tasks: Iterable[str] = ()) -> dict[str, str]:
    """Versions of the packages that decide how the games go; results are comparable where these agree.

    Args:
        tasks: of these, too, the packages that added them.
    """
    added = (_added()[task].dist for task in tasks if task in _added())
    return {
        **{dist.name: dist.version for dist in added if dist is not None},
        **{package: _version(package) for package in _DECIDING},
    }


def _maker(task: str) -> Any:
    if task not in _TASKS:
        return _added()[task].load()
    module, _, name = _MADE_BY[_TASKS[task]].partition(":")
    return getattr(import_module(module), name)


@cache
def _added() -> dict[str, metadata.EntryPoint]:
    """Tasks of other packages, by name. A package cannot replace one of ours."""
    own = {task.casefold() for task in _TASKS} | _SHORT.keys()
    return {
        entry.name: entry for entry in metadata.entry_points(group=ENTRY_POINTS) if entry.name.casefold() not in own
    }


def _near(wanted: str, known: dict[str, str]) -> str:
    """What the person may have meant: names that contain the word, then names spelt alike, else all of them."""
    containing = [name for name in known if wanted and wanted in name]
    alike = [name for name in difflib.get_close_matches(wanted, known, n=4, cutoff=0.5) if name not in containing]
    nearest = [known[name] for name in (*containing, *alike)][:8]
    if nearest:
        return f"Did you mean {' or '.join(nearest)}?"
    return f"The tasks are: {', '.join(known.values())}."


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
