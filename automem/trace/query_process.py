"""Runs one query over traces, and is gone. Started by `automem.trace.query`; imports nothing of AutoMem.

The query may come from a model that means harm. This process has limits on memory and time and may write
no file; where the kernel has Landlock it can read the traces and nothing else; DuckDB itself refuses every
other file, extensions, settings, and everything but a SELECT. A request comes on standard input as JSON,
the answer goes to standard output as JSON.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import sys
from decimal import Decimal
from typing import Any

import duckdb


def main() -> None:
    """Answer the request."""
    request = json.load(sys.stdin)
    for limit, most in ((resource.RLIMIT_AS, request["bytes"]), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(limit, (most, most))
    _contain(request["traces"])
    try:
        answer = _answer(request)
    except (duckdb.OutOfMemoryException, MemoryError):
        answer = {"memory": True}
    except duckdb.Error as error:
        said = str(error)
        answer = {"error": said, "full": request["not_brief"] in said, "longer": "maximum_object_size" in said}
    json.dump(answer, sys.stdout)
    sys.stdout.flush()


def _contain(traces: list[str]) -> None:
    """Give up all files but the traces, where the kernel can do that."""
    with contextlib.suppress(Exception):
        from landlock import FSAccess, Ruleset  # type: ignore[import-untyped]

        rules = Ruleset()
        # DuckDB looks at the limits of the container that it runs in, and does not start without.
        own = [path for path in ("/proc/self", "/sys/fs/cgroup") if os.path.exists(path)]  # noqa: PTH110
        rules.allow(*traces, *own, rules=FSAccess.READ_FILE)
        rules.apply()


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    connection = _connect(request)
    statements = connection.extract_statements(request["query"])
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        return {"error": "write one SELECT statement; nothing else is run here"}
    text = statements[0].query.strip().rstrip(";")
    # Inside another SELECT no part of the query can write: that is allowed at the top of a statement only.
    cursor = connection.execute(f"SELECT * FROM ({text}\n) AS query LIMIT {int(request['rows']) + 1}")
    columns = [column[0] for column in cursor.description]
    types = [str(column[1]) for column in cursor.description]
    rows: list[list[Any]] = []
    left = request["characters"]
    while len(rows) <= request["rows"] and (fetched := cursor.fetchone()) is not None:
        row = [_plain(value, request["cell"]) for value in fetched]
        left -= len(json.dumps(row))
        if left < 0 and rows:
            return {"columns": columns, "types": types, "rows": rows, "more": True}
        rows.append(row)
    more = len(rows) > request["rows"]
    return {"columns": columns, "types": types, "rows": rows[: request["rows"]], "more": more}


def _connect(request: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """The views, and nothing beyond them."""
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{request['bytes'] // 2 // 2**20}MiB",
            "threads": str(request["threads"]),
            "temp_directory": "",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "python_enable_replacements": "false",
        },
    )
    connection.execute(f"SET allowed_paths = [{', '.join('?' * len(request['traces']))}]", request["traces"])
    connection.execute("CREATE TABLE files (path VARCHAR, run VARCHAR, task VARCHAR, seed BIGINT)")
    if request["files"]:
        connection.executemany("INSERT INTO files VALUES (?, ?, ?, ?)", request["files"])
    connection.execute(request["episodes_table"])
    for row in request["episodes"]:
        connection.execute(f"INSERT INTO episodes VALUES ({', '.join('?' * len(row))})", row)
    for statement in request["views"]:
        connection.execute(statement)
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    connection.execute("BEGIN TRANSACTION READ ONLY")
    return connection


def _plain(value: Any, longest: int) -> Any:
    """A value as JSON can hold it, long texts cut."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float | Decimal):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]}… [{len(value) - longest} more characters]"
    if isinstance(value, dict):
        return {str(_plain(key, longest)): _plain(item, longest) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, longest) for item in value]
    return _plain(str(value), longest)


if __name__ == "__main__":
    main()
