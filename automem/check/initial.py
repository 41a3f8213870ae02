"""What the memory folder would hold at the start: files that operations could have made, and that were planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from automem.check.folder import FILES, TOML
from automem.check.positions import Positions
from automem.check.report import Finding, error, warning
from automem.memory import FileSpec, Limits, Memory
from automem.memory.files import clean, map_entry
from automem.schema import Schema
from automem.vocabulary import file_name_problem


def findings(schema: Schema, texts: Mapping[str, str], positions: Positions) -> Iterator[Finding]:
    """Args: texts: name below ``files/`` -> contents."""
    specs = [file.spec() for file in schema.files]
    limits = schema.limits.for_memory()
    fitting = {}
    for name, text in texts.items():
        path = f"{FILES}{name}"
        spec = next((spec for spec in specs if spec.pattern.fullmatch(name)), None)
        wrong_name = file_name_problem(name)
        if wrong_name is not None:
            yield error(path, None, "initial-name", wrong_name, f"rename it; files stand in {FILES} without folders")
            continue
        if spec is None:
            message = "scaffold.toml does not plan for this file: the prompt will not say what it is for"
            do = f'add a [[files]] entry with name = "{name}", kind and describe'
            yield warning(path, None, "initial-unplanned", message, do)
        elif spec.kind == "map" and (line := _no_entry(text)) is not None:
            do = f'write it as "key: value", or make {name} a note or a log'
            yield error(path, line, "initial-map", "a map holds one key: value line a key, and this is none", do)
            continue
        elif spec.max_lines is not None and text.count("\n") > spec.max_lines:
            message = f"{name} starts with more lines than max_lines = {spec.max_lines} keeps"
            yield warning(path, None, "initial-lines", message, "shorten it, or raise max_lines")
        if (wrong := _refused(specs, limits, {name: text})) is not None:
            yield error(path, None, "initial-quota", wrong, "shorten it, or raise the quota under [limits]")
            continue
        fitting[name] = text
    if (wrong := _refused(specs, limits, fitting)) is not None:
        do = "raise the quota under [limits], or start with less"
        yield error(TOML, positions.line(("limits",)), "initial-quota", wrong, do)


def _no_entry(text: str) -> int | None:
    """The first line that is no entry of a map."""
    lines = clean(text).split("\n")
    return next((i for i, line in enumerate(lines, 1) if line.strip() and map_entry(line) is None), None)


def _refused(specs: Sequence[FileSpec], limits: Limits, texts: Mapping[str, str]) -> str | None:
    try:
        Memory(None, specs, limits, initial=texts)
    except ValueError as wrong:
        return str(wrong).removeprefix("initial memory file ")
    return None
