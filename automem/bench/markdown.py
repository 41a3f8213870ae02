"""A bench's results as Markdown, for a README or a paper's repository. The same results give the same text.

Names in it may be anybody's, and errors may hold what a model wrote: nothing of either becomes Markdown or HTML.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from automem.bench import references as published
from automem.bench import standing
from automem.bench.references import GAMES, Figure, References, Source
from automem.bench.standing import Results
from automem.report.figures import percent
from automem.visible import visible

LONGEST = 200
"""Characters of a name or an error that are shown."""

_SIGNS = re.compile(r"([\\`*_{}\[\]<>#|!~&@$^]|:(?=\S))")
_ADDRESS = re.compile(r"(?i)\bwww(?=\.)")

Row = Mapping[str, Any]


def render(results: Results, references: References | None = None) -> str:
    """All of a bench's results: what was played, the table of agents, tasks, behaviour, failures, references.

    Args:
        results: of ``results.json``.
        references: published figures to stand below; those that come with AutoMem when None.
    """
    parts = [f"# {plain(results['bench'])}", _played(results)]
    parts += [f"> **Careful.** {plain(caution, 2_000)}" for caution in standing.cautions(results)]
    parts += [table(results), _tasks(results)]
    if behaviour := _behaviour(results):
        parts += ["## Behaviour", behaviour]
    if failed := _failed(results):
        parts += ["## Failed episodes", failed]
    parts += ["## References", _references(results, published.load() if references is None else references)]
    parts += ["## To do it again", _again(results)]
    return "\n\n".join(parts) + "\n"


def table(results: Results) -> str:
    """The table of agents alone, the furthest first, with what its columns mean."""
    games = standing.shown_games(results)
    both = "minihack" in games
    columns = [*games, "overall"] if len(games) > 1 else games
    header = ["agent", "what it is", *map(standing.game_name, columns)]
    header += ["BALROG's scoring: MiniHack" + (", overall" if len(games) > 1 else "")] if both else []
    rows = []
    for agent in standing.ranked(results):
        told = "; ".join([plain(standing.who(agent)), *(f"**{label}**" for label in standing.labels(agent))])
        cells = [f"**{plain(agent['label'])}**", told]
        cells += [_progression(standing.row(agent, column)) for column in columns]
        if both:
            scored = ["minihack", "overall"] if len(games) > 1 else ["minihack"]
            cells.append(", ".join(percent(standing.row(agent, game)["balrog"], 2) for game in scored))
        tokens = standing.tokens_per_step(agent)
        cells += ["–" if tokens is None else f"{tokens:,.0f}", _escaped(standing.cost(agent))]
        rows.append(cells)
    said = "Progression in % ± standard error as BALROG computes it, [95 % interval], (episodes)."
    if any(not agent["complete"] for agent in results["agents"]):
        said += " The furthest first; agents whose episodes are not all finished come last."
    if both:
        said += f" {standing.MINIHACK_SCORING}"
    return _table([*header, "tokens/step", "cost"], rows, right=range(2, len(header) + 2)) + f"\n\n{said}"


def plain(text: str, most: int = LONGEST) -> str:
    """Text that says in Markdown what it says as it stands: cut, on one line, with signs that print."""
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return _escaped(visible(cut).replace("\r", " "))


def _escaped(text: str) -> str:
    return _ADDRESS.sub(r"\g<0>\\", _SIGNS.sub(r"\\\1", text))


def _played(results: Results) -> str:
    """What was played, in a table: it decides what figures mean."""
    rows = [
        [plain(task.task), plain(task.seeds), f"{task.steps:,}", plain("; ".join(task.facts)) or "–"]
        for task in standing.played(results)
    ]
    head = f"Suite {plain(results['suite'])}, {published.counted(len(results['agents']), 'agent')}."
    return f"{head}\n\n" + _table(["task", "seeds", "most steps", "remarks"], rows, right=[2])


def _tasks(results: Results) -> str:
    """Every agent's figures of every task."""
    rows = []
    for task in standing.played(results):
        for agent in standing.ranked(results):
            found = agent["per_task"].get(task.task)
            if found is None:
                rows.append([plain(task.task), plain(agent["label"]), "–", "–", "–", "–", "no episode is finished"])
                continue
            remarks = [*found.get("facts", ()), standing.incomplete(found)]
            rows.append(
                [
                    plain(task.task), plain(agent["label"]), _progression(found, remarks=False),
                    percent(found["balrog"], 2), _number(found.get("mean_steps"), 0),
                    _number(found.get("mean_return"), 2), plain("; ".join(filter(None, remarks))) or "–",
                ]
            )  # fmt: skip
    header = ["task", "agent", "progression", "BALROG's scoring", "mean steps", "mean return", "remarks"]
    return "## Tasks\n\n" + _table(header, rows, right=[2, 3, 4, 5])


