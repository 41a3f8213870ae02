"""Python source as a syntax tree, whatever the text and however many threads ask at once."""

from __future__ import annotations

import ast
import threading

_ONE_AT_A_TIME = threading.Lock()
"""Before Python 3.11.8 and 3.12.2 an interpreter counts the depth of all trees that it builds with one counter, and
two threads that build at the same time get a SystemError, "AST constructor recursion depth mismatch"
(https://github.com/python/cpython/issues/106905)."""


class NotPython(ValueError):
    """A text that no tree can be made of.

    Attributes:
        line: where, from 1.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str) -> ast.Module:
    """The tree of a module. Raises `NotPython`."""
    try:
        with _ONE_AT_A_TIME:
            return ast.parse(text)
    except SyntaxError as error:
        raise NotPython(f"not Python: {error.msg}", error.lineno or 1) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise NotPython(f"cannot be read as Python: {error}", 1) from error
