"""Templates compiled from the subset, and one rendering of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import GeneratorType
from typing import Any, cast

from jinja2 import BaseLoader, Environment, StrictUndefined, Template, TemplateNotFound, TemplateSyntaxError, Undefined
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from automem.hooks import Step
from automem.templates import language, meter, rewriting
from automem.templates.filters import FILTERS, TESTS
from automem.templates.language import ALL_NODES, LOOP, TEMPLATES, TemplateProblem, quoted
from automem.templates.operators import OPERATORS

LARGEST_PROMPT = meter.LARGEST_TEXT
"""Characters of one rendered message; more than any context window that plays these games."""


class PromptTooLong(TemplateProblem):
    """A message that renders to more than `LARGEST_PROMPT` characters."""


class Templates:
    """The templates of one scaffold, checked and compiled."""

    def __init__(
        self, sources: Mapping[str, str], names: Mapping[str, Collection[str]], parts: Mapping[str, Collection[str]]
    ) -> None:
        """Raises `TemplateProblem` when one is not right.

        Args:
            sources: file name -> template text.
            names: template that will be rendered -> the names that it may use.
            parts: every known name -> what can follow it after a dot; empty for texts.
        """
        if len(sources) > TEMPLATES:
            raise TemplateProblem(f"more than {TEMPLATES} templates; put some of them together", max(sources), 1)
        self._environment = _Environment()
        read = {name: language.read(self._environment, name, text, parts) for name, text in sources.items()}
        if sum(source.size for source in read.values()) > ALL_NODES:
            raise TemplateProblem(f"more than {ALL_NODES} parts in all templates; compute in hooks.py", max(read), 1)
        sizes = language.expanded(read)
        _check_names(read, names, parts)
        reached = {source.name: source for name in names for source in language.closure(read, name)}
        self._templates = {name: self._compiled(source, sizes) for name, source in reached.items()}
        self._environment.loader = _Shelf(self._templates)

    def _compiled(self, source: language.Source, sizes: Mapping[str, int]) -> Template:
        tree = rewriting.metered(source, sizes)
        try:
            code = self._environment.compile(tree, source.name)
        except TemplateSyntaxError as error:
            raise TemplateProblem(str(error.message), source.name, error.lineno) from error
        except (RecursionError, SyntaxError, ValueError, MemoryError) as error:
            raise TemplateProblem(f"cannot be compiled; make it simpler ({error})", source.name, 1) from error
        return Template.from_code(self._environment, code, {})

    def render(self, name: str, values: Mapping[str, Any], work: int = meter.WORK) -> str:
        """Render one template.

        Args:
            name: the template.
            values: what its names stand for.
            work: what it may do, in units of `automem.templates.meter`.

        Raises `PromptTooLong` as soon as the text passes `LARGEST_PROMPT` characters, and
        `TemplateProblem` for anything else that goes wrong in it, with the file and the line.
        """
        template = self._templates[name]
        context = template.new_context({**values, meter.METER: meter.Meter(work)})
        parts = template.root_render_func(context)
        try:
            text = "".join(_bounded(template, parts))
            if not text.isascii():
                text.encode("utf-8")
        except TemplateProblem:
            raise
        except Exception as error:
            raise _problem(name, error) from error
        return text


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja2's immutable sandbox, with nothing in it but what the subset needs."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%"})

    def __init__(self) -> None:
        super().__init__(
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=False,
            autoescape=False,
            finalize=meter.shown,
            auto_reload=False,
        )
        self.globals = {}
        self.filters = {**FILTERS, **OPERATORS}
        self.tests = dict(TESTS)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Arithmetic of numbers that stay small."""
        operands = meter.number(left, operator), meter.number(right, operator)
        return meter.number(super().call_binop(context, operator, *operands), operator)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """``obj.attribute``: an entry of a table, or a part of a step or a loop. There are no others."""
        if isinstance(obj, Mapping):
            return self._entry(obj, attribute)
        if attribute in _PARTS.get(type(obj), ()):
            return getattr(obj, attribute)
        return self._missing(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """``obj[argument]``: an entry of a table or a list, a character of a text."""
        if isinstance(obj, Mapping):
            return self._entry(obj, argument)
        if isinstance(obj, str | list | tuple) and isinstance(argument, int):
            try:
                return obj[argument]
            except IndexError:
                return self._missing(obj, argument)
        return self.getattr(obj, argument) if isinstance(argument, str) else self._missing(obj, argument)

    def _entry(self, table: Mapping[Any, Any], key: Any) -> Any:
        if isinstance(key, Undefined):
            return self._missing(key, "")
        return table[key] if isinstance(key, str | int | float) and key in table else self._missing(table, key)

    def _missing(self, obj: Any, name: Any) -> Any:
        for value in (obj, name):
            if isinstance(value, Undefined):
                str(value)  # raises, with the name that was not there in the first place
        return self.undefined(f"{meter.kind(obj)} has no {quoted(str(name))}", obj=obj, name=name)


_PARTS: Mapping[type, frozenset[str]] = {
    Step: frozenset(Step.__dataclass_fields__),
    LoopContext: frozenset(LOOP),
}


class _Shelf(BaseLoader):
    """Finds included templates among the compiled ones."""

    def __init__(self, templates: Mapping[str, Template]) -> None:
        self._templates = templates

    def load(self, environment: Environment, name: str, globals: Any = None) -> Template:
        """The template of this name."""
        if name not in self._templates:
            raise TemplateNotFound(name)
        return self._templates[name]


def _check_names(
    read: Mapping[str, language.Source], names: Mapping[str, Collection[str]], parts: Mapping[str, Collection[str]]
) -> None:
    """Refuse names that a template does not get, wherever it is included."""
    reached: set[str] = set()
    for name, allowed in names.items():
        for source in language.closure(read, name):
            reached.add(source.name)
            where = "here" if source.name == name else f"here, where {name} includes it"
            _check_uses(source, allowed, where)
    for name in read.keys() - reached:
        _check_uses(read[name], parts, "here")


def _check_uses(source: language.Source, allowed: Collection[str], where: str) -> None:
    for used, line in source.uses.items():
        if used not in allowed and used not in source.sets:
            source.refuse(line, f"no variable {quoted(used)} {where}; it may use {', '.join(sorted(allowed))}")


def _bounded(template: Template, parts: Iterator[str]) -> Iterator[str]:
    size = 0
    for part in parts:
        size += len(part)
        if size > LARGEST_PROMPT:
            frame = cast(GeneratorType, parts).gi_frame
            line = template.get_corresponding_lineno(frame.f_lineno) if frame else 1
            raise PromptTooLong(f"renders to more than {LARGEST_PROMPT} characters", template.name or "", line)
        yield part


def _problem(file: str, error: Exception) -> TemplateProblem:
    """What happened, and the last place in a template that the error came through."""
    line, traceback = 1, error.__traceback__
    while traceback is not None:
        template = traceback.tb_frame.f_globals.get("__jinja_template__")
        if template is not None:
            file, line = template.name, template.get_corresponding_lineno(traceback.tb_lineno)
        traceback = traceback.tb_next
    told = str(error) if isinstance(error, meter.CannotRender) else f"{type(error).__name__}: {str(error)[:300]}"
    return TemplateProblem(told, file, line)
