"""Prompts with a template under test, and what a template is given."""

from __future__ import annotations

from typing import Any

from automem import blocks
from automem.hooks import Step
from automem.prompts import NAMES, Prompts

LIMITS = {"log_turns": 5, "result_chars": 2000, "max_files": None}
SHOWS = ("alert", "map")


def prompts(template: str, name: str = "plan.j2", **files: str) -> Prompts:
    """Prompts with one template under test, and other files by name (``part`` for part.j2)."""
    others = {f"{file}.j2": text for file, text in files.items()}
    return Prompts({**dict.fromkeys(NAMES, "-"), name: template, **others}, LIMITS, SHOWS)


def values(name: str = "plan.j2", **changed: Any) -> dict[str, Any]:
    """What a template is given in the third step."""
    given = {
        **dict.fromkeys(("game", "task", "instructions", "actions", "files", "operations"), "fixed"),
        "limits": LIMITS,
        "step": Step(3, "You see grass", "Noop", None, ("Move West", "Noop")),
        "observation": blocks.observation(3, "Noop", "You see grass"),
        "memory": "- map.txt: 2 lines, 20 bytes",
        "pinned": "",
        "phase": "PLAN",
        "hooks": {"alert": "hungry", "map": "..#\n.@."},
        "results": "",
        "errors": (),
        "turns_left": 2,
    }
    return {key: value for key, value in (given | changed).items() if key in NAMES[name]}


def rendered(template: str, name: str = "plan.j2", **changed: Any) -> str:
    return prompts(template, name).render(name, values(name, **changed))
