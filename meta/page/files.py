"""How each memory file evolved over versions: what it is, how it grows in play, and how it looks in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from automem import growth
from automem.errors import UserError
from automem.report import charts
from automem.scaffold_diff.memory_files import rules
from automem.schema import MemoryFile
from automem.trace import EpisodeTrace
from automem.visible import visible_lines
from meta.page.history import History, Version

EPISODES = 6
"""Episodes of a version whose growth is read, at most."""

POINTS = 40
"""Points of a curve, about."""

MOST = 14
"""Files that are shown: those of schemas first, then the largest of those that the model made."""

LINES, CHARACTERS = 12, 240
"""Lines of an excerpt, half from the beginning of a file and half from its end, and characters of a line."""


@dataclass(frozen=True)
class Grown:
    """How a version's memory files grew in play.

    A file is called as the schema calls it, so that all blocks of a map are one; one that the model made goes by its
    own name.

    Attributes:
        episodes: how many the means are over.
        steps: at which sizes were taken.
        files: file -> mean bytes at each of the steps.
        texts: file -> name in the folder and text, at the end of one episode.
        problem: why there is nothing; empty when there is.
    """

    episodes: int = 0
    steps: tuple[int, ...] = ()
    files: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    problem: str = ""


def evolution(history: History) -> dict[str, Any]:
    """Each memory file over the first version and the accepted ones, in order.

    Returns: ``files``, ``left_out`` (names), ``seed`` (of the excerpts; None without any), ``episodes`` (of each
    version) and ``problems`` (version and why).
    """
    seed = _seed(history)
    found = [_grown(version, seed) for version in history.versions]
    names = _names(history, found)
    return {
        "files": [_file(history.versions, found, name) for name in names[:MOST]],
        "left_out": names[MOST:],
        "seed": seed,
        "episodes": [one.episodes for one in found],
        "problems": [(v.name, g.problem) for v, g in zip(history.versions, found, strict=True) if g.problem],
    }


def _seed(history: History) -> int | None:
    """The first gate seed that all versions have played."""
    played = [frozenset[int]() if version.gate is None else version.gate.seeds for version in history.versions]
    shared = frozenset.intersection(*played)
    return next((seed for seed in history.loop.config.gate_seeds if seed in shared), None)


def _grown(version: Version, seed: int | None) -> Grown:
    if version.gate is None:
        return Grown(problem="none of its episodes is finished")
    jobs = [job for job in version.gate.runs[0].jobs() if job.seed in version.gate.seeds]
    try:
        read = [growth.growth(EpisodeTrace(job.folder, version.scaffold)) for job in jobs[:EPISODES]]
        chosen = next((job for job in jobs if job.seed == seed), None)
        trace = None if chosen is None else EpisodeTrace(chosen.folder, version.scaffold)
        texts = {} if trace is None or not len(trace) else trace.memory(len(trace) - 1)
    except (UserError, OSError) as error:
        return Grown(problem=f"its traces cannot be read: {error}")
    longest = max((one.steps for one in read), default=0)
    means = growth.means(read, max(1, longest // POINTS)) if longest else growth.Means((), (), {})
    sizes: dict[str, list[float]] = {}
    for name, values in means.files.items():
        total = sizes.setdefault(_called(version, name), [0.0] * len(means.steps))
        for place, (size, _) in enumerate(values):
            total[place] += size
    shown: dict[str, tuple[str, str]] = {}
    for name, text in texts.items():
        known = shown.get(_called(version, name))
        if known is None or len(text) > len(known[1]):
            shown[_called(version, name)] = (name, text)
    return Grown(len(read), means.steps, {name: tuple(values) for name, values in sizes.items()}, shown)


def _called(version: Version, name: str) -> str:
    return next((file.name for file in version.scaffold.schema.files if file.spec().pattern.fullmatch(name)), name)


def _names(history: History, found: Sequence[Grown]) -> list[str]:
    """Files of schemas in the order in which they came, then the others, the largest first."""
    planned = dict.fromkeys(file.name for version in history.versions for file in version.scaffold.schema.files)
    largest: dict[str, float] = {}
    for one in found:
        for name, values in one.files.items():
            largest[name] = max(largest.get(name, 0.0), *values, 0.0)
    return [*planned, *sorted(largest.keys() - planned.keys(), key=lambda name: (-largest[name], name))]


def _file(versions: Sequence[Version], found: Sequence[Grown], name: str) -> dict[str, Any]:
    told: list[dict[str, Any]] = []
    before: MemoryFile | None = None
    for number, (version, one) in enumerate(zip(versions, found, strict=True)):
        spec = next((file for file in version.scaffold.schema.files if file.name == name), None)
        values = one.files.get(name)
        if spec is not None or values is not None:
            told.append(_row(number, version, one, name, spec, before))
        elif told and told[-1]["there"]:
            told.append({"number": number, "version": version.name, "there": False})
        before = spec
    rows = _curve(versions, found, name)
    return {
        "name": name,
        "planned": any(file.name == name for version in versions for file in version.scaffold.schema.files),
        "versions": told,
        "chart": Markup(charts.curves(rows, f"Mean bytes of {name} over steps, by version", "bytes")) if rows else "",
    }


def _row(
    number: int, version: Version, one: Grown, name: str, spec: MemoryFile | None, before: MemoryFile | None
) -> dict[str, Any]:
    """A file in one version."""
    values, text = one.files.get(name, ()), one.texts.get(name)
    over = one.steps[-1] - one.steps[0] if one.steps else 0
    return {
        "number": number,
        "version": version.name,
        "there": True,
        "rules": "a note that the model made" if spec is None else rules(spec),
        "describe": "" if spec is None else spec.describe,
        "entry": "" if spec is None else spec.entry,
        "same": spec is not None and spec == before,
        "end": values[-1] if values else None,
        "rate": (values[-1] - values[0]) / over if values and over else None,
        "called": "" if text is None or text[0] == name else text[0],
        "excerpt": None if text is None else excerpt(text[1]),
    }


def _curve(versions: Sequence[Version], found: Sequence[Grown], name: str) -> list[dict[str, Any]]:
    rows = []
    for number, (version, one) in enumerate(zip(versions, found, strict=True)):
        values = one.files.get(name)
        if values is None:
            continue
        label = f"{version.name}: {values[-1]:,.0f} bytes at step {one.steps[-1]}"
        rows += [
            {"step": step, "value": round(value, 1), "run": number % charts.RUNS, "line": version.name, "label": label}
            for step, value in zip(one.steps, values, strict=True)
        ]
    return rows


def excerpt(text: str) -> str:
    """The first and the last lines of a file, long ones cut, made visible."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if len(lines) > LINES + 1:
        half = LINES // 2
        between = f"… {len(lines) - LINES} more lines …"
        lines = [*map(_short, lines[:half]), between, *map(_short, lines[-half:])]
    else:
        lines = [_short(line) for line in lines]
    return visible_lines("\n".join(lines))


def _short(line: str) -> str:
    more = len(line) - CHARACTERS
    return line if more <= 0 else f"{line[:CHARACTERS]}… {more} more characters"
