"""The part of Jinja2 that templates may use, read without running anything.

What stands in a template is either in `ALLOWED` or refused by file and line. What is allowed and
could still be large at run time (loops, comparisons, slices) is rewritten (`automem.templates.rewriting`)
into the filters of `automem.templates.operators`, which pay for what they do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn, cast

from jinja2 import Environment, TemplateSyntaxError, nodes

from automem.errors import UserError
from automem.templates.filters import FILTERS, TESTS, parameters
from automem.templates.meter import LARGEST_NUMBER

TEMPLATES = 20
"""Templates of one scaffold."""

CHARACTERS = 32_000
"""Characters of one template."""

NODES = 2_000
"""Nodes of one template's syntax tree; v0 has about 30."""

ALL_NODES = 6_000
"""Nodes of all templates of a scaffold."""

EXPANDED = 5_000
"""Nodes of a template and all that it includes, counted as often as it is included."""

INCLUDE = 50
"""What an include counts as, besides the nodes of the template that it includes."""

DEPTH = 30
"""How deep a syntax tree may be."""

BLOCKS = 8
"""How many of ``if``, ``for`` and ``with`` may stand in each other."""

VARIABLES = 50
"""Different names that one template may set."""

LOOP = ("index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem", "nextitem")
"""What ``loop`` has inside a ``for``."""

_ARITHMETIC = (nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod)

ALLOWED = frozenset(
    {
        *(
            nodes.Template,
            nodes.Output,
            nodes.TemplateData,
            nodes.If,
            nodes.For,
            nodes.With,
            nodes.Assign,
            nodes.Include,
        ),
        *(nodes.Const, nodes.Tuple, nodes.List, nodes.Dict, nodes.Pair, nodes.Name, nodes.Getattr, nodes.Getitem),
        *(nodes.Slice, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.Pos),
        *(nodes.CondExpr, nodes.Filter, nodes.Test, nodes.Keyword, *_ARITHMETIC),
    }
)
"""Nodes that a template may consist of."""

_COMPUTE = "compute the text in hooks.py and show it with {{ hooks.NAME }}"

_INSTEAD: Mapping[type[nodes.Node], tuple[str, str]] = {
    nodes.Call: ("nothing can be called", f"use a filter such as | length or | join(', '), or {_COMPUTE}"),
    nodes.Macro: ("no macros", "write the text where it is needed, or put it into a file and {% include %} it"),
    nodes.CallBlock: ("no call blocks", "put the text into a file and {% include %} it"),
    nodes.FilterBlock: ("no filter blocks", "use the filter on a value: {{ memory | indent }}"),
    nodes.AssignBlock: (
        "no {% set %} blocks",
        "use {% set name = value %}, or put the text into a file",
    ),
    nodes.Block: ("no blocks", "put the text into a file and {% include %} it"),
    nodes.Extends: ("no extends", "put what is common into a file and {% include %} it"),
    nodes.Import: ("no imports", "put what is common into a file and {% include %} it"),
    nodes.FromImport: ("no imports", "put what is common into a file and {% include %} it"),
    nodes.Concat: ("no ~", "write texts one after the other, or ['step', step.number] | join(' ')"),
    nodes.Pow: ("no **", _COMPUTE),
    nodes.Scope: ("no autoescape", "nothing is escaped in a prompt"),
    nodes.NSRef: ("no namespaces", _COMPUTE),
}


class TemplateProblem(UserError):
    """A template that cannot be used: ``file:line: what is wrong; what to do``.

    Attributes:
        file, line: where; empty and None where that is not known.
        told: what is wrong, and what to do.
    """

    def __init__(self, told: str, file: str = "", line: int | None = None) -> None:
        place = "" if not file else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(f"{place}{told}")
        self.file, self.line, self.told = file, line, told


@dataclass
class Source:
    """A template that has been read.

    Attributes:
        name: its file.
        tree: its syntax tree.
        size: how many nodes that has.
        uses: name -> the line where it is first used.
        sets: names that it gives values to.
        includes: what it includes, with the lines.
    """

    name: str
    tree: nodes.Template
    size: int = 0
    uses: dict[str, int] = field(default_factory=dict)
    sets: set[str] = field(default_factory=set)
    includes: list[tuple[str, int]] = field(default_factory=list)

    def refuse(self, line: int, what: str) -> NoReturn:
        """Raise `TemplateProblem` about this line."""
        raise TemplateProblem(what, self.name, line)


