"""Published figures that stand beside ours: BALROG's leaderboard and the AutoMem paper, from ``references.toml``.

They are figures of others, read and not measured here. What makes ours comparable with them, per game, is what
`differences` looks at: the tasks, the most steps of an episode and the number of episodes of suite ``balrog``, all
episodes finished, and Boxoban's official levels. What it cannot look at is said with each source: another agent and
other prompts (ours are our own words on the same observations), other seeds, and for MiniHack BALROG's own scoring,
which our results carry beside success as ``balrog``.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

import games
from automem.errors import UserError
from games import suites

Game = Literal["crafter", "minihack", "nethack"]

GAMES: tuple[Game, ...] = ("crafter", "minihack", "nethack")

SUITE = "balrog"
"""The suite whose settings are those of the published figures."""

_FILE = "references.toml"


class Figure(BaseModel):
    """A published progression."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    progression: float = Field(ge=0, le=100)
    """Percent."""
    error: float | None = Field(None, ge=0, le=100)
    """Its standard error, in percentage points; None where none is known."""
    episodes: int | None = Field(None, ge=1)
    """Episodes behind it; None where the source does not say."""


class Source(BaseModel):
    """Where figures come from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(min_length=1)
    """What it is called in a table."""
    citation: str = Field(min_length=1)
    """The publication."""
    url: str = Field(pattern=r"^https://\S+$")
    """Where a reader finds it."""
    read: str = Field(min_length=1)
    """What exactly was read: table or file, and its state."""
    permalink: str | None = Field(None, pattern=r"^https://\S+$")
    """That file in that state."""
    entries: str | None = Field(None, pattern=r"^https://\S+/$")
    """What the addresses of single entries begin with."""
    settings: tuple[str, ...] = Field(min_length=1)
    """What was played and how, as far as it decides what the figures can be compared with."""


class Reference(BaseModel):
    """Figures of one agent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    """Key of its `Source`."""
    name: str = Field(min_length=1)
    """As the source calls it."""
    agent: str = Field(min_length=1)
    """Kind of agent: ``naive``, ``robust_cot``, ``memory``."""
    date: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    """Of the entry, or of the publication."""
    entry: str = ""
    """Path of the entry below the source's `entries`."""
    verified: bool = True
    """Whether the source's keepers say that they reproduced a part of it, or published it themselves."""
    note: str = ""
    """What else a reader should know."""
    crafter: Figure | None = None
    """Progression in Crafter."""
    minihack: Figure | None = None
    """In MiniHack, over its eight tasks."""
    nethack: Figure | None = None
    """In NetHack."""
    unconfirmed: tuple[Game, ...] = ()
    """Games for which the source shows a zero that nothing confirms; they have no figure here."""

    @model_validator(mode="after")
    def _whole(self) -> Reference:
        given = [game for game in GAMES if self.figure(game) is not None]
        if not given:
            raise ValueError("has no figure of any game")
        if both := [game for game in self.unconfirmed if game in given]:
            raise ValueError(f"{', '.join(both)}: has a figure and is named in unconfirmed; take one of them out")
        return self

    def figure(self, game: str) -> Figure | None:
        """Its figure of a game; None where there is none."""
        found: Figure | None = getattr(self, game) if game in GAMES else None
        return found

    @property
    def overall(self) -> Figure | None:
        """Computed here, not published: the mean of the three games; None unless all three are given.

        The games are taken for independent: the error is the root of the summed squares over three, None
        unless each game has one.
        """
        found = [figure for game in GAMES if (figure := self.figure(game)) is not None]
        if len(found) < len(GAMES):
            return None
        errors = [figure.error for figure in found if figure.error is not None]
        counts = [figure.episodes for figure in found if figure.episodes is not None]
        return Figure(
            progression=math.fsum(figure.progression for figure in found) / len(found),
            error=math.sqrt(math.fsum(e * e for e in errors)) / len(found) if len(errors) == len(found) else None,
            episodes=sum(counts) if len(counts) == len(found) else None,
        )


class References(BaseModel):
    """All of ``references.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sources: dict[str, Source] = Field(min_length=1)
    """Key -> source, in the order in which they are shown."""
    references: tuple[Reference, ...] = Field(min_length=1)
    """In the order in which they are shown."""

    @model_validator(mode="after")
    def _known(self) -> References:
        seen = set()
        for reference in self.references:
            if reference.source not in self.sources:
                raise ValueError(f"{reference.name}: its source {reference.source!r} is not among the sources")
            if (reference.source, reference.name) in seen:
                raise ValueError(f"{reference.name}: stands twice under source {reference.source!r}")
            seen.add((reference.source, reference.name))
        return self

    def of(self, source: str) -> tuple[Reference, ...]:
        """The references of a source."""
        return tuple(reference for reference in self.references if reference.source == source)

    def link(self, reference: Reference) -> str:
        """Where a reader finds an entry: its own address, or its source's."""
        source = self.sources[reference.source]
        return f"{source.entries}{reference.entry}" if source.entries and reference.entry else source.url


def load(path: Path | None = None) -> References:
    """The references.

    Args:
        path: a file of the same form, instead of the one that comes with AutoMem.

    Raises:
        UserError: the file cannot be read or is not valid; the message names every field that is wrong.
    """
    place = Path(str(resources.files("automem.bench").joinpath(_FILE))) if path is None else path
    try:
        data = tomllib.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{place}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{place}: not valid TOML: {error}") from error
    try:
        return References.model_validate(data)
    except ValidationError as error:
        problems = "\n".join(f"  {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise UserError(f"{place}: {error.error_count()} problem(s):\n{problems}") from error


def differences(results: Mapping[str, Any]) -> dict[str, list[str]]:
    """Why a bench's figures cannot be read straight against published ones: game -> reasons; empty where they can.

    Only games that the bench plays are named.

    Args:
        results: a bench's ``results.json``.
    """
    theirs = {entry.task: entry for entry in suites.load(SUITE).entries}
    found: dict[str, list[str]] = {}
    for task in results["settings"]["tasks"]:
        reasons = found.setdefault(games.game_of(task["task"]), [])
        entry = theirs.pop(task["task"], None)
        if entry is None:
            reasons.append(f"{task['task']} is no task of theirs")
            continue
        if task["steps"] != entry.steps:
            reasons.append(f"episodes of at most {task['steps']:,} steps instead of {entry.steps:,}")
        if len(task["seeds"]) != len(entry.seeds):
            unit = "a task " if games.game_of(task["task"]) == "minihack" else ""
            reasons.append(f"{counted(len(task['seeds']), 'episode')} {unit}instead of {len(entry.seeds)}")
        if task["facts"].get("levels", "official") != "official":
            reasons.append(f"{task['facts']['levels']} Boxoban levels instead of the official ones")
    for game, reasons in found.items():
        if absent := [task for task in theirs if games.game_of(task) == game]:
            reasons.append(f"without {', '.join(absent)}")
    return {game: list(dict.fromkeys(reasons)) for game, reasons in found.items()}


def counted(number: int, what: str) -> str:
    """A number of things in words: ``1 episode``, ``5 episodes``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
