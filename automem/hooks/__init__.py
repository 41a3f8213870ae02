"""What a scaffold's ``hooks.py`` is written with; see `automem.hooks.api`.

Everything here also exists inside the sandbox, where there is the standard library and nothing
else: no game, no trace, no third-party package.
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
