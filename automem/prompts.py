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

from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import islice
from typing import Any

from jinja2 import DictLoader, StrictUndefined, Template, TemplateSyntaxError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from automem.errors import UserError
from automem.hooks import Step

LARGEST_PROMPT = 400_000
"""Characters of one rendered message; more than any context window that plays these games."""

ALWAYS = frozenset({"game", "task", "instructions", "actions", "files", "operations", "limits"})
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
"""Names that a template which others include may use: what it gets depends on where it is included."""


class TemplateProblem(UserError):
    """A template that cannot be used: ``file:line: what is wrong``."""


class PromptTooLong(TemplateProblem):
    """A message that renders to more than `LARGEST_PROMPT` characters."""


_SAMPLE: Mapping[str, Any] = {
    "game": "game",
    "task": "task",
    "instructions": "instructions",
    "actions": "- wait: nothing",
    "files": "- notes.txt [note]",
    "operations": "<|READ|>file<|END|>",
    "step": Step(1, "observation", "wait", "wait", ("wait",)),
    "observation": "observation",
    "memory": "(no files yet)",
    "pinned": "",
    "phase": "LOG",
    "limits": {},
    "hooks": {},
    "results": "",
    "errors": ["error"],
    "turns_left": 3,
}


class Prompts:
    """Compiled templates. `Prompts(…)` raises `TemplateProblem` when one is not right."""

    def __init__(self, sources: Mapping[str, str], limits: Mapping[str, Any], shows: Sequence[str] = ()) -> None:
        """
        Args:
            sources: file name -> template text; the five of `NAMES` must be there.
            limits: the scaffold's limits, as templates will see them.
            shows: names of the texts that hooks give, shown as ``{{ hooks.NAME }}``.
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
        # What differs from one rendering to the next would make an episode unrepeatable.
        self._environment.filters.pop("random")
        self._environment.globals.pop("lipsum")
        for name, source in sources.items():
            self._check_names(name, source)
        self._templates: dict[str, Template] = {name: self._compiled(name) for name in NAMES}
        for name in NAMES:
            values = {key: _SAMPLE[key] for key in NAMES[name]} | {"limits": limits}
            for hooks in (dict.fromkeys(shows, ""), dict.fromkeys(shows, "text")):
                self.render(name, values | ({"hooks": hooks} if "hooks" in NAMES[name] else {}))

    def _check_names(self, name: str, source: str) -> None:
        """Refuse names that no prompt has, in every template, whether or not it is rendered by the trial."""
        allowed = NAMES.get(name, EVERYWHERE)
        try:
            tree = self._environment.parse(source)
            used = meta.find_undeclared_variables(tree)
        except TemplateSyntaxError as error:
            raise TemplateProblem(f"{name}:{error.lineno}: {error.message}") from error
        except RecursionError as error:
            raise TemplateProblem(f"{name}: nested too deeply; make it simpler") from error
        for unknown in sorted(used - allowed):
            line = next((i for i, text in enumerate(source.splitlines(), 1) if unknown in text), 1)
            raise TemplateProblem(
                f"{name}:{line}: no variable {unknown!r} here; it may use {', '.join(sorted(allowed))}"
            )
        known = {field.name for field in fields(Step)}
        for node in tree.find_all(nodes.Getattr):
            if isinstance(node.node, nodes.Name) and node.node.name == "step" and node.attr not in known:
                raise TemplateProblem(
                    f"{name}:{node.lineno}: step has no {node.attr!r}; it has {', '.join(sorted(known))}"
                )

    def _compiled(self, name: str) -> Template:
        try:
            return self._environment.get_template(name)
        except TemplateSyntaxError as error:
            raise TemplateProblem(f"{name}:{error.lineno}: {error.message}") from error
        except RecursionError as error:
            raise TemplateProblem(f"{name}: nested too deeply; make it simpler") from error

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """Render one template.

        Raises `PromptTooLong` as soon as the text passes `LARGEST_PROMPT` characters, and
        `TemplateProblem`, naming the template and the reason, for anything else that goes wrong in it.
        """
        template = self._templates[name]
        text = ""
        try:
            # `Template.render` without its bound-less join: this stops a template that never ends.
            parts = iter(template.root_render_func(template.new_context(dict(values))))
            while chunk := list(islice(parts, 256)):
                text += "".join(chunk)
                if len(text) > LARGEST_PROMPT:
                    raise PromptTooLong(f"{name}: renders to more than {LARGEST_PROMPT} characters")
            if not text.isascii():
                text.encode("utf-8")
        except TemplateProblem:
            raise
        except Exception as error:  # a template is a program that a model may have written: it can raise anything
            raise TemplateProblem(f"{name}: {type(error).__name__}: {error}") from error
        return text
