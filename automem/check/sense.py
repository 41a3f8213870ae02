"""What a valid ``scaffold.toml`` says that cannot work, breaks an invariant, or costs more than it seems."""

from __future__ import annotations

from collections.abc import Iterator

from automem.check.folder import HOOKS, TOML
from automem.check.positions import Positions
from automem.check.report import Finding, error, warning
from automem.check.schema import PLACEHOLDER
from automem.memory.changes import said
from automem.metrics import WRITES
from automem.schema import MemoryFile, Schema
from automem.vocabulary import OPERATIONS

READS = frozenset({"READ", "SEARCH", "TAIL"})
"""Operations that show what is in the memory folder."""

RESULT_CHARS = 10_000
"""Characters of one result, some 5,000 tokens, beyond which a context fills within one phase."""

PINNED_CHARS = 12_000
"""Characters of pinned files that every prompt may show, some 3,000 tokens."""


def operations(schema: Schema, positions: Positions, has_hooks: bool) -> Iterator[Finding]:
    """The model decides: it must be able to read and to write with operations of the house, and each must work."""
    enabled = schema.ops.enabled
    line = positions.line(("ops", "enabled"))
    for kind, names in (("read", READS), ("write", WRITES)):
        if names.isdisjoint(enabled):
            message = (
                f"the model has no built-in {kind} operation: a scaffold assists its memory, and never replaces it"
            )
            do = f"enable one of {', '.join(name for name in OPERATIONS if name in names)}"
            yield error(TOML, line, f"no-{kind}-operation", message, do)
    for i, name in enumerate(enabled):
        if name in enabled[:i]:
            place = positions.line(("ops", "enabled", i))
            yield warning(TOML, place, "operation-twice", f"ops.enabled: {name} is listed twice", "remove one of them")
    maps = [file.spec() for file in schema.files if file.kind == "map"]
    coordinates = [spec for spec in maps if spec.by_coordinate]
    for name, needed, what in (
        ("UPSERT", maps, 'a file of kind = "map"'),
        ("UPSERT_MAP", coordinates, 'a file of kind = "map" whose key is a coordinate, such as "{x},{y}"'),
    ):
        if name in enabled and not needed:
            place = positions.line(("ops", "enabled", enabled.index(name)))
            message = f"{name} is enabled, but there is nothing that it could write to: it would always be refused"
            yield warning(TOML, place, "operation-useless", message, f"plan {what} under [[files]], or remove {name}")
    for i, file in enumerate(schema.files):
        upserted = "UPSERT" in enabled or ("UPSERT_MAP" in enabled and file.spec().by_coordinate)
        if file.kind == "map" and not upserted and not has_hooks:
            place = positions.line(("files", i, "kind"))
            message = f"{file.name} is a map, and no enabled operation sets one of its keys"
            yield warning(TOML, place, "file-unwritable", message, "enable UPSERT")


def own_operations(schema: Schema, positions: Positions, has_hooks: bool) -> Iterator[Finding]:
    """Operations and texts that hooks would give, without hooks."""
    if has_hooks:
        return
    for i, operation in enumerate(schema.ops.own):
        message = f"the operation {operation.name} needs a {HOOKS} with op_{operation.name}, and there is no {HOOKS}"
        do = f"write {HOOKS}, or remove the operation"
        yield error(TOML, positions.line(("ops", "own", i)), "no-hooks", message, do)
    for i, name in enumerate(schema.hooks.shows):
        message = f"the text {name} needs a {HOOKS} whose observe returns it, and there is no {HOOKS}"
        do = f"write {HOOKS}, or remove the name"
        yield error(TOML, positions.line(("hooks", "shows", i)), "no-hooks", message, do)


def files(schema: Schema, positions: Positions) -> Iterator[Finding]:
    """Planned files that tell the model nothing."""
    for i, file in enumerate(schema.files):
        if not file.describe.strip() and not file.entry.strip():
            message = f"{file.name}: neither describe nor entry says what belongs in it"
            do = "say it in describe; the model sees nothing else of a planned file"
            yield warning(TOML, positions.line(("files", i, "name")), "file-undescribed", message, do)
        if file.entry and not PLACEHOLDER.search(file.entry):
            message = f"{file.name}: entry has no field in braces, so that every entry would be the same"
            do = 'name what changes, for instance entry = "Step {step}: {observation}", or remove entry'
            yield warning(TOML, positions.line(("files", i, "entry")), "entry-without-field", message, do)
        if file.changes and "{step}" in file.entry and not _step_told(file.entry):
            message = f"{file.name}: no two lines would be the same, for the step in its entry looks like any number"
            do = 'begin the entry with the step, or write "Step {step}"'
            yield warning(TOML, positions.line(("files", i, "changes")), "changes-numbered", message, do)
        if file.kind == "map" and file.entry and not file.key:
            message = f"{file.name}: entry says how a value looks, and no key says under what it stands"
            yield warning(TOML, positions.line(("files", i)), "map-without-key", message, 'add key = "{x},{y}", say')


def _step_told(entry: str) -> bool:
    """Whether two lines of this entry that differ in their step alone are known to say the same."""
    one, other = (PLACEHOLDER.sub("x", entry.replace("{step}", number)) for number in ("11", "12"))
    return said(one, entry) == said(other, entry)


def costs(schema: Schema, positions: Positions) -> Iterator[Finding]:
    """What fills the context: results, and pinned files, which stand in every prompt."""
    most = schema.limits.result_chars
    if most > RESULT_CHARS:
        message = f"one result may show {most} characters, some {most // 4} tokens"
        do = f"keep result_chars at or below {RESULT_CHARS}"
        yield warning(TOML, positions.line(("limits", "result_chars")), "result-large", message, do)
    pinned = [(i, file) for i, file in enumerate(schema.files) if file.pin]
    for i, file in pinned:
        line = positions.line(("files", i, "pin"))
        if file.block:
            message = (
                f"{file.name}: every block is pinned, so that prompts grow with the map, {most} characters a block"
            )
            yield warning(TOML, line, "pin-grows", message, "pin a file that stays small; let the model read blocks")
        elif _grows(file):
            message = f"{file.name} is pinned and only grows: soon every prompt shows {most} characters of it"
            yield warning(TOML, line, "pin-grows", message, "set max_lines, or let the model read it when it needs it")
    total = most * sum(not file.block for _, file in pinned)
    if total > PINNED_CHARS:
        message = f"pinned files may add {total} characters, some {total // 4} tokens, to every prompt"
        do = "pin fewer files, or lower result_chars"
        yield warning(TOML, positions.line(("files", pinned[-1][0], "pin")), "pin-large", message, do)


def _grows(file: MemoryFile) -> bool:
    """Whether nothing bounds it: a log that keeps every line."""
    return file.kind == "log" and file.max_lines is None
