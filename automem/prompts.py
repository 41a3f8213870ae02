"""The templates of a scaffold, compiled, checked and rendered.

Five templates make the prompts of an episode:

- ``system.j2``: role, rules, files and operations; rendered once, the same at every step;
- ``log.j2`` and ``plan.j2``: the first user message of a phase;
- ``results.j2``: the user message after a reply, with what its operations answered;
- ``handoff.j2``: what the base model is told after a specialist has consulted memory.

Templates may come from a model, so they run in Jinja2's immutable sandbox, and a name that
does not exist is an error when the scaffold is loaded, not at step 300.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import DictLoader, StrictUndefined, Template, TemplateError, TemplateSyntaxError, UndefinedError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

LARGEST_PROMPT = 400_000
"""Characters of one rendered message; more than any context window that plays these games."""

ALWAYS = frozenset({"game", "task", "instructions", "actions", "files", "operations", "limits"})
"""Names every template may use: they do not change during an episode."""

BY_STEP = ALWAYS | {"step", "observation", "memory", "pinned", "phase"}

NAMES: Mapping[str, frozenset[str]] = {
    "system.j2": ALWAYS,
    "log.j2": BY_STEP,
    "plan.j2": BY_STEP,
    "results.j2": BY_STEP | {"results", "errors", "turns_left"},
    "handoff.j2": BY_STEP,
}
"""Template -> the names that it may use."""


class TemplateProblem(ValueError):
    """A template that cannot be used: ``file:line: what is wrong``."""


@dataclass(frozen=True, slots=True)
class StepView:
    """What templates and hooks see of a step: the text the model sees, and nothing else.

    Attributes:
        number: the step, from 0.
        observation: the game's text.
        action: the last action that was played, None at step 0.
        raw_action: the last action as the model wrote it.
        history: recent actions, oldest first.
    """

    number: int
    observation: str
    action: str | None
    raw_action: str | None
    history: tuple[str, ...] = ()


_SAMPLE: Mapping[str, Any] = {
    "game": "game",
    "task": "task",
    "instructions": "instructions",
    "actions": "- wait: nothing",
    "files": "- notes.txt [note]",
    "operations": "<|READ|>file<|END|>",
    "step": StepView(1, "observation", "wait", "wait", ("wait",)),
    "observation": "observation",
    "memory": "(no files yet)",
    "pinned": "",
    "phase": "LOG",
    "results": "",
    "errors": ["error"],
    "turns_left": 3,
}


class Prompts:
    """Compiled templates. `Prompts(…)` raises `TemplateProblem` when one is not right."""

    def __init__(self, sources: Mapping[str, str], limits: Mapping[str, Any]) -> None:
        """
        Args:
            sources: file name -> template text; the five of `NAMES` must be there.
            limits: the scaffold's limits, as templates will see them.
        """
        for name in NAMES:
            if name not in sources:
                raise TemplateProblem(f"{name}: missing; every scaffold has {', '.join(NAMES)}")
        self._environment = ImmutableSandboxedEnvironment(
            loader=DictLoader(dict(sources)),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=False,
            autoescape=False,
        )
        for name in NAMES:
            self._check_names(name, sources[name])
        self._templates: dict[str, Template] = {name: self._environment.get_template(name) for name in NAMES}
        for name in NAMES:
            self.render(name, {key: limits if key == "limits" else _SAMPLE[key] for key in NAMES[name]})

    def _check_names(self, name: str, source: str) -> None:
        try:
            tree = self._environment.parse(source)
        except TemplateSyntaxError as error:
            raise TemplateProblem(f"{name}:{error.lineno}: {error.message}") from error
        unknown = sorted(meta.find_undeclared_variables(tree) - NAMES[name])
        if unknown:
            line = next((i for i, text in enumerate(source.splitlines(), 1) if unknown[0] in text), 1)
            raise TemplateProblem(
                f"{name}:{line}: no variable {unknown[0]!r} here; it may use {', '.join(sorted(NAMES[name]))}"
            )

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """Render one template. Raises `TemplateProblem` naming the template and the reason."""
        try:
            text = self._templates[name].render(values)
        except UndefinedError as error:
            raise TemplateProblem(f"{name}: {error.message}") from error
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise TemplateProblem(f"{name}: {type(error).__name__}: {error}") from error
        if len(text) > LARGEST_PROMPT:
            raise TemplateProblem(f"{name}: renders to {len(text)} characters; at most {LARGEST_PROMPT} make sense")
        return text
