"""Whether a run came out the same, for the terminal and as plain values. What models wrote is made safe to show."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

from automem.differing import Difference
from automem.reproduced import EpisodeVerdict, Figure, Verdict
from automem.tables import percent
from automem.trace.diff import between
from automem.visible import visible
from automem.vocabulary import one_line

WIDTH = 160
"""Characters of a line that is shown."""

LINES = 12
"""Lines of a diff that are shown."""

BEFORE = 40
"""Characters shown before the first one that differs."""

FIGURES = 6
"""Results of an episode that are shown when they differ."""

_MARKS = {"same": ("=", "green"), "differs": ("≠", "red"), "incomplete": ("?", "yellow")}


def show(verdict: Verdict, console: Console) -> None:
    """Print one line an episode, then the first difference of every kind, explained; the verdict last."""
    for line in _lines(verdict):
        console.print(line, soft_wrap=True)


def plain(verdict: Verdict) -> dict[str, Any]:
    """The same as plain values, for JSON."""
    return {
        "then": verdict.then,
        "now": verdict.now,
        "same": verdict.same,
        "versions": list(verdict.versions),
        "settings": list(verdict.settings),
        "left_out": list(verdict.left_out),
        "episodes": [_plain(verdict, episode) for episode in verdict.episodes],
    }


def _plain(verdict: Verdict, episode: EpisodeVerdict) -> dict[str, Any]:
    difference = episode.difference
    return {
        "task": episode.task,
        "seed": episode.seed,
        "status": episode.status,
        "same_steps": episode.steps,
        "progression": {"then": episode.progression[0], "now": episode.progression[1]},
        "difference": None
        if difference is None
        else {
            "step": difference.step,
            "cause": difference.cause,
            "what": difference.what,
            "phase": difference.phase,
            "turn": difference.turn,
            "specialist": difference.specialist,
            "at": difference.at,
            "then": excerpt(difference.then, difference.at),
            "now": excerpt(difference.now, difference.at),
            "why": list(episode.why),
            "commands": commands(verdict, episode),
        },
        "results": [{"name": f.name, "then": f.then, "now": f.now} for f in episode.figures],
        "notes": list(episode.notes),
    }


def commands(verdict: Verdict, episode: EpisodeVerdict) -> list[str]:
    """What shows the step at which an episode differs, in the first run and in the second."""
    step = 0 if episode.difference is None else episode.difference.step
    several = len({other.task for other in verdict.episodes}) > 1
    where = ["--task", episode.task] if several else []
    where += ["--seed", str(episode.seed), "--from", str(step), "--to", str(step), "--full"]
    return [shlex.join(["automem", "trace", "steps", run, *where]) for run in (verdict.then, verdict.now)]


def _lines(verdict: Verdict) -> Iterator[Text]:
    yield Text(f"then: {verdict.then}   now: {verdict.now}", style="bold")
    for line in (*verdict.settings, *verdict.versions, *verdict.left_out):
        yield Text(f"! {one_line(line, 400)}", style="yellow")
    for episode in verdict.episodes:
        yield _line(episode)
    told: set[str] = set()
    for episode in verdict.episodes:
        if episode.status == "differs":
            cause = "result" if episode.difference is None else episode.difference.cause
            if cause not in told:
                yield from _explained(verdict, episode)
            told.add(cause)
    yield Text()
    yield _ending(verdict)


def _line(episode: EpisodeVerdict) -> Text:
    mark, style = _MARKS[episode.status]
    line = Text(f"{mark} ", style=style).append(f"{episode.task} {episode.seed}: ", style="default")
    difference = episode.difference
    if difference is not None:
        line.append(f"differs at step {difference.step}: {_where(difference)}")
    elif episode.status == "differs":
        line.append(f"the {episode.steps} steps are the same, what they came to is not")
    elif episode.status == "same":
        line.append(f"the same, {episode.steps} steps, {percent(episode.progression[0])} %")
    else:
        line.append(f"the same for {episode.steps} steps, and no further")
    for note in episode.notes:
        line.append(f"; {one_line(note, 400)}", style="yellow")
    return line


def _where(difference: Difference) -> str:
    """What differs first, and where in the step."""
    what = one_line(difference.what, 100)
    if difference.phase is None:
        return what
    who = " of the specialist" if difference.specialist else ""
    turn = 0 if difference.turn is None else difference.turn
    return f"{what} in {difference.phase.upper()}, turn {turn}{who}"


def _explained(verdict: Verdict, episode: EpisodeVerdict) -> Iterator[Text]:
    difference = episode.difference
    yield Text()
    if difference is not None:
        yield Text(f"{episode.task} {episode.seed}, step {difference.step}: {_where(difference)}", style="bold")
        yield from _diff(difference)
        for sentence in episode.why:
            yield Text(f"  {one_line(sentence, 600)}")
    else:
        yield Text(f"{episode.task} {episode.seed}: results", style="bold")
        yield Text("  Every step is the same: AutoMem counts otherwise now, or somebody changed what is stored.")
    for figure in episode.figures[:FIGURES]:
        yield from _figure(figure)
    if len(episode.figures) > FIGURES:
        yield Text(f"  {len(episode.figures) - FIGURES} more results differ; --json lists them", style="dim")
    if difference is not None:
        for command in commands(verdict, episode):
            yield Text(f"  {visible(command)}", style="cyan")


def _diff(difference: Difference) -> Iterator[Text]:
    """The two texts: lines that differ, or of long lines what is around the first character that does."""
    if "\n" in difference.then + difference.now:
        changed = between({"": f"{difference.then}\n"}, {"": f"{difference.now}\n"})[""].diff.split("\n")
        if all(len(line) <= WIDTH for line in changed[:LINES]):
            for line in changed[:LINES]:
                yield Text(f"  {visible(line)}", style=_STYLES.get(line[:1], "dim"))
            if len(changed) > LINES:
                yield Text(f"  … {len(changed) - LINES} more lines", style="dim")
            return
    for name, text, style in (("then", difference.then, "red"), ("now ", difference.now, "green")):
        yield Text(f"  {name} ", style="dim").append(visible(excerpt(text, difference.at)) or "(nothing)", style=style)


_STYLES = {"-": "red", "+": "green", "@": "cyan"}


def excerpt(text: str, at: int) -> str:
    """What is around a character of a text, with signs of what was left out."""
    start = 0 if len(text) <= WIDTH else max(0, at - BEFORE)
    end = start + WIDTH
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


def _figure(figure: Figure) -> Iterator[Text]:
    if not figure.name.startswith("memory/"):
        then, now = (one_line(str(value), 100) for value in (figure.then, figure.now))
        yield Text(f"  {one_line(figure.name, 60)}: {then} then, {now} now")
        return
    change, *lines = figure.now.split("\n")
    yield Text(f"  {visible(figure.name)}: {change}")
    for line in lines[:LINES]:
        yield Text(f"    {visible(line[:WIDTH])}", style=_STYLES.get(line[:1], "dim"))
    if len(lines) > LINES:
        yield Text(f"    … {len(lines) - LINES} more lines", style="dim")


def _ending(verdict: Verdict) -> Text:
    of = len(verdict.episodes)
    same, differing, incomplete = (verdict.count(status) for status in ("same", "differs", "incomplete"))
    if verdict.same:
        return Text(f"it came out the same: all of {of} episodes" if of > 1 else "it came out the same", style="green")
    parts = [f"{same} of {of} episodes came out the same"]
    parts += [f"{differing} differ" if differing != 1 else "1 differs"] if differing else []
    parts += [f"{incomplete} could not be compared to the end"] if incomplete else []
    return Text(", ".join(parts), style="red" if differing else "yellow")
