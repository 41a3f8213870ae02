"""What the messages of a scaffold say, once rendered: the mechanics that make a step possible.

The templates are rendered with marks in place of what they show, at several steps and with and
without texts of hooks. What is there every time, however the step is, can be relied on; what a
hook may say does not count, for it may say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from automem import ops
from automem.check.folder import PROMPTS
from automem.check.report import Finding, error, warning
from automem.check.templates import Templates
from automem.hooks import Step
from automem.prompts import NAMES, Prompts, TemplateProblem
from automem.schema import Schema

TAG = re.compile(r"<\|([A-Z][A-Z0-9_]{0,39})\|>")
"""An operation as a message tells of it."""

_STEPS = (1, 2, 50, 999)
_PHASES: Mapping[str, tuple[str, ...]] = {
    "system.j2": ("",),
    "log.j2": ("LOG",),
    "plan.j2": ("PLAN",),
    "results.j2": ("LOG", "PLAN"),
    "handoff.j2": ("PLAN",),
}
_ENDS: Mapping[str, str] = {"LOG": "<|DONE|>", "PLAN": "<|ACTION|>"}


@dataclass(frozen=True)
class Rendered:
    """A template, rendered: in which phase, and the text."""

    name: str
    phase: str
    text: str


def mark(name: str) -> str:
    """What stands in a rendered message where a template shows `name`."""
    return f"[here stands {name}]"


def findings(templates: Templates, schema: Schema, known: bool = True) -> Iterator[Finding]:
    """What the messages lack, and what they ask for that cannot be done.

    Args:
        templates: the scaffold's templates.
        schema: its ``scaffold.toml``.
        known: whether the schema's operations are the scaffold's own, with no mistakes left out.
    """
    rendered = []
    for name in templates.usable:
        try:
            rendered += list(_renderings(templates.usable[name], name, templates, schema))
        except TemplateProblem as problem:
            do = "make it render at every step, with and without errors, pinned files and texts of hooks"
            yield error(f"{PROMPTS}{name}", None, "template", str(problem), do)
    yield from _ends(rendered)
    yield from _shows(rendered, templates, schema)
    if known:
        yield from _reference(rendered, templates, schema)
    yield from _tags(rendered, templates, schema, known)


def _renderings(prompts: Prompts, name: str, templates: Templates, schema: Schema) -> Iterator[Rendered]:
    for phase in _PHASES[name]:
        for values in _values(name, phase, templates.shows, schema):
            allowed = {key: value for key, value in values.items() if key in NAMES[name]}
            yield Rendered(name, phase, prompts.render(name, allowed))


def _values(name: str, phase: str, shows: Sequence[str], schema: Schema) -> Iterator[dict[str, Any]]:
    fixed: dict[str, Any] = {key: mark(key) for key in ("task", "instructions", "actions", "files", "operations")}
    fixed |= {"game": schema.scaffold.game, "limits": schema.limits.model_dump(), "phase": phase, "specialist": False}
    if name == "system.j2":
        yield fixed
        return
    shown = {key: mark(key) for key in ("observation", "memory", "results")}
    steps = _STEPS if phase == "LOG" else (0, *_STEPS)
    for number in steps:
        full = number % 2 == 1
        action = "wait" if number else None
        yield {
            **fixed,
            **shown,
            "step": Step(number, mark("observation"), action, action, ("wait",) * min(number, 16)),
            "pinned": mark("pinned") if full else "",
            "hooks": {text: mark(f"hooks.{text}") if full else "" for text in shows},
            "errors": (mark("errors"),) if full else (),
            "turns_left": 1 if full else 3,
        }


def _ends(rendered: Sequence[Rendered]) -> Iterator[Finding]:
    """Each phase's messages must say how it is finished."""
    for one in rendered:
        end = _ENDS.get(one.phase)
        if end is None or end in one.text:
            continue
        usage = ops.OPERATIONS[end.strip("<|>")].usage
        if one.name == "results.j2":
            message = f"in {one.phase} it does not say how the phase is finished: {end} is not there"
            yield warning(f"{PROMPTS}{one.name}", None, "no-terminator", message, f"tell the model to write {usage}")
        else:
            message = f"it does not say at every step how {one.phase} is finished: {end} is not there"
            yield error(f"{PROMPTS}{one.name}", None, "no-terminator", message, f"tell the model to write {usage}")


def _shows(rendered: Sequence[Rendered], templates: Templates, schema: Schema) -> Iterator[Finding]:
    """What the model must see to know where it is, how to write, and what came of it."""
    for name in ("log.j2", "plan.j2"):
        if name in templates.usable and not _always(rendered, name, "observation"):
            message = "it does not show the observation at every step"
            yield error(f"{PROMPTS}{name}", None, "not-shown", message, "show {{ observation }}")
    if "results.j2" in templates.usable:
        if not _always(rendered, "results.j2", "results"):
            message = "it does not show results: what the model reads from memory would never reach it"
            yield error(f"{PROMPTS}results.j2", None, "not-shown", message, "show {{ results }}")
        if not _ever(rendered, "results.j2", "errors"):
            message = "it does not show errors: the model would not know why something was not run"
            do = "add {% for error in errors %}! {{ error }}{% endfor %}"
            yield warning(f"{PROMPTS}results.j2", None, "not-shown", message, do)
    if "system.j2" not in templates.usable:
        return
    for block, why in (
        ("operations", "the model could not know how to write an operation"),
        ("actions", "the model could not know which actions there are"),
        ("instructions", "the model could not know what the game is about"),
    ):
        phases = ("log.j2", "plan.j2") if block == "operations" else ("plan.j2",)
        if not _always(rendered, "system.j2", block) and not all(_always(rendered, name, block) for name in phases):
            message = f"it does not show {block}: {why}"
            yield error(f"{PROMPTS}system.j2", None, "not-shown", message, f"show {{{{ {block} }}}}")
    anywhere = ("system.j2", "log.j2", "plan.j2")
    if not all(name in templates.usable for name in anywhere):
        return
    if schema.files and not any(_ever(rendered, name, "files") for name in anywhere):
        message = "no template shows files: the model would not know which are planned and what belongs in them"
        yield warning(f"{PROMPTS}system.j2", None, "not-shown", message, "show {{ files }}")
    read_anyway = schema.files and all(file.pin for file in schema.files)
    if not read_anyway and not any(_ever(rendered, name, "memory") for name in anywhere):
        message = "neither log.j2 nor plan.j2 shows memory: the model would not know which files there are now"
        yield warning(f"{PROMPTS}plan.j2", None, "not-shown", message, "show {{ memory }}")


