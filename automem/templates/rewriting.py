"""A template's tree made to pay: what could be large at run time becomes a filter of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from jinja2 import Environment, nodes
from jinja2.visitor import NodeTransformer

from automem.templates.language import INCLUDE, Source, is_literal
from automem.templates.meter import ROUND


def metered(source: Source, sizes: Mapping[str, int]) -> nodes.Template:
    """The tree with everything that could be large replaced by filters that pay; changes it in place."""
    return cast(nodes.Template, _Metering(sizes).visit(source.tree))


class _Metering(NodeTransformer):
    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes

    def visit_For(self, node: nodes.For) -> nodes.Node:
        """Pay for the rounds before the first."""
        each = [*node.body, node.target, *([node.test] if node.test else [])]
        weight = ROUND + sum(map(self.weight, each))
        self.generic_visit(node)
        node.iter = _filter(cast(nodes.Expr, node.iter), "#rounds", nodes.Const(weight))
        return node

    def weight(self, node: nodes.Node) -> int:
        """Nodes below and with `node`, with what they include."""
        own = INCLUDE + self.sizes[node.template.value] if isinstance(node, nodes.Include) else 1  # type: ignore[attr-defined]
        return own + sum(map(self.weight, node.iter_child_nodes()))

    def visit_Compare(self, node: nodes.Compare) -> nodes.Expr:
        self.generic_visit(node)
        (operand,) = node.ops
        return _filter(node.expr, f"#{operand.op}", operand.expr)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        bounds = (node.arg.start, node.arg.stop, node.arg.step)
        return _filter(node.node, "#slice", *(bound or nodes.Const(None) for bound in bounds))

    def visit_List(self, node: nodes.List | nodes.Tuple) -> nodes.Expr:
        literal = is_literal(node)
        self.generic_visit(node)
        return node if literal else _filter(node, "#flat")

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Expr:
        return node if node.ctx != "load" else self.visit_List(node)


def _filter(node: nodes.Expr, name: str, *args: nodes.Expr) -> nodes.Expr:
    made = nodes.Filter(node, name, list(args), [], None, None)
    for new in (made, *args):
        new.set_lineno(node.lineno)
        new.set_environment(cast(Environment, node.environment))
    return made
