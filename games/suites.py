"""Suites: which tasks, seeds and step limits an evaluation plays, read from ``suites.toml``."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from games.registry import canonical

MOST_SEEDS = 100_000
LARGEST_SEED = 2**31 - 1

_PART = re.compile(r"([0-9]+)(?:\s*\.\.\s*([0-9]+))?")
_FORMS = 'write a range such as "42..51", a list such as "1,3,5", or one seed such as "7"'


class UnknownSuite(ValueError):
    """No suite has this name; the message lists those there are."""


class BadSeeds(ValueError):
    """A text that names no seeds; the message says what is wrong with it and what to write."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One task of a suite.

    Attributes:
        task: canonical name, one of `games.tasks()`.
        seeds: one episode each, in this order.
        steps: the most steps of an episode.
    """

    task: str
    seeds: tuple[int, ...]
    steps: int


@dataclass(frozen=True, slots=True)
class Suite:
    """What an evaluation plays, in order. `describe` says it in a line."""

    name: str
    describe: str
    entries: tuple[Entry, ...]

    @property
    def episodes(self) -> int:
        """How many episodes the suite has."""
        return sum(len(entry.seeds) for entry in self.entries)


def names() -> tuple[str, ...]:
    """Every suite's name, in the order of the file."""
    return tuple(_tables())


def load(name: str) -> Suite:
    """The suite of this name; letter case is ignored. Raises UnknownSuite."""
    wanted = name.strip().lower()
    table = _tables().get(wanted)
    if table is None:
        raise UnknownSuite(f"no suite is called {name!r}. The suites are: {', '.join(names())}.")
    included = [entry for other in table.get("include", ()) for entry in load(other).entries]
    return Suite(wanted, table["describe"], (*included, *_entries(table)))


def parse_seeds(text: str) -> tuple[int, ...]:
    """The seeds that a person wrote: ``42..51`` (both ends count), ``1,3,5``, ``7``, or a mixture.

    Raises BadSeeds for anything else, for a seed given twice, a range that runs backwards,
    a seed above 2**31 - 1, and more than 100,000 seeds.
    """
    seeds: list[int] = []
    for part in text.split(","):
        seeds.extend(_parse_part(part.strip(), text))
        if len(seeds) > MOST_SEEDS:
            raise BadSeeds(f"seeds {_quoted(text)} are more than {MOST_SEEDS:,}: split the evaluation")
    seed, times = Counter(seeds).most_common(1)[0]
    if times > 1:
        raise BadSeeds(f"seeds {_quoted(text)} name {seed} twice: the same seed plays the same episode")
    return tuple(seeds)


def _parse_part(part: str, text: str) -> range:
    """The seeds of one part between commas."""
    if not part:
        raise BadSeeds(f"seeds {_quoted(text)} have an empty place: {_FORMS}")
    if part.startswith("-") or re.search(r"\.\.\s*-", part):
        raise BadSeeds(f"seeds {_quoted(text)} hold a negative number; seeds start at 0: {_FORMS}")
    found = _PART.fullmatch(part)
    if found is None:
        raise BadSeeds(f"seeds {_quoted(text)} hold {_quoted(part)}, which names no seed: {_FORMS}")
    first, last = _seed(found[1], text), _seed(found[2] or found[1], text)
    if last < first:
        raise BadSeeds(f"seeds {_quoted(text)} run backwards from {first} to {last}: write {last}..{first}")
    if last - first >= MOST_SEEDS:
        raise BadSeeds(f"seeds {_quoted(text)} are more than {MOST_SEEDS:,}: split the evaluation")
    return range(first, last + 1)


def _seed(digits: str, text: str) -> int:
    """One seed. The length is looked at first: Python refuses to read thousands of digits."""
    if len(digits.lstrip("0")) > len(str(LARGEST_SEED)) or int(digits) > LARGEST_SEED:
        raise BadSeeds(f"seeds {_quoted(text)} hold a number above the largest seed, {LARGEST_SEED}")
    return int(digits)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


@cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads(resources.files("games").joinpath("suites.toml").read_text(encoding="utf-8"))


def _entries(table: Mapping[str, Any]) -> tuple[Entry, ...]:
    return tuple(
        Entry(canonical(task), parse_seeds(play["seeds"]), play["steps"])
        for play in table.get("play", ())
        for task in play["tasks"]
    )
