"""What a scaffold's ``hooks.py`` is written with; see `automem.hooks.api`.

Of this package only `automem.hooks.api`, with the names below, and `automem.hooks.inside`, which calls
the hooks, are also inside the sandbox, beside the standard library. All else is outside: the package's
other modules, the games, traces and third-party packages.
"""

from automem.hooks.api import (
    Again,
    File,
    Memory,
    Operation,
    Step,
    append,
    create,
    delete,
    upsert,
    upsert_map,
    write,
)

__all__ = [
    "Again",
    "File",
    "Memory",
    "Operation",
    "Step",
    "append",
    "create",
    "delete",
    "upsert",
    "upsert_map",
    "write",
]
