"""The README of an exported folder: what a reader of BALROG's files must know about ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from automem.runs import Run
from automem.tables import percent
from automem.visible import visible

_MOST = 50
"""Missing episodes that are listed."""

_FIELDS = """\
- Names are BALROG's: environment `crafter` with task `default`, `minihack`, `nle` with `NetHackChallenge-v0`. Run NN is
  the number of the seed in the plan; the log names the seed.
- MiniHack's `progression` follows BALROG's own rule, so that its tools give what it would have given: the last reward
  must be at least 1.0, and a winning move that costs the step penalty of 0.01 counts as a failure. `success` beside it
  says whether the task was solved.
- NetHack's `score`, `time`, `depth`, `gold` and `experience_level` are those of the last moment of the living game, as
  the screen showed it; BALROG's own logs hold zeros once a game is over. `end_reason` is left out there.
- `done` is true for an episode that was cut off by its step limit or for want of progress, too, as in BALROG.
- `failed_candidates` holds what was written at each step at which the game's default action was played. An action that
  was refused and then corrected within the same step is not among them.
- `input_tokens` and `output_tokens` are of all calls: those for memory work are among them.
- In the CSV files `Observation` is the long-term part of what the action led to, without white space at its end;
  `Action` is what was written, also where a scaffold's code played another; `action_frequency` counts what was played.
  Text of a model that a spreadsheet could take for a formula begins with an apostrophe. The escape sign is `˘`.
- `process_num` is always null; seeds and versions are what makes an episode again.
- Standard errors are BALROG's: the population spread over the root of n, 0 for one episode. The figure of an
  environment pools its episodes; `average_progress` is the mean of the environments that are here.
"""

_SUBMISSION = """\
A submission to BALROG's leaderboard also needs a `metadata.yaml` with `name`, `oss`, `site`, `verified: false` and
`date` ("YYYY-MM-DD"). BALROG has more environments than these; `average_progress` over some of them must not be held
against its leaderboard's.
"""


def note(run: Run, logs: Mapping[str, Sequence[Mapping[str, Any]]], left_out: Sequence[Mapping[str, Any]]) -> str:
    """The text, in Markdown.

    Args:
        run: what was exported.
        logs: by environment, those of the episodes that are here.
        left_out: "task", "seed" and "why" of those that are not.
    """
    config = run.config
    parts = [
        f"# {_code(config.name)}\n\nResults of AutoMem in BALROG's format, from one run of {_code(config.target)}.\n",
        f"Agent: {_code(config.agent)}. Model: {_code(config.players)}.{_program(run)}\n",
    ]
    if config.scaffolds:
        played = ", ".join(f"{_code(s.ref)} ({s.identity[:12]})" for s in config.scaffolds.values())
        parts.append(f"Scaffold: {played}.\n")
    parts.append(_limits(run))
    facts = sorted({f"{log['task']}: {k}: {v}" for found in logs.values() for log in found for k, v in _facts(log)})
    if facts:
        listed = "\n".join(f"- {_code(fact)}" for fact in facts)
        parts.append(f"Not comparable with results of other levels:\n\n{listed}\n")
    parts += [_missing(logs, left_out), f"## How the files are filled\n\n{_FIELDS}"]
    parts.append(_SUBMISSION)
    return "\n".join(parts)


def _facts(log: Mapping[str, Any]) -> list[tuple[str, str]]:
    return list(log.get("facts", {}).items())


def _program(run: Run) -> str:
    """A figure of a program must not be taken for a language model's."""
    return {
        "scripted": " This player is a program, not a language model.",
        "fixed": " This player answers by a rule and is no language model; its tokens are characters.",
        "none": " No language model plays.",
    }.get(run.config.model.name, "")


def _limits(run: Run) -> str:
    limits = sorted({(planned.steps, planned.task) for planned in run.config.tasks})
    listed = "\n".join(f"- {_code(task)}: at most {steps} steps" for steps, task in limits)
    return f"Step limits:\n\n{listed}\n"


def _missing(logs: Mapping[str, Sequence[Mapping[str, Any]]], left_out: Sequence[Mapping[str, Any]]) -> str:
    episodes = sum(len(found) for found in logs.values())
    if not left_out:
        return f"All {episodes} planned episodes are here.\n"
    lines = [f"- {_code(one['task'])}, seed {one['seed']}: {_code(one['why'])}" for one in left_out[:_MOST]]
    if len(left_out) > _MOST:
        lines.append(f"- and {len(left_out) - _MOST} more; `automem.json` lists all")
    of = percent(len(left_out) / (episodes + len(left_out)), 0)
    told = f"**Incomplete**: {len(left_out)} planned episodes ({of} %) are missing, from the files and every mean:"
    return "\n".join([told, "", *lines, ""])


def _code(text: str) -> str:
    """Any text as a code span of one line: nothing in it is Markdown."""
    shown = visible(str(text).replace("\n", " ")).replace("`", "'")
    return f"`{shown or ' '}`"
