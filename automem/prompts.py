"""The prompts of an episode: a scaffold's templates, tried out when they are loaded.

Five templates make them:

- ``system.j2``: role, rules, files and operations; rendered once, the same at every step;
- ``log.j2`` and ``plan.j2``: the first user message of a phase;
- ``results.j2``: the user message after a reply, with what its operations answered;
- ``handoff.j2``: what the base model is told after a specialist has consulted memory.

Templates may come from a model. What they may do is in `automem.templates`; here is what they are
given, a trial with samples of it, so that a mistake is told when the scaffold is loaded and not at
step 300, and what is said in place of a template that fails all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import product
from typing import Any

from automem.blocks import memory_listing
from automem.hooks import Step
from automem.storable import storable
from automem.templates import LARGEST_PROMPT, PromptTooLong, TemplateProblem, Templates
from automem.templates.meter import WORK

__all__ = ["LARGEST_PROMPT", "NAMES", "PromptTooLong", "Prompts", "TemplateProblem"]

ALWAYS = frozenset({"game", "task", "instructions", "actions", "files", "operations", "limits", "specialist"})
"""Names every template may use: they do not change during an episode."""

BY_STEP = ALWAYS | {"step", "observation", "memory", "pinned", "phase", "hooks"}

NAMES: Mapping[str, frozenset[str]] = {
    "system.j2": ALWAYS,
    "log.j2": BY_STEP,
    "plan.j2": BY_STEP,
    "results.j2": BY_STEP | {"results", "errors", "turns_left"},
    "handoff.j2": BY_STEP,
}
"""Template -> the names that it may use."""

EVERYWHERE = frozenset[str]().union(*NAMES.values())

TRIAL_WORK = WORK // 10
"""What a template may do with a sample: samples are small."""

LISTED = 10_000
"""Characters of the listing of memory files in a plain message."""


class Prompts:
    """The templates of a scaffold. `Prompts(…)` raises `TemplateProblem` when one is not right."""

    def __init__(self, sources: Mapping[str, str], limits: Mapping[str, Any], shows: Sequence[str] = ()) -> None:
        """
        Args:
            sources: file name -> template text; the five of `NAMES` must be there.
            limits: the scaffold's limits, as templates will see them.
            shows: names of the texts that hooks give, shown as ``{{ hooks.NAME }}``.
        """
        for name in NAMES:
            if name not in sources:
                raise TemplateProblem(f"missing; every scaffold has {', '.join(NAMES)}", name)
        parts: dict[str, Collection[str]] = dict.fromkeys(EVERYWHERE, ())
        parts |= {"step": [field.name for field in fields(Step)], "limits": list(limits), "hooks": tuple(shows)}
        self._templates = Templates(sources, NAMES, parts)
        for name in NAMES:
            for values in _samples(name, limits, shows):
                self._templates.render(name, values, TRIAL_WORK)

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """Render one template.

        Raises `PromptTooLong` as soon as the text passes `LARGEST_PROMPT` characters, and
        `TemplateProblem`, naming the template, the line and the reason, for anything else that goes wrong in it.
        """
        return self._templates.render(name, values)


def plain(name: str, values: Mapping[str, Any]) -> str:
    """What is said in place of a template that failed: all that a model needs to go on with the phase.

    Args:
        name: ``log.j2``, ``plan.j2``, ``results.j2`` or ``handoff.j2``.
        values: what the template would have been given.

    The text can be stored as UTF-8. It may be longer than `LARGEST_PROMPT`, as what it shows may.
    """
    if name == "results.j2":
        left = values["turns_left"]
        lines = [
            *filter(None, [values["results"]]),
            *(f"! {error}" for error in values["errors"]),
            f"{left} {'reply' if left == 1 else 'replies'} left in {values['phase']}. {_FINISH[values['phase']]}",
        ]
        text = "\n".join(lines)
    elif name == "handoff.j2":
        text = f"# ACTION\nMemory has been consulted. {_FINISH['PLAN']}"
    else:
        head = f"# {values['phase']}\n{_TODO[values['phase']]} {_FINISH[values['phase']]}"
        text = f"{values['observation']}\n\n{head}\n\nFiles now:\n{_listing(values['memory'])}"
    return storable(text)


_TODO = {
    "LOG": "Write down in memory what the last action led to.",
    "PLAN": "Read what you need from memory, then choose the next action.",
}

_FINISH = {
    "LOG": "Finish with <|DONE|><|END|>.",
    "PLAN": "Finish with <|ACTION|>name of the action<|END|>.",
}


def _listing(memory: str) -> str:
    if len(memory) <= LISTED:
        return memory
    return memory[:LISTED].rpartition("\n")[0] + "\n(and more files)"


def _samples(name: str, limits: Mapping[str, Any], shows: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """What a template may be given, in all the ways in which it differs: the first step and a later one,
    with and without an action, a specialist, errors, hooks' texts, files and replies left."""
    for specialist in (False, True):
        yield from _told(name, {**_FIXED, "limits": limits, "specialist": specialist}, shows)


_FIXED = {
    "game": "game",
    "task": "task",
    "instructions": "instructions",
    "actions": "- wait: nothing\n- go: somewhere",
    "files": "- notes.txt [note]",
    "operations": "<|READ|>file<|END|>  read a file",
}


def _told(name: str, fixed: Mapping[str, Any], shows: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    if name == "system.j2":
        yield fixed
        return
    for (phase, step), text in product(_moments(name), ("", "text")):
        first = step.number == 0
        by_step = {
            **fixed,
            "phase": phase,
            "step": step,
            "observation": f"=== STEP {step.number} ===\n{step.observation}\n=== END OF OBSERVATION ===",
            "memory": memory_listing([] if first else [("notes.txt", 1, 5)]),
            "pinned": "" if first else "--- contents of notes.txt ---\nnote\n--- end of notes.txt ---",
            "hooks": dict.fromkeys(shows, text),
        }
        if name != "results.j2":
            yield by_step
            continue
        for errors, left in product(((), ("error", "another")), (0, 1, 3)):
            results = "" if errors else "--- 1. READ notes.txt ---\nnote\n--- end of results ---"
            yield {**by_step, "results": results, "errors": errors, "turns_left": left}


def _moments(name: str) -> Iterator[tuple[str, Step]]:
    """Phases and steps at which a template is used. LOG begins with step 1."""
    later = (
        Step(1, "observation", "wait", "wait", ("wait",)),
        Step(2, "observation", "wait", None, ("wait", "wait")),  # the model had committed none
    )
    if name != "log.j2":
        yield "PLAN", Step(0, "observation", None, None, ())
        for step in later:
            yield "PLAN", step
    if name in ("log.j2", "results.j2"):
        for step in later:
            yield "LOG", step