def _behaviour(results: Results) -> str:
    agents = standing.ranked(results)
    rows = [
        [plain(f"{name} {unit}".strip()), *values, meaning]
        for name, unit, meaning, values in standing.behaviour(agents)
    ]
    if not rows:
        return ""
    header = ["metric", *(plain(agent["label"]) for agent in agents), "what it counts"]
    return _table(header, rows, right=range(1, len(agents) + 1))


def _failed(results: Results) -> str:
    """Agents that could not be played and episodes that are missing from the means, and why."""
    rows = [[plain(one.agent), plain(one.task), plain(one.seed), plain(one.why)] for one in standing.failed(results)]
    return _table(["agent", "task", "seed", "why"], rows, right=[2]) if rows else ""


def _references(results: Results, references: References) -> str:
    """Published figures, each source with its own table and settings, in the order of the file: no ranking."""
    said = "Published figures of others, not measured here, in no order of merit."
    parts = [f"{said} {plain(standing.COMPARABLE, 2_000)}"]
    if apart := standing.apart(results):
        parts.append(f"**Not comparable as they stand with the figures above.** {plain(' '.join(apart), 5_000)}")
    for key, source in references.sources.items():
        parts += [f"### {plain(source.title)}", _source(source), _published(references, key)]
    return "\n\n".join(parts)


def _source(source: Source) -> str:
    where = f"Read: {plain(source.read, 2_000)}"
    where += f" ([this state]({source.permalink}))." if source.permalink else "."
    settings = "\n".join(f"- {plain(setting, 2_000)}" for setting in source.settings)
    return f"{plain(source.citation, 2_000)} ([source]({source.url})). {where}\n\n{settings}"


def _published(references: References, key: str) -> str:
    rows = []
    for reference in references.of(key):
        notes = [reference.note] if reference.note else []
        notes += [] if reference.verified else ["not verified"]
        notes += [f"{standing.game_name(game)}: 0.0 unconfirmed, left out" for game in reference.unconfirmed]
        named = f"[{plain(reference.name)}]({references.link(reference)})"
        figures = [_figure(reference.figure(game)) for game in GAMES]
        cells = [named, reference.agent, *figures, _figure(reference.overall), reference.date, "; ".join(notes) or "–"]
        rows.append([cells[0], *(plain(cell) for cell in cells[1:])])
    header = ["model", "agent", "Crafter", "MiniHack, BALROG's scoring", "NetHack", "overall, computed here"]
    header += ["date", "remarks"]
    return _table(header, rows, right=[2, 3, 4, 5])


def _figure(figure: Figure | None) -> str:
    if figure is None:
        return "–"
    episodes = "" if figure.episodes is None else f" ({figure.episodes})"
    return f"{figure.progression:.2f}" + ("" if figure.error is None else f" ± {figure.error:.2f}") + episodes


def _again(results: Results) -> str:
    """Commands as a block of code: a fence longer than any in it."""
    lines = [visible(command) for command in standing.commands(results)]
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    versions = ", ".join(f"{package} {version}" for package, version in sorted(results["versions"].items()))
    return "\n".join([fence, *lines, fence]) + (f"\n\nVersions: {plain(versions, 2_000)}." if versions else "")


def _progression(found: Row, remarks: bool = True) -> str:
    """``12.27 ± 1.36 [9.2, 15.3] (10)``, with what is missing from it."""
    if found["progression"] is None:
        return standing.incomplete(found) or "–" if remarks else "–"
    parts = [standing.uncertain(found), _escaped(standing.span(found))]
    missing = standing.incomplete(found) if remarks else ""
    return " ".join(filter(None, [*parts, f"(**{missing}**)" if missing else f"({found['episodes']})"]))


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] | range = ()) -> str:
    """Cells must be Markdown already."""
    rule = ["---:" if column in right else "---" for column in range(len(header))]
    return "\n".join(f"| {' | '.join(line)} |" for line in [header, rule, *rows])
