"""How large the memory files of an episode were, step by step."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from automem.trace import folder

if TYPE_CHECKING:
    from automem.trace import EpisodeTrace

COLUMNS = 6
"""Steps at which sizes are told when nobody says at which."""


@dataclass(frozen=True, slots=True)
class Size:
    """A file from a step on.

    Attributes:
        step: when PLAN of this step began, the file was that large.
        bytes: of UTF-8 text.
        lines: of text; 0 with 0 bytes for a file that is empty or gone.
    """

    step: int
    bytes: int
    lines: int


@dataclass(frozen=True, slots=True)
class Growth:
    """The files of an episode.

    Attributes:
        steps: readable steps of the trace.
        files: file -> its sizes, in order of steps, wherever they changed; in name order. The first is that of
            the step at which the file came.
    """

    steps: int
    files: Mapping[str, tuple[Size, ...]]

    def at(self, step: int) -> dict[str, Size]:
        """The size of every file that had come by this step; one that was removed since is empty."""
        found = {}
        for name, sizes in self.files.items():
            if place := bisect_right(sizes, step, key=attrgetter("step")):
                found[name] = sizes[place - 1]
        return found


def growth(trace: EpisodeTrace) -> Growth:
    """The sizes of an episode's memory files, from its trace.

    They are those of the folder that `EpisodeTrace.memory` gives for the same step, and after the last step those
    of the folder that the episode left behind. The trace is read once, from its beginning.

    Raises `UserError` when the scaffold that was played is not known, or is another one.
    """
    memory = folder.fresh(trace.scaffold)
    sizes: dict[str, list[Size]] = {}
    _note(sizes, 0, memory.listing())
    for step, record in enumerate(trace.raw()):
        ops = list(folder.operations(record))
        if ops:
            folder.carry_out(memory, ops, step)
            _note(sizes, step, memory.listing())
    return Growth(len(trace), {name: tuple(sizes[name]) for name in sorted(sizes)})


def _note(sizes: dict[str, list[Size]], step: int, listing: Iterable[tuple[str, int, int]]) -> None:
    now = {name: (size, lines) for name, lines, size in listing}
    for name in {*sizes, *now}:
        size, lines = now.get(name, (0, 0))
        before = sizes.setdefault(name, [])
        if not before or (before[-1].bytes, before[-1].lines) != (size, lines):
            if before and before[-1].step == step:
                before.pop()
            before.append(Size(step, size, lines))


@dataclass(frozen=True, slots=True)
class Means:
    """Sizes at some steps, over one episode or several.

    Attributes:
        steps: at which.
        episodes: how many episodes had each of these steps.
        files: file -> mean size in bytes and in lines at each step, over the episodes that had the step; an episode
            in which the file had not come counts as 0. In name order.
    """

    steps: tuple[int, ...]
    episodes: tuple[int, ...]
    files: Mapping[str, tuple[tuple[float, float], ...]]


def means(episodes: Sequence[Growth], every: int | None = None) -> Means:
    """Mean sizes over episodes, at every so many steps and at the last; at some `COLUMNS` steps by default.

    Args:
        episodes: at least one.
        every: steps from one column to the next, at least 1.
    """
    last = max(0, max(episode.steps for episode in episodes) - 1)
    width = every or max(1, -(-last // (COLUMNS - 1)))
    steps = tuple(dict.fromkeys([*range(0, last, width), last]))
    found: dict[str, list[tuple[float, float]]] = {n: [] for n in sorted({n for e in episodes for n in e.files})}
    counted = []
    for step in steps:
        there = [episode.at(step) for episode in episodes if episode.steps > step]
        counted.append(len(there))
        for name, values in found.items():
            sizes = [sizes[name] for sizes in there if name in sizes]
            over = max(1, len(there))
            values.append((sum(size.bytes for size in sizes) / over, sum(size.lines for size in sizes) / over))
    return Means(steps, tuple(counted), {name: tuple(values) for name, values in found.items()})
