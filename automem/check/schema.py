"""What is wrong in ``scaffold.toml``: all of it at once, each at its line.

`automem.schema` decides what is right. Where its validators stop at the first of several
mistakes, the others are looked for here, by the same tables.
"""

from __future__ import annotations

import copy
import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from automem.check.folder import TOML
from automem.check.positions import Path, Positions
from automem.check.report import Finding, error
from automem.ops import OPERATIONS
from automem.scaffold import LONGEST_LINE, too_long
from automem.schema import (
    ENTRY_FIELDS,
    HooksSection,
    Identity,
    MemoryFile,
    Operations,
    OwnOperation,
    ScaffoldLimits,
    Schema,
)

MEMORY_OPERATIONS = tuple(name for name, operation in OPERATIONS.items() if operation.effect != "end")

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
"""A field in ``entry`` or ``key``."""

_PLACE = re.compile(r"\(at line (\d+), column \d+\)|\(at end of document\)")
_TEXT_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")

_MODELS: Mapping[str, type[BaseModel]] = {
    "scaffold": Identity,
    "limits": ScaffoldLimits,
    "ops": Operations,
    "own": OwnOperation,
    "hooks": HooksSection,
    "files": MemoryFile,
}

_DO: Mapping[str, str] = {
    "parent": "put the 64 hex digits of the parent's identity there, or leave it empty for a root",
    "version": 'use letters, digits, ".", "_" and "-", as in the folder\'s name',
    "game": 'use letters, digits, "_" and "-"',
    "kind": "choose note (free text), log (lines are added) or map (one line a key)",
}

_DEFAULT = Schema(scaffold=Identity(game="unknown", version="unknown"), ops=Operations(enabled=MEMORY_OPERATIONS))

Element = TypeVar("Element")

_ROUNDS = 12
"""Times that mistakes are left out to see what else there is."""


@dataclass(frozen=True)
class SchemaRead:
    """A ``scaffold.toml`` as far as it can be used.

    Attributes:
        schema: the checked contents; what is wrong in them is left out or stands at its default.
        wrong: sections with mistakes, and which key of them (``ops``, ``ops.enabled``); every section when the
            file is not TOML.
        positions: where everything stands in the file.
        findings: what is wrong.
    """

    schema: Schema
    wrong: frozenset[str]
    positions: Positions
    findings: tuple[Finding, ...]

    @property
    def own_known(self) -> bool:
        """Whether the scaffold's own operations are those that it declares: no mistake in them was left out."""
        return "ops.own" not in self.wrong and ("ops" not in self.wrong or "ops.enabled" in self.wrong)


def read(text: str | None) -> SchemaRead:
    """Read a ``scaffold.toml``. Never raises, whatever the text; None: it could not be read, which was said."""
    if text is None:
        return _nothing()
    line = too_long(text)
    if line is not None:
        message = f"a line of more than {LONGEST_LINE} characters"
        return _nothing(error(TOML, line, "toml", message, 'break it, for instance into a text between """'))
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        return _nothing(_syntax(str(problem), text))
    except (RecursionError, ValueError, OverflowError) as problem:
        return _nothing(error(TOML, 1, "toml", f"not TOML that can be read: {problem}", "write it more simply"))
    positions = Positions(text)
    rest = {name: value for name, value in document.items() if name in Schema.model_fields}
    try:
        schema, problems = _validated(document, copy.deepcopy(rest))
    except RecursionError:
        return _nothing(error(TOML, 1, "toml", "nested too deeply", "a scaffold.toml has tables of plain values"))
    told = list(_every_mistake(document, positions))
    places = {place for place, _ in told}
    others = [p for p in problems if p["type"] != "value_error" or tuple(p["loc"]) not in places]
    wrong = {".".join(map(str, p[:n])) for p in (*places, *(p["loc"] for p in others)) for n in (1, 2) if p}
    findings = [*(finding for _, finding in told), *(_finding(p, positions) for p in others)]
    return SchemaRead(schema, frozenset(wrong), positions, tuple(findings))


def _nothing(*findings: Finding) -> SchemaRead:
    return SchemaRead(_DEFAULT, frozenset(Schema.model_fields), Positions(""), findings)


