"""The templates as they are written: names, parts and files, each mistake at its line.

`automem.prompts` decides what a template may be, and stops at the first thing that is wrong; here
each template is read by itself, and every name in it. What templates say once they are rendered is
in `automem.check.messages`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

from jinja2 import Environment, TemplateSyntaxError, meta, nodes

from automem.check.folder import PROMPTS
from automem.check.report import Finding, error, warning
from automem.hooks import Step
from automem.prompts import EVERYWHERE, NAMES, Prompts, TemplateProblem
from automem.templates.language import CHARACTERS

PURPOSE: Mapping[str, str] = {
    "system.j2": "the system message: role, rules, actions, files and operations",
    "log.j2": "the first message of LOG; it shows the observation and asks for <|DONE|><|END|>",
    "plan.j2": "the first message of PLAN; it shows the observation and asks for <|ACTION|>name<|END|>",
    "results.j2": "the message after a reply; it shows results, errors and turns_left",
    "handoff.j2": "what the model that acts is told after a specialist; it asks for <|ACTION|>name<|END|>",
}

_STAND_INS: Mapping[str, str] = dict.fromkeys(NAMES, "-")


class Templates:
    """The templates of a scaffold, as far as they can be read.

    Attributes:
        texts: file name -> text, below ``prompts/``.
        findings: what is wrong with them as they are written.
        usable: those of the five that compile and render, each with `Prompts` to render it.
        shows: names of the texts that hooks give, as far as known.
        shown: names of hooks' texts that templates show; None where they may show any.
    """

    def __init__(
        self, texts: Mapping[str, str], limits: Mapping[str, object], shows: Sequence[str], known: bool = True
    ) -> None:
        """
        Args:
            texts: file name -> text, below ``prompts/``.
            limits: the scaffold's limits.
            shows: names of the texts that hooks give.
            known: whether `shows` is right; otherwise a template may show any text of hooks.
        """
        self.texts = texts
        self.limits = limits
        self.findings: list[Finding] = []
        self.usable: dict[str, Prompts] = {}
        self.shown: set[str] | None = set()
        self.shows = tuple(shows)
        self._known = known
        self._trees = {name: tree for name in texts if (tree := self._parsed(name)) is not None}
        for name in NAMES:
            if name not in texts:
                message = f"there is no {name}: {PURPOSE[name]}"
                self.findings.append(error(f"{PROMPTS}{name}", None, "template-missing", message, "write it"))
        for name, tree in self._trees.items():
            try:
                self.findings += list(self._names(name, tree))
            except (RecursionError, TemplateSyntaxError):
                pass  # too deep, or an unknown filter: said by line when it is compiled
        if not known:
            self.shows = tuple(self.shown or ())
        self._compile()
        self.findings += self._unused()

    def compiled(self, name: str, changed: Mapping[str, str] | None = None) -> Prompts:
        """A template with what it includes, among others that are certainly right: what is wrong is wrong with it.

        Args:
            name: its file.
            changed: texts that stand in place of the scaffold's own.

        Raises:
            TemplateProblem: it cannot be compiled or rendered.
        """
        texts = {**self.texts, **(changed or {})}
        return Prompts({**_STAND_INS, **{part: texts[part] for part in self.parts(name)}}, self.limits, self.shows)

    def parts(self, name: str) -> Sequence[str]:
        """A template and all that it includes, as far as that is there."""
        reached = [name]
        for part in reached:
            reached += [other for other in self._included(part) if other in self.texts and other not in reached]
        return reached

    def _included(self, name: str) -> Iterator[str]:
        tree = self._trees.get(name)
        for node in tree.find_all(nodes.Include) if tree is not None else ():
            if isinstance(node.template, nodes.Const) and isinstance(node.template.value, str):
                yield node.template.value

    def _parsed(self, name: str) -> nodes.Template | None:
        """Its syntax tree; None where there is none, which is said when it is compiled."""
        if len(self.texts[name]) > CHARACTERS:
            return None  # no template may be that long, and looking through it would take seconds
        environment = Environment(trim_blocks=True, lstrip_blocks=True, autoescape=False)  # nothing is rendered with it
        try:
            return environment.parse(self.texts[name])
        except (TemplateSyntaxError, RecursionError, ValueError, OverflowError):
            return None

    def _names(self, name: str, tree: nodes.Template) -> Iterator[Finding]:
        """Names and attributes that no prompt has, wherever they stand, rendered or not."""
        file = f"{PROMPTS}{name}"
        steps = {field.name for field in fields(Step)}
        read = set()
        for owner, attribute, line in _attributes(tree):
            read.add(id(owner))
            if owner.name == "step" and attribute not in steps:
                do = f"it has {', '.join(sorted(steps))}"
                yield error(file, line, "template-variable", f"step has no {attribute!r}", do)
            elif owner.name == "limits" and attribute not in self.limits:
                do = f"there are {', '.join(self.limits)}"
                yield error(file, line, "template-variable", f"there is no limit {attribute!r}", do)
            elif owner.name == "hooks":
                yield from self._hook_text(file, attribute, line)
        if any(node.name == "hooks" and id(node) not in read for node in tree.find_all(nodes.Name)):
            self.shown = None  # it stands by itself, so that any of its texts may be shown
        allowed = NAMES.get(name, EVERYWHERE)
        unknown = meta.find_undeclared_variables(tree) - allowed - {"loop"}
        for variable in tree.find_all(nodes.Name):
            if variable.name in unknown and variable.ctx == "load":
                message = f"there is no variable {variable.name!r} in {name}"
                do = f"it may use {', '.join(sorted(allowed))}"
                yield error(file, variable.lineno, "template-variable", message, do)

    def _hook_text(self, file: str, name: str, line: int) -> Iterator[Finding]:
        if self.shown is not None:
            self.shown.add(name)
        if self._known and name not in self.shows:
            listed = f", where {', '.join(self.shows)} stands" if self.shows else ""
            do = f"add it to shows under [hooks] in scaffold.toml{listed}, and return it from observe; or remove it"
            yield error(file, line, "template-hook-text", f"hooks give no text {name!r}", do)

    def _compile(self) -> None:
        """Compile and render each template, to hear what is wrong with it beyond its names."""
        told = {(finding.file, finding.line) for finding in self.findings}
        for name in sorted(self.texts, key=lambda name: name in NAMES):  # what is included first
            try:
                prompts = self.compiled(name)
            except TemplateProblem as problem:
                found = finding_of(problem, name)
                if (found.file, found.line) not in told:
                    self.findings.append(found)
                    told.add((found.file, found.line))
                continue
            if name in NAMES and not any(finding.file == f"{PROMPTS}{name}" for finding in self.findings):
                self.usable[name] = prompts

    def _unused(self) -> Iterator[Finding]:
        """Templates that are none of the five and that none of them includes."""
        reached = {part for name in NAMES if name in self.texts for part in self.parts(name)}
        for name in sorted(self.texts.keys() - reached):
            message = f"no prompt uses this template; the prompts are {', '.join(NAMES)}"
            yield warning(f"{PROMPTS}{name}", None, "template-unused", message, "include it, or remove it")


def finding_of(problem: TemplateProblem, name: str) -> Finding:
    """The finding that tells of a problem with a template, or with something that this one includes."""
    message, _, do = problem.told.partition("; ")
    return error(f"{PROMPTS}{problem.file or name}", problem.line, "template", message, do or "mend this line")


def _attributes(tree: nodes.Template) -> Iterator[tuple[nodes.Name, str, int]]:
    """``owner.attribute`` and ``owner["attribute"]``, with lines."""
    for node in tree.find_all(nodes.Getattr):
        if isinstance(node.node, nodes.Name):
            yield node.node, node.attr, node.lineno
    for item in tree.find_all(nodes.Getitem):
        if isinstance(item.node, nodes.Name) and isinstance(item.arg, nodes.Const) and isinstance(item.arg.value, str):
            yield item.node, item.arg.value, item.lineno
