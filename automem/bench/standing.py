"""What a bench's results say in words, for every place that shows them: who stands where, under which labels, and
what a reader must not miss.

Results are the dictionary of ``results.json``. Progressions in it are shares in [0, 1]; words give percent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import games
from automem.bench.references import GAMES, SUITE, counted, differences
from automem.metric_names import CLOCKS, figure, metric, unit
from automem.report.figures import percent

Results = Mapping[str, Any]

NAMES = {"crafter": "Crafter", "minihack": "MiniHack", "nethack": "NetHack", "overall": "overall"}
"""Game -> what it is called in a heading; others go by their own name."""

NOTHING: Mapping[str, Any] = {
    "progression": None, "standard_error": None, "interval": None, "episodes": 0, "planned": 0, "complete": True,
    "balrog": None,
}  # fmt: skip
"""The row of something that was not played."""


COMPARABLE = (
    f"Figures of suite {SUITE} compare with these at its own step limits and numbers of episodes, complete, and on "
    "official Boxoban levels; those of MiniHack by BALROG's scoring. Agents, prompts and seeds still differ."
)
"""Which settings make figures of a bench comparable with published ones."""

MINIHACK_SCORING = (
    "BALROG's scoring takes an episode of MiniHack for failed when its last reward is below 1.0, so also when a step "
    "penalty made it 0.99; progression asks whether the task was done."
)


@dataclass(frozen=True, slots=True)
class Played:
    """What was played of one task.

    Attributes:
        task: its name.
        game: which game it belongs to.
        seeds: as a person would write them: ``42..46``.
        steps: the most steps of an episode.
        facts: labels that its results carry, such as ``levels: generated``.
    """

    task: str
    game: str
    seeds: str
    steps: int
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """What could not be played: an episode, or all that an agent had to play.

    Attributes:
        agent: its label.
        task, seed: of the episode; ``all`` where it is the agent.
        why: as it was told.
    """

    agent: str
    task: str
    seed: str
    why: str


def ranked(results: Results) -> list[Mapping[str, Any]]:
    """The agents, the furthest first; those whose mean is not complete come after all others, in the same way.

    Agents that came as far stay in the order of the results.
    """

    def place(agent: Mapping[str, Any]) -> tuple[bool, bool, float]:
        progression = agent["overall"]["progression"]
        return progression is None, not agent["complete"], -(progression or 0.0)

    return sorted(results["agents"], key=place)


def shown_games(results: Results) -> list[str]:
    """The games that were to be played: those of BALROG in its order, then others."""
    found = {games.game_of(task["task"]) for task in results["settings"]["tasks"]}
    return [game for game in GAMES if game in found] + sorted(found - set(GAMES))


def game_name(game: str) -> str:
    """What a game is called in a heading."""
    return NAMES.get(game, game)


def row(agent: Mapping[str, Any], game: str) -> Mapping[str, Any]:
    """An agent's row of a game, or of ``overall``; `NOTHING` where it has none."""
    found: Mapping[str, Any] = agent["overall"] if game == "overall" else agent["per_game"].get(game, NOTHING)
    return found


def labels(agent: Mapping[str, Any]) -> list[str]:
    """What must stand beside an agent's name, most important first."""
    # None: it has not begun, and what it plays with is not known.
    found = ["not a language model"] if agent["language_model"] is False else []
    if not agent["complete"]:
        found.append(incomplete(agent["overall"]) or "incomplete")
    return found


def incomplete(found: Mapping[str, Any]) -> str:
    """``incomplete: 3 of 5 episodes`` for a row that lacks some; empty for one that is whole."""
    if found["complete"]:
        return ""
    return f"incomplete: {found['episodes']} of {counted(found['planned'], 'episode')}"


def who(agent: Mapping[str, Any]) -> str:
    """Agent, model and specialist in words: ``memory, smollm2 with specialist NAME``."""
    model = "" if agent["model"] in ("none", None) else f", {agent['model']}"
    return f"{agent['agent']}{model}{' with specialist ' + agent['specialist'] if agent['specialist'] else ''}"


def tokens_per_step(agent: Mapping[str, Any]) -> float | None:
    """Prompt and completion tokens a step; None where it has no model or played no step."""
    if agent["model"] == "none":
        return None
    parts = [agent["behaviour"].get(f"{kind}_tokens_per_step") for kind in ("prompt", "completion")]
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def played(results: Results) -> list[Played]:
    """What was played, task by task, in the order of the settings."""
    return [
        Played(
            task["task"],
            games.game_of(task["task"]),
            seeds(task["seeds"]),
            task["steps"],
            tuple(sorted(f"{key}: {value}" for key, value in task["facts"].items())),
        )
        for task in results["settings"]["tasks"]
    ]


