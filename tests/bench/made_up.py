"""Results of a bench that was never played: every figure is made up, and names say so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from games import suites
from games.registry import game_of

EVIL = "made-up | `x` <script>window.hit=1</script>\n[here](javascript:window.hit=1) **b** www.example.com\u202e\x1b[2J"

TASKS = {
    "Crafter": (2_000, range(42, 52)),
    "MiniHack-Boxoban-Medium-v0": (100, range(42, 47)),
    "MiniHack-Corridor-R3-v0": (100, range(42, 47)),
    "NetHackChallenge-v0": (100_000, range(42, 47)),
}


def row(values: Sequence[float], planned: int, balrog: float | None = None) -> dict[str, Any]:
    """A row over these progressions, of so many planned ones; its interval is no real one."""
    n = len(values)
    mean = sum(values) / n if n else None
    error = (sum((v - mean) ** 2 for v in values) / n) ** 0.5 / n**0.5 if mean is not None else None
    span = None if mean is None or error is None else [max(0.0, mean - 2 * error), min(1.0, mean + 2 * error)]
    return {
        "progression": mean, "standard_error": error, "interval": span, "episodes": n, "planned": planned,
        "complete": n == planned, "balrog": mean if balrog is None else balrog,
    }  # fmt: skip


def agent(label: str, level: float, **changed: Any) -> dict[str, Any]:
    """An agent that comes about so far everywhere: every other episode of a task more, the others less."""
    per_task = {}
    for task, (_, seeds) in TASKS.items():
        by_seed = {str(seed): min(1.0, level * (0.5 + seed % 2)) for seed in seeds}
        balrog = level / 2 if game_of(task) == "minihack" else None
        facts = ["levels: generated"] if "Boxoban" in task else []
        per_task[task] = row(list(by_seed.values()), len(seeds), balrog) | {
            "mean_steps": 321.5, "mean_return": 2.25, "by_seed": by_seed, "facts": facts,
        }  # fmt: skip
    per_game: dict[str, Any] = {}
    for game in ("crafter", "minihack", "nethack"):
        found = [r for task, r in per_task.items() if game_of(task) == game]
        per_game[game] = pooled(found)
    behaviour = {
        "stuck_share": 0.25, "empty_search_share": None, "prompt_tokens_per_step": 1500.0,
        "completion_tokens_per_step": 34.0, "seconds_per_step": 1.5,
    }  # fmt: skip
    return {
        "label": label, "agent": "memory", "model": "made-up/model", "language_model": True, "specialist": None,
        "scaffolds": {"crafter": {"ref": "crafter/v0", "identity": "ab" * 32}}, "run": f"made-up/{label}",
        "complete": True, "overall": pooled(list(per_game.values())), "per_game": per_game, "per_task": per_task,
        "failed": [],
        "usage": {
            "prompt_tokens": 10_000, "completion_tokens": 200, "cached_tokens": 0, "cost": 1.25, "calls": 40,
        },
        "behaviour": behaviour,
    } | changed  # fmt: skip


def pooled(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A row over rows."""
    whole = row([r["progression"] for r in rows if r["progression"] is not None], len(rows))
    return whole | {
        "episodes": sum(r["episodes"] for r in rows), "planned": sum(r["planned"] for r in rows),
        "complete": all(r["complete"] for r in rows), "balrog": sum(r["balrog"] or 0.0 for r in rows) / len(rows),
    }  # fmt: skip


def broken(found: dict[str, Any], task: str, missing: int) -> dict[str, Any]:
    """The agent, with so many of a task's first episodes failed."""
    steps_seeds = TASKS[task][1]
    gone = list(steps_seeds)[:missing]
    left = {seed: value for seed, value in found["per_task"][task]["by_seed"].items() if int(seed) not in gone}
    found["per_task"][task] |= row(list(left.values()), len(steps_seeds)) | {"by_seed": left}
    game = game_of(task)
    found["per_game"][game] = pooled([r for name, r in found["per_task"].items() if game_of(name) == game])
    found["overall"] = pooled(list(found["per_game"].values()))
    found["failed"] = [{"task": task, "seed": seed, "error": "made up: the server was gone"} for seed in gone]
    found["complete"] = False
    return found


def results(agents: Sequence[dict[str, Any]] | None = None) -> dict[str, Any]:
    """A whole bench: a program, a random agent, an LLM, and one with failed episodes; Boxoban on generated levels."""
    if agents is None:
        nobody: dict[str, Any] = {"language_model": False, "scaffolds": {}}
        quiet = {name: None for name in ("prompt_tokens_per_step", "completion_tokens_per_step")}
        agents = [
            agent("random", 0.02, agent="random", model="none", behaviour={"stuck_share": 0.5, **quiet}, **nobody),
            agent("scripted", 0.3, model="scripted", **nobody),
            broken(agent("broken", 0.6), "NetHackChallenge-v0", 2),
            agent("memory", 0.2, specialist="made-up-lora"),
        ]
    for one in agents:
        if one["model"] in ("none", "scripted"):
            one["usage"]["cost"] = None
    return {
        "format": 1, "bench": "made-up", "suite": "balrog", "complete": all(a["complete"] for a in agents),
        "settings": {
            "tasks": [
                {
                    "task": task, "seeds": list(seeds), "steps": steps,
                    "facts": {"levels": "generated"} if "Boxoban" in task else {},
                }
                for task, (steps, seeds) in TASKS.items()
            ],
            "suite_steps": True, "suite_seeds": True,
        },
        "agents": list(agents), "versions": {"automem": "0.1.0", "nle": "1.3.0"},
        "times": {"created": "2026-11-30T09:00:00+00:00", "seconds": {a["label"]: 12.0 for a in agents}},
    }  # fmt: skip


def as_balrog(found: dict[str, Any]) -> dict[str, Any]:
    """The results, said to be of all of suite balrog's tasks on official levels."""
    found["settings"]["tasks"] = [
        {"task": entry.task, "seeds": list(entry.seeds), "steps": entry.steps, "facts": {}}
        for entry in suites.load("balrog").entries
    ]
    return found
