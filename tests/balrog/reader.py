"""The other side of an export: reads a folder of results as BALROG's summariser does, written again for these tests.

It knows files and field names only; nothing of AutoMem is imported, so that it cannot agree by sharing code.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections import defaultdict
from pathlib import Path
from typing import Any


def episodes_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Environment -> logs of its episodes: every JSON below its folder that is no summary."""
    found = defaultdict(list)
    for entry in os.scandir(folder):
        if not entry.is_dir():
            continue
        for where, _, names in os.walk(entry.path):
            for name in names:
                if name.endswith(".json") and not name.endswith("_summary.json") and name != "summary.json":
                    found[entry.name].append(json.loads(Path(where, name).read_text("utf-8")))
    return dict(found)


def summed_up(folder: Path) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The summary of each environment, and that of the folder."""
    per_environment = {}
    for name, logs in episodes_of(folder).items():
        tasks = defaultdict(list)
        for log in logs:
            tasks[log["task"]].append(log.get("progression", 0.0))
        per_environment[name] = {
            **_figure([log.get("progression", 0.0) for log in logs]),
            "average_steps": sum(log.get("num_steps", 0) for log in logs) / len(logs),
            "tasks": {task: _figure(values) for task, values in tasks.items()},
            "input_tokens": sum(log.get("input_tokens", 0) for log in logs),
            "output_tokens": sum(log.get("output_tokens", 0) for log in logs),
        }
    several = list(per_environment.values())
    whole = {
        "average_progress": sum(one["progression_percentage"] for one in several) / len(several),
        "standard_error": math.sqrt(sum(one["standard_error"] ** 2 for one in several)) / len(several),
        "environments": {
            name: {key: one[key] for key in ("progression_percentage", "standard_error", "episodes_played")}
            for name, one in per_environment.items()
        },
        "total_input_tokens": sum(one["input_tokens"] for one in several),
        "total_output_tokens": sum(one["output_tokens"] for one in several),
    }
    return per_environment, whole


def leaderboard_line(folder: Path) -> dict[str, Any]:
    """What the site's table takes from a submission: three figures an environment, and the average."""
    summary = json.loads((folder / "summary.json").read_text("utf-8"))
    line: dict[str, Any] = {
        name: [one["progression_percentage"], one["standard_error"], one["episodes_played"]]
        for name, one in summary["environments"].items()
    }
    line["average"] = [summary["average_progress"], summary["standard_error"]]
    return line


def is_complete(folder: Path, environment: str, task: str, number: int) -> bool:
    """Whether BALROG's evaluator, asked to go on in this folder, would skip this episode."""
    return (folder / environment / task / f"{task}_run_{number:02d}.json").exists()


def rows_of(path: Path) -> list[dict[str, str]]:
    """The steps of a trajectory."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, escapechar="˘"))


def _figure(values: list[float]) -> dict[str, Any]:
    """Percent, with the spread of the values themselves over the root of their number."""
    count = len(values)
    middle = sum(values) / count
    spread = math.sqrt(sum((value - middle) ** 2 for value in values) / count)
    return {
        "progression_percentage": 100 * middle,
        "standard_error": 100 * spread / math.sqrt(count) if count > 1 else 0.0,
        "episodes_played": count,
    }