def shows_pinned(templates: Templates, schema: Schema) -> bool:
    """Whether a message shows pinned files; taken for granted where one cannot be rendered."""
    names = ("log.j2", "plan.j2")
    try:
        rendered = [one for name in names for one in _renderings(templates.usable[name], name, templates, schema)]
    except (KeyError, TemplateProblem):
        return True
    return any(mark("pinned") in one.text for one in rendered)


def _always(rendered: Sequence[Rendered], name: str, block: str) -> bool:
    return all(mark(block) in one.text for one in rendered if one.name == name)


def _ever(rendered: Sequence[Rendered], name: str, block: str) -> bool:
    return any(mark(block) in one.text for one in rendered if one.name == name)


def _reference(rendered: Sequence[Rendered], templates: Templates, schema: Schema) -> Iterator[Finding]:
    """Where the system message shows operations, it shows each of them, as it is written."""
    if "system.j2" not in templates.usable or not _always(rendered, "system.j2", "operations"):
        return
    own = {operation.name: operation.reference for operation in schema.ops.own}
    reference = ops.reference(schema.ops.enabled, own)
    values = next(_values("system.j2", "", templates.shows, schema)) | {"operations": reference}
    try:
        text = templates.usable["system.j2"].render("system.j2", values)
    except TemplateProblem as problem:
        yield error(f"{PROMPTS}system.j2", None, "template", str(problem), "make it render with every operation")
        return
    for line in reference.splitlines():
        if line not in text:
            message = f"it changes or leaves out an operation: {line}"
            yield error(f"{PROMPTS}system.j2", None, "operation-hidden", message, "show {{ operations }} as it is")


def _tags(rendered: Sequence[Rendered], templates: Templates, schema: Schema, known: bool) -> Iterator[Finding]:
    """Operations that a message tells the model to write, though they would not be run."""
    told = set()
    for one in rendered:
        for name in dict.fromkeys(TAG.findall(one.text)):
            wrong = _cannot(name, one.phase, schema, known)
            if wrong is None or (one.name, one.phase, name) in told:
                continue
            told.add((one.name, one.phase, name))
            code, message, do = wrong
            for file, line in _places(one, f"<|{name}|>", templates, schema):
                yield error(f"{PROMPTS}{file}", line, code, message, do)


def _cannot(name: str, phase: str, schema: Schema, known: bool) -> tuple[str, str, str] | None:
    """Why an operation cannot be used in a phase: code, message, what to do; None when it can."""
    if name == "END":
        return None
    own = {operation.name: operation.phase for operation in schema.ops.own}
    built_in = ops.OPERATIONS.get(name)
    if (
        known
        and name not in own
        and (built_in is None or (built_in.effect != "end" and name not in schema.ops.enabled))
    ):
        message = f"it tells of <|{name}|>, which is no operation of this scaffold"
        return "operation-not-enabled", message, f"enable {name} in scaffold.toml, or leave it out here"
    when = own.get(name) or (built_in.phase if built_in else "both")
    if not phase or when in ("both", phase.lower()):
        return None
    if phase == "PLAN" and built_in is not None and built_in.effect == "write":
        message = f"it tells of <|{name}|> in PLAN, where nothing is written: what an action did is not known yet"
        return "write-in-plan", message, f"ask for {name} in log.j2, or speak of it without its bars"
    message = f"it tells of <|{name}|> in {phase}, which can be used in {when.upper()} only"
    do = f"finish {phase} with {_ENDS[phase]}, or speak of {name} without its bars"
    return f"{name.lower()}-in-{phase.lower()}" if built_in else "own-in-other-phase", message, do


def _places(one: Rendered, tag: str, templates: Templates, schema: Schema) -> list[tuple[str, int | None]]:
    """The lines of templates that put a tag into a message: those where another tag would show up instead."""
    parts = templates.parts(one.name)
    lines = [(file, i) for file in parts for i, line in enumerate(templates.texts[file].split("\n"), 1) if tag in line]
    if len(lines) > 1:
        lines = [place for place in lines[:_MOST_PROBED] if _is_from(one, tag, *place, templates, schema)]
    return [*lines] or [(one.name, None)]


_MOST_PROBED = 20
_PROBE = "<|0|>"


def _is_from(one: Rendered, tag: str, file: str, line: int, templates: Templates, schema: Schema) -> bool:
    lines = templates.texts[file].split("\n")
    lines[line - 1] = lines[line - 1].replace(tag, _PROBE)
    try:
        prompts = templates.compiled(one.name, {file: "\n".join(lines)})
        return any(_PROBE in r.text for r in _renderings(prompts, one.name, templates, schema) if r.phase == one.phase)
    except TemplateProblem:
        return False