def read(environment: Environment, name: str, text: str, parts: Mapping[str, Collection[str]]) -> Source:
    """Read one template and refuse what is outside the subset. Raises `TemplateProblem`.

    Args:
        environment: parses it.
        name: its file.
        text: what is in the file.
        parts: known name -> what can follow it after a dot; empty for texts.
    """
    if len(text) > CHARACTERS:
        raise TemplateProblem(f"longer than {CHARACTERS} characters; shorten it, or include parts of it", name, 1)
    try:
        text.encode("utf-8")
        tree = environment.parse(text)
    except TemplateSyntaxError as error:
        raise TemplateProblem(str(error.message), name, error.lineno) from error
    except RecursionError as error:
        raise TemplateProblem("nested too deeply; make it simpler", name, 1) from error
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise TemplateProblem("half a surrogate pair; write the character itself", name, line) from error
    except ValueError as error:  # Python reads no number of more than 4,300 digits
        digits = re.search(r"\d{1000}", text)
        line = text.count("\n", 0, digits.start()) + 1 if digits else 1
        raise TemplateProblem("a number with too many digits; make it shorter", name, line) from error
    source = Source(name, tree)
    _Reader(source, parts).read(tree)
    return source


class _Reader:
    """Goes through a tree once, refuses what is not allowed, and notes names and includes."""

    def __init__(self, source: Source, parts: Mapping[str, Collection[str]]) -> None:
        self.source = source
        self.parts = parts
        self.depth = self.blocks = self.loops = 0
        self.line = 1

    def read(self, node: nodes.Node) -> None:
        """Read a node and what is below it."""
        self.line = node.lineno or self.line
        self.source.size += 1
        if self.source.size > NODES:
            self.refuse(f"more than {NODES} parts; {_COMPUTE}")
        if type(node) not in ALLOWED:
            what, instead = _INSTEAD.get(type(node), (f"no {type(node).__name__}", _COMPUTE))
            self.refuse(f"{what} in templates; {instead}")
        self.depth += 1
        if self.depth > DEPTH:
            self.refuse(f"nested too deeply; make it simpler, or {_COMPUTE}")
        rule = getattr(self, f"_{type(node).__name__.lower()}", None)
        if rule is not None:
            rule(node)
        elif isinstance(node, _ARITHMETIC):
            self._arithmetic(cast(nodes.BinExpr, node))
        else:
            self.all(node.iter_child_nodes())
        self.depth -= 1

    def all(self, several: Iterable[nodes.Node]) -> None:
        """Read several nodes."""
        for node in several:
            self.read(node)

    def refuse(self, what: str) -> NoReturn:
        """Raise `TemplateProblem` about the line that is being read."""
        self.source.refuse(self.line, what)

    # Statements

    def _if(self, node: nodes.If | nodes.With) -> None:
        self._open()
        self.all(node.iter_child_nodes())
        self.blocks -= 1

    _with = _if

    def _for(self, node: nodes.For) -> None:
        if node.recursive:
            self.refuse(f"no recursive loops in templates; {_COMPUTE}")
        self._open()
        self.all(child for child in (node.target, node.iter, node.test) if child is not None)
        self.loops += 1
        self.all(node.body)
        self.loops -= 1
        self.all(node.else_)
        self.blocks -= 1

    def _open(self) -> None:
        self.blocks += 1
        if self.blocks > BLOCKS:
            self.refuse(f"more than {BLOCKS} of if, for and with in each other; {_COMPUTE}")

    def _include(self, node: nodes.Include) -> None:
        if not isinstance(node.template, nodes.Const) or not isinstance(node.template.value, str):
            self.refuse("the name of an included file is a text in quotes; it cannot be computed")
        if not node.with_context:
            self.refuse("no include without context; leave these words out")
        self.source.includes.append((node.template.value, node.lineno))

    # Names

    def _name(self, node: nodes.Name) -> None:
        if not node.name.isascii() or node.name.startswith("_"):
            self.refuse(f"no variable {quoted(node.name)} in templates; use a-z, 0-9 and _, a letter first")
        if node.ctx == "load":
            if node.name in ("step", "loop"):
                self._members(node.name)
            self._use(node)
            return
        if node.name in self.parts or node.name == "loop":
            self.refuse(f"{quoted(node.name)} cannot be set, it has a meaning; choose another name")
        self.source.sets.add(node.name)
        if len(self.source.sets) > VARIABLES:
            self.refuse(f"more than {VARIABLES} variables; {_COMPUTE}")

    def _use(self, node: nodes.Name) -> None:
        if node.name == "loop":
            if not self.loops:
                self.refuse("loop is known only between {% for %} and {% endfor %}")
            return
        self.source.uses.setdefault(node.name, node.lineno)

    def _members(self, name: str) -> NoReturn:
        has = LOOP if name == "loop" else self.parts[name]
        self.refuse(f"{name} alone cannot be used; write {name}. and one of {', '.join(sorted(has))}")

    def _getattr(self, node: nodes.Getattr) -> None:
        self._member(node.node, node.attr)

    def _getitem(self, node: nodes.Getitem) -> None:
        if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
            self._member(node.node, node.arg.value)
        else:
            self.all((node.node, node.arg))

    def _member(self, of: nodes.Node, attribute: str) -> None:
        """``of.attribute``, or the same in brackets."""
        if attribute.startswith("_"):
            self.refuse(f"no {quoted(attribute)} in templates: nothing that starts with _ can be reached")
        if not isinstance(of, nodes.Name):
            self.read(of)
            return
        self._use(of)
        has = LOOP if of.name == "loop" else self.parts.get(of.name)
        if has is None or attribute in has:
            return
        if of.name == "hooks":
            declared = ", ".join(sorted(has)) or "nothing yet"
            self.refuse(f"hooks has no {quoted(attribute)}; shows in section [hooks] of scaffold.toml names {declared}")
        if not has:
            self.refuse(f"{of.name} has no {quoted(attribute)}: it has no parts; there are filters, such as | length")
        self.refuse(f"{of.name} has no {quoted(attribute)}; it has {', '.join(sorted(has))}")

    # Expressions

    def _const(self, node: nodes.Const) -> None:
        value = node.value
        if isinstance(value, str):
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                self.refuse("a text with half a surrogate pair; write the character itself")
        elif isinstance(value, int | float) and not abs(value) <= LARGEST_NUMBER:
            self.refuse(f"a number larger than {LARGEST_NUMBER}; templates have no use for it")

    def _dict(self, node: nodes.Dict) -> None:
        if not is_literal(node):
            self.refuse(f"a table written in a template holds texts and numbers in quotes only; {_COMPUTE}")
        self.all(node.items)

    def _arithmetic(self, node: nodes.BinExpr) -> None:
        for side in (node.left, node.right):
            texts = (nodes.List, nodes.Tuple, nodes.Dict)
            if isinstance(side, texts) or (isinstance(side, nodes.Const) and isinstance(side.value, str)):
                self.refuse(f"{node.operator} is for numbers; write texts one after the other, or ['a', 'b'] | join")
            self.read(side)

    def _compare(self, node: nodes.Compare) -> None:
        if len(node.ops) > 1:
            self.refuse("compare two things at a time: a < b and b < c")
        self.all((node.expr, *node.ops))

    def _filter(self, node: nodes.Filter) -> None:
        if node.name not in FILTERS:
            self.refuse(f"no filter {quoted(node.name)} here; there are {', '.join(sorted(FILTERS))}; or {_COMPUTE}")
        self._arguments(node, "filter", parameters(FILTERS[node.name]))

    def _test(self, node: nodes.Test) -> None:
        if node.name not in TESTS:
            self.refuse(f"no test {quoted(node.name)} here; there are {', '.join(sorted(TESTS))}; or use == < in")
        self._arguments(node, "test", parameters(TESTS[node.name]))

    def _arguments(self, node: nodes.Filter | nodes.Test, what: str, takes: tuple[str, ...]) -> None:
        given = [*takes[: len(node.args)], *(cast(nodes.Keyword, pair).key for pair in node.kwargs)]
        if node.dyn_args or node.dyn_kwargs:
            self.refuse(f"no * or ** in templates; write what {what} {node.name} takes one by one")
        if len(node.args) > len(takes) or len(given) > len(set(given)) or not set(given) <= set(takes):
            self.refuse(f"{what} {node.name} takes {', '.join(takes) or 'nothing'}")
        self.all(node.iter_child_nodes())


