"""Reading a ``hooks.py`` without running it: which methods it has, and whether it can be a scaffold's.

What is checked here is for people and for models that write hooks: it says early, by line, what would
not work. It contains nothing; that is the sandbox's work (`automem.sandbox`).
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from automem.hooks.syntax import NotPython, parse

ALLOWED_MODULES = frozenset(
    {
        "__future__",
        "automem.hooks",
        "bisect",
        "collections",
        "collections.abc",
        "copy",
        "dataclasses",
        "difflib",
        "enum",
        "functools",
        "heapq",
        "itertools",
        "json",
        "math",
        "operator",
        "re",
        "statistics",
        "string",
        "textwrap",
        "types",
        "typing",
        "unicodedata",
    }
)
"""What hooks may import: parts of the standard library that compute, and nothing that looks outside,
tells the time or draws lots."""

METHODS: Mapping[str, tuple[str, ...]] = {
    "reset": ("game", "task"),
    "observe": ("step",),
    "maintain": ("step", "memory"),
    "check_action": ("step", "action"),
}
"""Method -> its parameters after ``self``. ``op_NAME`` takes ``args`` and ``memory``."""

OWN_OPERATION = ("args", "memory")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a file that has to be mended: the line, from 1, and what to do."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class HookSource:
    """A ``hooks.py`` that has been read.

    Attributes:
        text: the source.
        methods: names of the hook methods that class ``Hooks`` defines.
        problems: what has to be mended before it can be used; empty when nothing has.
    """

    text: str
    methods: frozenset[str]
    problems: tuple[Problem, ...]

    @property
    def own(self) -> frozenset[str]:
        """Names of the operations that it carries out (NEAR for ``op_NEAR``)."""
        return frozenset(name.removeprefix("op_") for name in self.methods if name.startswith("op_"))


def read(text: str, own: Collection[str] = ()) -> HookSource:
    """Read a ``hooks.py``. Never raises, whatever the text.

    Args:
        text: the source.
        own: operations that the scaffold adds; each needs its ``op_NAME``.
    """
    try:
        tree = parse(text)
    except NotPython as error:
        return HookSource(text, frozenset(), (Problem(error.line, str(error)),))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Hooks"]
    problems = list(_imports(tree))
    if not classes:
        problems.append(Problem(1, "no class Hooks; put the hook methods into one"))
        return HookSource(text, frozenset(), tuple(problems))
    functions = {n.name: n for n in classes[-1].body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    methods = frozenset(name for name in functions if name in METHODS or name.startswith("op_"))
    problems += _not_called(classes[-1], functions, methods)
    for name in methods:
        problems += _signature(functions[name], METHODS.get(name, OWN_OPERATION))
    problems += _constructor(functions.get("__init__"))
    source = HookSource(text, methods, ())
    for name in sorted(source.own - set(own)):
        line = functions[f"op_{name}"].lineno
        problems.append(Problem(line, f"op_{name} has no [[ops.own]] entry in scaffold.toml; add one, or remove it"))
    for name in sorted(set(own) - source.own):
        problems.append(
            Problem(classes[-1].lineno, f"no method op_{name}, but scaffold.toml lists the operation {name}")
        )
    return HookSource(text, methods, tuple(sorted(problems, key=lambda problem: problem.line)))


def _not_called(
    hooks: ast.ClassDef, functions: Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef], methods: frozenset[str]
) -> Iterator[Problem]:
    """What looks like a hook and would never be called."""
    for base in hooks.bases:
        if not (isinstance(base, ast.Name) and base.id == "object"):
            yield Problem(hooks.lineno, "class Hooks has a base class; write its hook methods out in Hooks itself")
    for node in hooks.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and (target.id in METHODS or target.id.startswith("op_")):
                    yield Problem(
                        node.lineno, f"{target.id} is assigned; write it as a method, def {target.id}(self, …)"
                    )
    for name, function in functions.items():
        near = difflib.get_close_matches(name, METHODS, n=1, cutoff=0.85)
        if near and name not in METHODS:
            yield Problem(
                function.lineno, f"{name} is never called; if {near[0]} is meant, write that, else begin it with _"
            )
    if not methods:
        yield Problem(hooks.lineno, f"class Hooks has no hook method; there are {', '.join(METHODS)} and op_NAME")


def _imports(tree: ast.AST) -> Iterator[Problem]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            named = [("." * node.level) + (node.module or "")]
        else:
            continue
        for name in named:
            if name not in ALLOWED_MODULES:
                allowed = ", ".join(sorted(ALLOWED_MODULES - {"__future__"}))
                yield Problem(node.lineno, f"hooks cannot import {name}; they may import {allowed}")


def _signature(function: ast.FunctionDef | ast.AsyncFunctionDef, wanted: tuple[str, ...]) -> Iterator[Problem]:
    if isinstance(function, ast.AsyncFunctionDef):
        yield Problem(function.lineno, f"{function.name} is async; hooks are plain functions")
        return
    if function.decorator_list:
        yield Problem(function.lineno, f"{function.name} has a decorator; hooks are plain methods")
        return
    args = function.args
    names = [a.arg for a in (*args.posonlyargs, *args.args)][1:]
    without_default = len(args.posonlyargs) + len(args.args) - len(args.defaults) - 1
    fits = args.vararg is not None or len(names) >= len(wanted)
    needs_more = without_default > len(wanted) or any(default is None for default in args.kw_defaults)
    if not fits or needs_more or (not args.posonlyargs and not args.args):
        yield Problem(function.lineno, f"write def {function.name}(self, {', '.join(wanted)})")


def _constructor(function: ast.FunctionDef | ast.AsyncFunctionDef | None) -> Iterator[Problem]:
    if function is None:
        return
    args = function.args
    if len(args.posonlyargs) + len(args.args) - len(args.defaults) > 1 or any(d is None for d in args.kw_defaults):
        yield Problem(function.lineno, "__init__ takes nothing but self; the episode's game and task come to reset")
