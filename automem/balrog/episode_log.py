"""One episode as BALROG writes it: the log (``…_run_NN.json``) and the trajectory (``…_run_NN.csv``).

Fields and columns are those of BALROG's evaluator in the version whose results its leaderboard shows. What our
records cannot fill truthfully is left out, never guessed: in NetHack that is `end_reason`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

import games
from automem import ops
from automem.balrog import scoring
from automem.episode import EpisodeResult
from automem.records import StepRecord

COLUMNS = ("Step", "Action", "Reasoning", "Observation", "Reward", "Done")
ESCAPE = "˘"
"""BALROG's escape sign in the CSV files; readers must be told."""

ACHIEVEMENTS = (
    *("collect_coal", "collect_diamond", "collect_drink", "collect_iron", "collect_sapling", "collect_stone"),
    *("collect_wood", "defeat_skeleton", "defeat_zombie", "eat_cow", "eat_plant", "make_iron_pickaxe"),
    *("make_iron_sword", "make_stone_pickaxe", "make_stone_sword", "make_wood_pickaxe", "make_wood_sword"),
    *("place_furnace", "place_plant", "place_stone", "place_table", "wake_up"),
)
"""Crafter's, in BALROG's order; its logs list those that were not reached, too."""

ABORTED, DEATH, SOLVED = -1, 1, 2
"""MiniHack's `end_reason`: NLE's numbers for how an episode ended."""

_SHORT_TERM = re.compile(r"\n\n(?:Your status:\n|inventory:(?:\n|\Z))")
"""Where the short-term part of an observation begins, in traces that do not say."""

_STATUS = re.compile(r"^Dlvl:(\d+) +\$:(\d+) .*?Xp:(\d+)/", re.MULTILINE)
"""The bottom line of NetHack's screen: dungeon level, gold, experience level."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for a formula, at the beginning of a cell."""


@dataclass
class Seen:
    """What is gathered while the steps of an episode go by.

    Attributes:
        actions: action -> how often it was played.
        failed: for each step at which the game's default was played: what the model wrote instead of an action.
        dungeon_levels, experience_levels: NetHack's, in the order in which the screen first showed them.
        status: NetHack's dungeon level, gold and experience level as last shown; None where none were.
    """

    actions: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    dungeon_levels: list[int] = field(default_factory=list)
    experience_levels: list[int] = field(default_factory=list)
    status: tuple[int, int, int] | None = None

    def add(self, record: StepRecord, led_to: str) -> None:
        """Take in one step; `led_to` is the long-term text after its action."""
        self.actions[record.action] = self.actions.get(record.action, 0) + 1
        if record.fallback:
            self.failed.append(_said(record))
        shown = list(_STATUS.finditer(led_to))
        if shown:
            depth, gold, level = (int(number) for number in shown[-1].groups())
            self.status = depth, gold, level
            for number, levels in ((depth, self.dungeon_levels), (level, self.experience_levels)):
                if number not in levels:
                    levels.append(number)


def write_trajectory(file: TextIO, result: EpisodeResult, records: Iterable[StepRecord]) -> Seen:
    """Write the steps of a finished episode as BALROG's CSV. Returns what they came to.

    `Observation` is the long-term text *after* the action; `Action` what the model wrote, where it named an action;
    `Reasoning` what it wrote before that in the same phase.
    """
    seen = Seen()
    writer = csv.writer(file, escapechar=ESCAPE, quoting=csv.QUOTE_MINIMAL)
    writer.writerow(COLUMNS)
    for record, led_to in _with_outcomes(result, records):
        seen.add(record, led_to)
        written = record.action if record.raw_action is None else record.raw_action
        done = record.terminated or record.truncated
        writer.writerow([record.step, _cell(written), _cell(reasoning(record)), led_to, record.reward, done])
    return seen