def quoted(name: str) -> str:
    """A name as messages show it."""
    return repr(name if len(name) <= 60 else name[:60] + "…")


def is_literal(node: nodes.Node) -> bool:
    """Whether an expression is a text, a number or a list of such, written out."""
    if isinstance(node, nodes.Const):
        return True
    if isinstance(node, nodes.Neg | nodes.Pos):
        return isinstance(node.node, nodes.Const)
    if isinstance(node, nodes.Pair):
        return isinstance(node.key, nodes.Const) and is_literal(node.value)
    return isinstance(node, nodes.List | nodes.Tuple | nodes.Dict) and all(map(is_literal, node.items))


def expanded(sources: Mapping[str, Source]) -> dict[str, int]:
    """Template -> nodes of it and of all that it includes. Raises `TemplateProblem` for missing files and circles."""
    sizes: dict[str, int] = {}

    def size(source: Source, above: tuple[str, ...]) -> int:
        if source.name in sizes:
            return sizes[source.name]
        total = source.size
        for name, line in source.includes:
            if name not in sources:
                source.refuse(line, f"no file {quoted(name)} in prompts/; there are {', '.join(sorted(sources))}")
            if name in (*above, source.name):
                source.refuse(line, f"{name} is being included already; a template cannot include itself")
            total += INCLUDE + size(sources[name], (*above, source.name))
            if total > EXPANDED:
                source.refuse(line, f"with what it includes more than {EXPANDED} parts; {_COMPUTE}")
        sizes[source.name] = total
        return total

    for source in sources.values():
        size(source, ())
    return sizes


def closure(sources: Mapping[str, Source], name: str) -> Iterator[Source]:
    """A template and all that it includes, each once."""
    found: dict[str, Source] = {}
    left = [name]
    while left:
        source = sources[left.pop()]
        if source.name not in found:
            found[source.name] = source
            left += [included for included, _ in source.includes]
            yield source
