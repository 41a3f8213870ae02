"""How scaffolds are written, told from the code that reads them and from the manual beside them."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Mapping
from typing import Any

from automem import prompts, scaffold
from automem.hooks import api
from automem.ops import reference
from automem.schema import ENTRY_FIELDS, Schema
from automem.trace import query
from automem.vocabulary import OPERATIONS

_HEADING = re.compile(r"^## (.+)$", re.M)
_CHAPTERS = {"scaffold.toml": "scaffold.toml", "Prompts": "prompts", "Hooks": "hooks", "Entries and keys": "entries"}
"""Heading in the manual -> chapter."""


def fields() -> str:
    """Every field of ``scaffold.toml`` with its type, range, default and meaning."""
    schema = Schema.model_json_schema()
    kinds = schema["$defs"]
    tables = {
        "[scaffold]  (not to be changed)": "Identity",
        "[limits]": "ScaffoldLimits",
        "[ops]": "Operations",
        "[[ops.own]]  (at most 32)": "OwnOperation",
        "[hooks]": "HooksSection",
        "[[files]]  (at most 64)": "MemoryFile",
    }
    lines = []
    for title, kind in tables.items():
        lines.append(title)
        properties = kinds[kind]["properties"]
        lines += [f"  {name}: {_field(field)}" for name, field in properties.items() if "$ref" not in str(field)]
    return "\n".join(lines)


def _field(field: Mapping[str, Any]) -> str:
    parts = [_type(field)]
    if "default" in field and field["default"] not in (None, "", []):
        parts.append(f"default {field['default']!r}".replace("False", "false"))
    meaning = " ".join(field.get("description", "").replace("``", "").split())
    return f"{', '.join(parts)}. {meaning}"


def _type(field: Mapping[str, Any]) -> str:
    if "anyOf" in field:
        return _type(next(one for one in field["anyOf"] if one.get("type") != "null")) + ", optional"
    if "enum" in field:
        return " | ".join(field["enum"])
    named = {"integer": "number", "array": "list of texts", "string": "text", "boolean": "true | false"}
    kind = named.get(field.get("type", ""), "value")
    low, high = field.get("minimum"), field.get("maximum")
    if low is None and high is None:
        return kind
    return f"{kind} from {low}" if high is None else f"{kind} {low} to {high}"


def entry_fields() -> str:
    """What ``entry`` and ``key`` may name in braces."""
    return "\n".join(f"  {{{name}}}: {meaning}" for name, meaning in ENTRY_FIELDS.items())


def operations() -> str:
    """The built-in operations as a scaffold's prompt would list them."""
    return reference(OPERATIONS.keys())


def template_names() -> str:
    """Which names each template may use."""
    return "\n".join(f"  {name}: {', '.join(sorted(names))}" for name, names in prompts.NAMES.items())


def hooks() -> str:
    """What ``hooks.py`` may define and what it is given."""
    said = inspect.getdoc(api) or ""
    made = "\n".join(
        f"  {function.__name__}{inspect.signature(function)}: {inspect.getdoc(function)}"
        for function in (api.append, api.write, api.create, api.upsert, api.upsert_map, api.delete)
    )
    asked = "\n".join(
        f"  memory.{name}{inspect.signature(getattr(api.Memory, name))}: {inspect.getdoc(getattr(api.Memory, name))}"
        for name in ("files", "read", "tail", "search")
    )
    return f"{said}\n\nWrite operations are made with\n{made}\n\nMemory is asked with\n{asked}\n\n{_step()}"


def _step() -> str:
    return f"A Step: {inspect.getdoc(api.Step)}"


@functools.cache
def chapters() -> Mapping[str, str]:
    """The manual, by chapter: what is told of the format, the code of the hooks' interface, and SQL's views."""
    found: dict[str, str] = {}
    for root in reversed(scaffold.roots()):  # the project's own manual before that of any working folder
        manual = root / "README.md"
        if not found and manual.is_file():
            found = _split(manual.read_text(encoding="utf-8", errors="replace"))
    found["hooks api"] = inspect.getsource(api)
    found["sql"] = query.schema()
    return found


def _split(text: str) -> dict[str, str]:
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    return {
        _CHAPTERS[heading[1].strip()]: text[heading.start() : end].strip()
        for heading, end in zip(headings, ends, strict=True)
        if heading[1].strip() in _CHAPTERS
    }
