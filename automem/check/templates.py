"""The templates as they are written: names, parts and files, each mistake at its line.

What templates say once they are rendered is in `automem.check.messages`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields

from jinja2 import Environment, TemplateSyntaxError, meta, nodes

from automem.check.folder import PROMPTS
from automem.check.report import Finding, error, warning
from automem.hooks import Step
from automem.prompts import EVERYWHERE, NAMES, Prompts, TemplateProblem

PURPOSE: Mapping[str, str] = {
    "system.j2": "the system message: role, rules, actions, files and operations",
    "log.j2": "the first message of LOG; it shows the observation and asks for <|DONE|><|END|>",
    "plan.j2": "the first message of PLAN; it shows the observation and asks for <|ACTION|>name<|END|>",
    "results.j2": "the message after a reply; it shows results, errors and turns_left",
    "handoff.j2": "what the model that acts is told after a specialist; it asks for <|ACTION|>name<|END|>",
}

_STAND_INS: Mapping[str, str] = dict.fromkeys(NAMES, "-")
_METHODS = frozenset({"items", "keys", "values", "get"})
"""Of a dictionary, which is what ``hooks`` and ``limits`` are."""

_PROBLEM = re.compile(r"(?P<file>[^:\n]+):(?:(?P<line>\d+):)? (?P<message>.*)", re.DOTALL)


class Templates:
    """The templates of a scaffold, as far as they can be read.

    Attributes:
        texts: file name -> text, below ``prompts/``.
        findings: what is wrong with them as they are written.
        usable: those of the five that compile and render, each with `Prompts` to render it.
        shown: names of hooks' texts that templates show; None where they may show any.
    """

    def __init__(
        self, texts: Mapping[str, str], limits: Mapping[str, object], shows: Sequence[str], exact: bool = True
    ) -> None:
        """
        Args:
            texts: file name -> text, below ``prompts/``.
            limits: the scaffold's limits.
            shows: names of the texts that hooks give.
            exact: whether `limits` and `shows` are the scaffold's own; otherwise nothing is said about them.
        """
        self.texts = texts
        self.limits = limits
        self.shows = shows
        self.findings: list[Finding] = []
        self.usable: dict[str, Prompts] = {}
        self.shown: set[str] | None = set()
        self._exact = exact
        self._trees = {name: tree for name in texts if (tree := self._parsed(name)) is not None}
        for name in NAMES:
            if name not in texts:
                message = f"there is no {name}: {PURPOSE[name]}"
                self.findings.append(error(f"{PROMPTS}{name}", None, "template-missing", message, "write it"))
        for name, tree in self._trees.items():
            self.findings += self._names(name, tree)
        self.findings += self._unused()
        self._try()

    def compiled(self, name: str, changed: Mapping[str, str] | None = None) -> Prompts:
        """One of the five among others that are certainly right, so that what is wrong is wrong with it.

        Args:
            changed: texts that stand in place of the scaffold's own.

        Raises:
            TemplateProblem: it cannot be compiled or rendered.
        """
        texts = {**self.texts, **(changed or {})}
        more = {other: text for other, text in texts.items() if other not in NAMES and other in self._trees}
        return Prompts({**_STAND_INS, **more, name: texts[name]}, self.limits, self.shows)

    def _parsed(self, name: str) -> nodes.Template | None:
        environment = Environment(trim_blocks=True, lstrip_blocks=True, autoescape=False)  # nothing is rendered with it
        try:
            return environment.parse(self.texts[name])
        except TemplateSyntaxError as problem:
            do = "mend the template at this line"
            found = error(f"{PROMPTS}{name}", problem.lineno, "template-syntax", problem.message or "not Jinja2", do)
        except RecursionError:
            found = error(f"{PROMPTS}{name}", None, "template-syntax", "nested too deeply", "make it simpler")
        self.findings.append(found)
        return None

    def _names(self, name: str, tree: nodes.Template) -> Iterator[Finding]:
        """Names and attributes that no prompt has, wherever they stand, rendered or not."""
        file = f"{PROMPTS}{name}"
        allowed = NAMES.get(name, EVERYWHERE)
        try:
            unknown = meta.find_undeclared_variables(tree) - allowed
        except TemplateSyntaxError as problem:  # an unknown filter or test, found where code is made
            yield error(file, problem.lineno, "template-syntax", problem.message or "not Jinja2", "use another filter")
            unknown = set()
        except RecursionError:
            yield error(file, None, "template-syntax", "nested too deeply", "make it simpler")
            return
        for variable in tree.find_all(nodes.Name):
            if variable.name in unknown and variable.ctx == "load":
                message = f"there is no variable {variable.name!r} in {name}"
                do = f"it may use {', '.join(sorted(allowed))}"
                yield error(file, variable.lineno, "template-variable", message, do)
        steps = {field.name for field in fields(Step)}
        read = set()
        for owner, attribute, line in _attributes(tree):
            read.add(id(owner))
            if owner.name == "step" and attribute not in steps:
                do = f"it has {', '.join(sorted(steps))}"
                yield error(file, line, "template-variable", f"step has no {attribute!r}", do)
            elif owner.name == "limits" and self._exact and attribute not in self.limits:
                do = f"there are {', '.join(self.limits)}"
                yield error(file, line, "template-variable", f"there is no limit {attribute!r}", do)
            elif owner.name == "hooks":
                yield from self._hook_text(file, attribute, line)
        if any(node.name == "hooks" and id(node) not in read for node in tree.find_all(nodes.Name)):
            self.shown = None  # it stands by itself, so that any of its texts may be shown

    def _hook_text(self, file: str, name: str, line: int) -> Iterator[Finding]:
        if self.shown is not None:
            self.shown.add(name)
        if self._exact and name not in self.shows:
            message = f"hooks give no text {name!r}"
            listed = ", ".join(self.shows) or "nothing yet"
            do = f"add it to shows under [hooks] in scaffold.toml, where {listed} stands, and return it from observe"
            yield error(file, line, "template-hook-text", message, do)

    def _unused(self) -> Iterator[Finding]:
        """Templates that are none of the five and that none of them includes; names that are not there."""
        reached = set(NAMES)
        waiting = [name for name in NAMES if name in self._trees]
        while waiting:
            tree = self._trees[(name := waiting.pop())]
            for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
                for other in _referenced(node):
                    if other is None:
                        reached |= self.texts.keys()
                    elif other not in self.texts:
                        do = f"write {PROMPTS}{other}, or remove this"
                        message = f"there is no template {other!r}"
                        yield error(f"{PROMPTS}{name}", node.lineno, "template-missing", message, do)
                    elif other not in reached and other in self._trees:
                        waiting.append(other)
                    reached.add(other or name)
        for name in sorted(self.texts.keys() - reached):
            message = f"no prompt uses this template; the prompts are {', '.join(NAMES)}"
            yield warning(f"{PROMPTS}{name}", None, "template-unused", message, "include it, or remove it")

    def _try(self) -> None:
        """Compile and render each template, to hear what is wrong with it beyond its names."""
        wrong = {finding.file for finding in self.findings if finding.severity == "error"}
        for name in NAMES:
            if name not in self.texts:
                continue
            try:
                prompts = self.compiled(name)
            except TemplateProblem as problem:
                found = _found(str(problem), name)
                if found.file not in wrong:
                    self.findings.append(found)
                continue
            if f"{PROMPTS}{name}" not in wrong:
                self.usable[name] = prompts


def _found(problem: str, name: str) -> Finding:
    """A finding from the message of a `TemplateProblem`: ``file:line: what is wrong``."""
    parts = _PROBLEM.fullmatch(problem)
    file, line, message = (parts["file"], parts["line"], parts["message"]) if parts else (name, None, problem)
    do = "mend the template at this line" if line else "mend the template"
    return error(f"{PROMPTS}{file}", int(line) if line else None, "template", message, do)


def _attributes(tree: nodes.Template) -> Iterator[tuple[nodes.Name, str, int]]:
    """``owner.attribute`` and ``owner["attribute"]``, with lines."""
    for node in tree.find_all(nodes.Getattr):
        if isinstance(node.node, nodes.Name) and node.attr not in _METHODS:
            yield node.node, node.attr, node.lineno
    for item in tree.find_all(nodes.Getitem):
        if isinstance(item.node, nodes.Name) and isinstance(item.arg, nodes.Const) and isinstance(item.arg.value, str):
            yield item.node, item.arg.value, item.lineno


def _referenced(node: nodes.Node) -> Collection[str | None]:
    """Names of templates that a node brings in; None for one that is known only when it is rendered."""
    template = getattr(node, "template", None)
    if isinstance(template, nodes.Const):
        named = template.value if isinstance(template.value, tuple | list) else [template.value]
    elif isinstance(template, nodes.Tuple | nodes.List):
        named = [item.value if isinstance(item, nodes.Const) else None for item in template.items]
    else:
        named = [None]
    return [name if isinstance(name, str) else None for name in named]
