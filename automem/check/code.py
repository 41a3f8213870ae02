"""``hooks.py`` as it is written; what it does is seen in the smoke episode (`automem.check.smoke`)."""

from __future__ import annotations

from collections.abc import Iterator

from automem.check.folder import HOOKS, TOML
from automem.check.report import Finding, error, warning
from automem.check.schema import SchemaRead
from automem.hooks import source


def findings(text: str, read: SchemaRead) -> Iterator[Finding]:
    """What is wrong with the code, by line, and with what ``scaffold.toml`` says of it."""
    schema, positions = read.schema, read.positions
    own = frozenset(operation.name for operation in schema.ops.own)
    if not read.own_known:
        own = source.read(text).own  # what is declared is not known
    hooks = source.read(text, own)
    for problem in hooks.problems:
        message, _, do = problem.message.partition("; ")
        if message.startswith("write "):
            message, do = "its parameters are not those with which it is called", message
        yield error(HOOKS, problem.line, "hooks", message, do or "mend this line")
    if hooks.problems or "hooks" in read.wrong:
        return
    if schema.hooks.shows and "observe" not in hooks.methods:
        message = "texts are listed, and Hooks has no observe that would return them"
        yield error(TOML, positions.line(("hooks", "shows")), "hooks-observe", message, "write it, or empty the list")
    if "observe" in hooks.methods and not schema.hooks.shows:
        message = "observe is called, and nothing of what it returns is shown: [hooks] shows is empty"
        yield warning(HOOKS, None, "hooks-observe", message, "name its texts under [hooks] shows in scaffold.toml")
