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
    found = set()
    whole = set(undeclared)
    for node in tree.find_all((nodes.Getattr, nodes.Getitem)):
        if not isinstance(node.node, nodes.Name) or node.node.name not in undeclared:
            continue
        part = node.attr if isinstance(node, nodes.Getattr) else _constant(node.arg)
        if part is not None:
            found.add(f"{node.node.name}.{part}")
            whole.discard(node.node.name)
    return found | whole


def _constant(node: nodes.Node) -> str | None:
    return node.value if isinstance(node, nodes.Const) and isinstance(node.value, str) else None
