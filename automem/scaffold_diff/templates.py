"""What a template shows, told from its source without rendering it."""

from __future__ import annotations

from jinja2 import Environment, TemplateSyntaxError, meta, nodes

_ENVIRONMENT = Environment(autoescape=False)  # parses only; nothing is rendered with it


def shown_names(source: str) -> set[str]:
    """The variables that a template names: ``observation``, ``hooks.threats``, ``limits.log_turns``."""
    try:
        tree = _ENVIRONMENT.parse(source)
        undeclared = meta.find_undeclared_variables(tree)
    except (TemplateSyntaxError, RecursionError):
        return set()
    found: set[str] = set()
    for getattr_ in tree.find_all(nodes.Getattr):
        found |= _part(getattr_.node, getattr_.attr, undeclared)
    for getitem in tree.find_all(nodes.Getitem):
        if isinstance(getitem.arg, nodes.Const):
            found |= _part(getitem.node, str(getitem.arg.value), undeclared)
    return found | {name for name in undeclared if not any(part.startswith(f"{name}.") for part in found)}


def _part(of: nodes.Expr, name: str, undeclared: set[str]) -> set[str]:
    return {f"{of.name}.{name}"} if isinstance(of, nodes.Name) and of.name in undeclared else set()