def _syntax(message: str, text: str) -> Finding:
    place = _PLACE.search(message)
    line = int(place[1]) if place and place[1] else text.rstrip("\n").count("\n") + 1
    return error(TOML, line, "toml", f"not TOML: {_PLACE.sub('', message).strip()}", "mend the syntax at this line")


def _validated(document: Mapping[str, Any], rest: dict[str, Any]) -> tuple[Schema, list[Any]]:
    """The schema and what is wrong in it; what is wrong is left out of `rest` until a schema remains."""
    try:
        return Schema.model_validate(document), []
    except ValidationError as wrong:
        problems = wrong.errors(include_url=False, include_context=False, include_input=False)
    listed: Sequence[Any] = problems
    for _ in range(_ROUNDS):
        # From the end: leaving out an element moves those behind it.
        for problem in reversed(listed):
            _leave_out(rest, tuple(problem["loc"]))
        try:
            return Schema.model_validate(rest), problems
        except ValidationError as wrong:
            listed = wrong.errors(include_url=False, include_context=False, include_input=False)
    return _DEFAULT, problems


def _leave_out(rest: dict[str, Any], loc: tuple[Any, ...]) -> None:
    if loc[:1] == ("scaffold",):
        _stand_in(rest, loc)
    elif loc[:1] == ("ops",) and loc[1:2] != ("own",):
        # Operations must be there: those that are known, or all.
        ops = rest.get("ops")
        known = [name for _, name in _elements(ops, "enabled", str) if name in MEMORY_OPERATIONS]
        own = ops.get("own", []) if isinstance(ops, dict) else []
        rest["ops"] = {"enabled": known or list(MEMORY_OPERATIONS), "own": own}
    elif loc[:1] == ("ops",) or loc[:1] == ("files",):
        where = loc[:3] if loc[0] == "ops" else loc[:2]
        if not _remove(rest, where):
            _remove(rest, where[:-1])
    elif not _remove(rest, loc[:2]):
        _remove(rest, loc[:1])


def _stand_in(rest: dict[str, Any], loc: tuple[Any, ...]) -> None:
    """The identity must be there; nothing else depends on what it says."""
    identity = dict(rest["scaffold"]) if isinstance(rest.get("scaffold"), dict) else {}
    name = loc[1] if len(loc) > 1 else ""
    if name not in ("game", "version"):
        identity.pop(name, None)
    else:
        identity[name] = "unknown"
    rest["scaffold"] = identity


def _remove(value: Any, loc: tuple[Any, ...]) -> bool:
    for part in loc[:-1]:
        value = value[part] if _holds(value, part) else None
    if not loc or not _holds(value, loc[-1]):
        return False
    del value[loc[-1]]
    return True


def _holds(value: Any, part: Any) -> bool:
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list) and isinstance(part, int) and part < len(value)


def _finding(problem: Mapping[str, Any], positions: Positions) -> Finding:
    loc, kind = tuple(problem["loc"]), str(problem["type"])
    where = ".".join(map(str, loc)) or "file"
    message = str(problem["msg"]).removeprefix("Value error, ")
    name = str(loc[-1]) if loc else ""
    if kind == "missing":
        return error(TOML, positions.line(loc), "schema-missing", f"{where} is missing", "add it")
    if kind == "extra_forbidden":
        around = [str(part) for part in loc[:-1] if isinstance(part, str)]
        model = _MODELS.get(around[-1], Schema) if around else Schema
        near = difflib.get_close_matches(name[:60], model.model_fields, n=1)
        do = f"write {near[0]}, or remove it" if near else f"remove it; there are {', '.join(model.model_fields)}"
        return error(TOML, positions.line(loc), "schema-unknown", f"{where}: nothing is called that", do)
    if name == "name" and "files" in loc:
        do = 'use letters, digits, ".", "_" and "-", at most 64, without folders; {block} may stand in it once'
    else:
        do = _DO.get(name, "mend this value")
    return error(TOML, positions.line(loc), "schema-value", f"{where}: {message}", do)