def log(
    result: EpisodeResult, progression: float, seen: Seen, agent: Mapping[str, Any], client: Mapping[str, Any]
) -> dict[str, Any]:
    """The episode's JSON.

    Args:
        result: the episode.
        progression: what BALROG would give it (`scoring.progression`).
        seen: what its trajectory came to.
        agent, client: who played, as BALROG's settings of those names.
    """
    counts = result.counts
    return {
        "task": scoring.task_name(result.task),
        "action_frequency": dict(seen.actions),
        "input_tokens": counts.prompt_tokens,
        "output_tokens": counts.completion_tokens,
        "done": result.terminated or result.truncated,
        "episode_return": result.episode_return,
        "num_steps": result.steps,
        "failed_candidates": list(seen.failed),
        **_stats(result, progression, seen),
        "process_num": None,
        "seed": result.seed,
        "agent": dict(agent),
        "client": dict(client),
        **({"facts": dict(result.facts)} if result.facts else {}),
    }


def reasoning(record: StepRecord) -> str:
    """What the model wrote in PLAN before the action that it committed; empty when it wrote the action only."""
    texts = [turn.text for turn in record.plan]
    if not texts:
        return ""
    last = texts[-1]
    span = ops.parse(last, ops.PLAN).action_span
    if span is not None:
        texts[-1] = last[: span[0]]
    elif last.strip() in (record.raw_action, record.action):
        texts[-1] = ""
    return "\n\n".join(text.strip() for text in texts if text.strip())


def long_term(text: str, characters: int | None) -> str:
    """The long-term part of an observation's text: its first so many characters.

    With None, of traces that do not say, everything before the status or the inventory, whichever comes last.
    """
    if characters is not None:
        return text[:characters]
    found = list(_SHORT_TERM.finditer(text))
    return text[: found[-1].start()] if found else text


def _with_outcomes(result: EpisodeResult, records: Iterable[StepRecord]) -> Iterator[tuple[StepRecord, str]]:
    """Each step with the long-term text that its action led to."""
    before: StepRecord | None = None
    for record in records:
        if before is not None:
            yield before, long_term(record.observation, record.long_term)
        before = record
    if before is not None:
        yield before, long_term(result.final_observation, result.final_long_term)


def _said(record: StepRecord) -> str:
    if record.raw_action is not None:
        return record.raw_action
    return record.plan[-1].text.strip() if record.plan else ""


def _cell(text: str) -> str:
    """Text that a model wrote, so that a spreadsheet does not take it for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _stats(result: EpisodeResult, progression: float, seen: Seen) -> dict[str, Any]:
    """What each of BALROG's environments adds to the log."""
    game = games.game_of(result.task)
    if game == "crafter":
        counts = {name: result.achievements.get(name, 0) for name in ACHIEVEMENTS}
        return {
            "score": float(sum(count > 0 for count in counts.values())),
            "progression": progression,
            "achievements": counts,
        }
    if game == "nethack":
        return _nethack(result, progression, seen)
    solved = result.progression >= 1.0
    ended = SOLVED if solved else DEATH if result.terminated else ABORTED
    return {"progression": progression, "end_reason": ended, "success": solved}


def _nethack(result: EpisodeResult, progression: float, seen: Seen) -> dict[str, Any]:
    """Of the last moment of the living game: BALROG's own logs show zeros once it is over."""
    told = (("score", "score"), ("time", "turns"))
    known: dict[str, Any] = {name: result.achievements[ours] for name, ours in told if ours in result.achievements}
    if seen.status is not None:
        known |= dict(zip(("depth", "gold", "experience_level"), seen.status, strict=True))
        known |= {
            "dlvl_list": [f"Dlvl:{level}" for level in seen.dungeon_levels],
            "xplvl_list": [f"Xp:{level}" for level in seen.experience_levels],
        }
    return {**known, "highest_achievement": _highest(result, progression), "progression": progression}


def _highest(result: EpisodeResult, progression: float) -> str | None:
    """The entry of BALROG's table that made the progression; None, as in BALROG, where nothing above 0 was reached."""
    from games.nethack.game import achievements

    if progression <= 0:
        return None
    reached = (
        f"Xp:{result.achievements.get('experience_level', 0)}",
        f"Dlvl:{result.achievements.get('dungeon_level', 0)}",
    )
    return next((name for name in reached if achievements().get(name) == progression), None)
