"""Entries and keys of memory files: written from a scaffold's template, read back by the same template."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Form:
    """A compiled ``entry``, ``key`` or file name such as ``{x},{y} {facing}``.

    Attributes:
        template: the text as the scaffold writes it.
        fields: names between braces, in order, each once.
    """

    template: str
    fields: tuple[str, ...]
    _pattern: re.Pattern[str]

    def fill(self, values: Mapping[str, object]) -> str | None:
        """The text with every field filled in, on one line; None when a field has no value."""
        if any(values.get(name) is None for name in self.fields):
            return None
        return _FIELD.sub(lambda found: " ".join(str(values[found[1]]).split()), self.template)

    def read(self, text: str) -> dict[str, str] | None:
        """Field values of a text that was written from this template; None for any other text."""
        found = self._pattern.fullmatch(text)
        return found.groupdict() if found else None


@lru_cache(maxsize=256)
def form(template: str, shapes: tuple[tuple[str, str], ...] = ()) -> Form:
    """Compile a template. `shapes` are (field, regular expression) pairs; other fields match any text."""
    known = dict(shapes)
    fields: list[str] = []
    pattern = []
    position = 0
    for found in _FIELD.finditer(template):
        pattern.append(re.escape(template[position : found.start()]))
        name = found[1]
        if name in fields:
            pattern.append(f"(?P={name})" if name.isidentifier() else ".*?")
        else:
            fields.append(name)
            pattern.append(f"(?P<{name}>{known.get(name, '.*?')})" if name.isidentifier() else ".*?")
        position = found.end()
    pattern.append(re.escape(template[position:]))
    return Form(template, tuple(fields), re.compile("".join(pattern)))