def _every_mistake(document: Mapping[str, Any], positions: Positions) -> Iterator[tuple[Path, Finding]]:
    """Where the schema's own validators stop at the first mistake: every one, with the place that they tell."""
    ops = document.get("ops")
    for i, name in _elements(ops, "enabled", str):
        if name not in MEMORY_OPERATIONS:
            yield ("ops", "enabled"), _unknown_operation(name, positions.line(("ops", "enabled", i)))
    yield from _twice(_elements(ops, "own", dict), ("ops", "own"), positions)
    files = _elements(document, "files", dict)
    for i, file in files:
        for where, message, do in _file(file):
            line = positions.line(("files", i, where))
            yield ("files", i), error(TOML, line, "schema-file", f"files.{i}.{where}: {message}", do)
    yield from _twice(files, ("files",), positions)
    seen: set[str] = set()
    for i, name in _elements(document.get("hooks"), "shows", str):
        line = positions.line(("hooks", "shows", i))
        if not _TEXT_NAME.fullmatch(name):
            message, do = f"{name!r} cannot name a text", 'use a-z, 0-9 and "_", a letter first, at most 40'
            yield ("hooks", "shows"), error(TOML, line, "schema-value", f"hooks.shows: {message}", do)
        elif name in seen:
            message = f"hooks.shows: {name} is listed twice"
            yield ("hooks", "shows"), error(TOML, line, "schema-twice", message, "remove one of them")
        seen.add(name)


def _unknown_operation(name: str, line: int) -> Finding:
    if name in OPERATIONS:
        return error(TOML, line, "schema-operation", f"ops.enabled: {name} is always there", "leave it out")
    do = f"choose among {', '.join(MEMORY_OPERATIONS)}, or declare an operation of your own under [[ops.own]]"
    return error(TOML, line, "schema-operation", f"ops.enabled: there is no operation {name!r}", do)


def _file(file: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What does not fit together in one ``[[files]]`` entry: field, message, what to do."""
    name, kind, block = file.get("name"), file.get("kind"), file.get("block", 0)
    if file.get("key") and kind in ("note", "log"):
        yield "key", "only a map has a key", 'set kind = "map", or remove key'
    if isinstance(name, str) and isinstance(block, int) and ("{block}" in name) != (block > 0):
        message = "a name with {block} needs block, the cells per side of a block, and no other name does"
        yield "name" if block <= 0 else "block", message, "set block = 8, say" if block <= 0 else "remove block"
    if file.get("max_lines") is not None and kind in ("note", "map"):
        yield "max_lines", f"a {kind} does not drop its oldest lines; a log does", 'remove it, or set kind = "log"'
    if file.get("changes") is True and kind == "map":
        message = "a map keeps one line a key, and takes what changed anyway"
        yield "changes", message, 'remove it, or set kind = "log"'
    for where in ("entry", "key"):
        text = file.get(where)
        for field in dict.fromkeys(PLACEHOLDER.findall(text)) if isinstance(text, str) else ():
            if field not in ENTRY_FIELDS:
                yield where, f"there is no field {{{field}}}", f"name one of {', '.join(ENTRY_FIELDS)}"


def _twice(
    entries: Sequence[tuple[int, Mapping[str, Any]]], path: tuple[str, ...], positions: Positions
) -> Iterator[tuple[Path, Finding]]:
    first: dict[str, int] = {}
    for i, entry in entries:
        name = entry.get("name")
        if not isinstance(name, str):
            continue
        line = positions.line((*path, i, "name"))
        if name in first:
            message = f"{'.'.join(path)}.{i}.name: {name} is listed twice, first on line {first[name]}"
            yield path, error(TOML, line, "schema-twice", message, "rename one of them, or remove it")
        first.setdefault(name, line)


def _elements(table: Any, key: str, kind: type[Element]) -> list[tuple[int, Element]]:
    """The elements of this kind of a list in a table, with their indices; none where there is no such list."""
    entries = table.get(key) if isinstance(table, dict) else None
    return [(i, e) for i, e in enumerate(entries if isinstance(entries, list) else ()) if isinstance(e, kind)]