def seeds(numbers: Sequence[int]) -> str:
    """Seeds as a person writes them: runs of numbers in order as ``42..46``."""
    parts: list[tuple[int, int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1] = (parts[-1][0], number)
        else:
            parts.append((number, number))
    return ", ".join(str(first) if first == last else f"{first}..{last}" for first, last in parts)


def cautions(results: Results) -> list[str]:
    """What a reader must not miss about these figures, as sentences; empty where there is nothing."""
    found = []
    failed = sum(len(agent["failed"]) for agent in results["agents"])
    if failed or not results["complete"]:
        were = f"{counted(failed, 'episode')} failed" if failed else "some episodes are not played yet"
        found.append(f"Incomplete: {were}. They are missing from the means, which are marked; none is counted as zero.")
    settings = results["settings"]
    own = [name for key, name in (("suite_steps", "step limits"), ("suite_seeds", "seeds")) if not settings[key]]
    if own:
        found.append(
            f"Not the {' and '.join(own)} of suite {results['suite']}: these figures compare with one another, "
            "and with no run of the suite as it is."
        )
    generated = [task.task for task in played(results) if "levels: generated" in task.facts]
    if generated:
        found.append(
            f"Played on generated levels, not on the official ones: {', '.join(generated)}. Figures on the two are "
            "never mixed."
        )
    others = [agent["label"] for agent in ranked(results) if agent["language_model"] is False]
    if others:
        found.append(
            f"Not language models: {', '.join(others)}. Such agents are programs or fixed replies; their figures say "
            "nothing about LLMs."
        )
    return found


def failed(results: Results) -> list[Failed]:
    """What is missing from the means, and why: agents first, then episodes, each in the order of `ranked`."""
    agents = ranked(results)
    found = [Failed(agent["label"], "all", "all", str(agent["error"])) for agent in agents if agent.get("error")]
    return found + [
        Failed(agent["label"], one["task"], str(one["seed"]), str(one["error"]))
        for agent in agents
        for one in agent["failed"]
    ]


def apart(results: Results) -> list[str]:
    """Why published figures cannot be read straight against these, a sentence a game; empty where they can."""
    found = [
        f"{game_name(game)}: {'; '.join(reasons)}."
        for game, reasons in sorted(differences(results).items(), key=lambda item: _place(item[0]))
        if reasons
    ]
    partly = [
        game_name(game)
        for game in shown_games(results)
        if any(not row(agent, game)["complete"] for agent in results["agents"])
    ]
    return [*found, f"Incomplete means: {', '.join(partly)}."] if partly else found


def behaviour(agents: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, str, list[str]]]:
    """Behaviour metrics that any agent has: name, unit, what it counts, and its value for each agent."""
    chosen = list(agents)
    names = dict.fromkeys(name for agent in chosen for name in agent["behaviour"] if name not in CLOCKS)
    return [
        (
            metric(name).label,
            unit(name),
            metric(name).meaning,
            [figure(name, agent["behaviour"].get(name)).replace("-", "–") for agent in chosen],
        )
        for name in names
        if any(agent["behaviour"].get(name) is not None for agent in chosen)
    ]


def cost(agent: Mapping[str, Any]) -> str:
    """What its calls cost, in US dollars; a dash where no price is known."""
    spent = agent["usage"]["cost"]
    return "–" if spent is None else f"${spent:,.2f}" if spent >= 0.01 or spent == 0 else f"${spent:.2g}"


def uncertain(found: Mapping[str, Any], digits: int = 2) -> str:
    """Progression in percent with its standard error: ``12.27 ± 1.36``; a dash for none."""
    if found["progression"] is None:
        return "–"
    error = found["standard_error"]
    return percent(found["progression"], digits) + ("" if error is None else f" ± {percent(error, digits)}")


def span(found: Mapping[str, Any], digits: int = 1) -> str:
    """Its 95 % interval in percent: ``[9.8, 14.9]``; empty for none."""
    ends = found["interval"]
    return "" if ends is None else f"[{percent(ends[0], digits)}, {percent(ends[1], digits)}]"


def commands(results: Results) -> list[str]:
    """What to type to do it again: the bench, where its results say how, and each agent's run."""
    found = [str(results["command"])] if results.get("command") else []
    return found + [f"automem rerun {agent['run']}" for agent in results["agents"]]


def _place(game: str) -> tuple[int, str]:
    return (GAMES.index(game) if game in GAMES else len(GAMES), game)
