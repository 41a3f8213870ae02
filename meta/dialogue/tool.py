"""What a tool of the meta-LLM is: a name, arguments with a schema, and a function that answers with a text."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from rich.console import Console

PAGE = 8_000
"""Characters of an answer; more of it is another page."""

_WIDTH = 160
"""Columns of tables."""


class Arguments(BaseModel):
    """Arguments of a tool. Docstrings of the fields are what the model is told of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Paged(Arguments):
    """Arguments of a tool whose answer may be long."""

    page: Annotated[int, Field(ge=1, le=100_000)] = 1
    """Which page of a long answer."""


Answer = Callable[[Any, Any], str] | Callable[[Any, Any], Awaitable[str]]
"""Takes the room in which the model works, and the arguments."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    Attributes:
        name: by which it is called.
        about: what it does, for the model.
        arguments: what it takes.
        answer: carries it out. Plain functions run in a thread. Raises `automem.errors.UserError` for what the
            model should do otherwise.
        again: it changes something: when a dialogue is resumed, it is carried out again and not only read back.
    """

    name: str
    about: str
    arguments: type[Arguments]
    answer: Answer
    again: bool = False

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON schema of the arguments."""
        schema = self.arguments.model_json_schema()
        schema.pop("title", None)
        schema.pop("description", None)
        for field in schema.get("properties", {}).values():
            field.pop("title", None)
        return {"properties": {}, **schema}

    @property
    def offered(self) -> dict[str, Any]:
        """As chat completions offer it."""
        function = {"name": self.name, "description": self.about, "parameters": self.parameters}
        return {"type": "function", "function": function}


def page_of(text: str, page: int) -> str:
    """A page of a text, from 1, with a word on where it ends. Pages end with a line where they can."""
    if len(text) <= PAGE:
        return text if page == 1 else f"There is no page {page}: this has one page."
    start, number, shown = 0, 0, ""
    while start < len(text):
        end = min(start + PAGE, len(text))
        if end < len(text):
            newline = text.rfind("\n", start + PAGE // 2, end)
            end = newline + 1 or end
        number += 1
        if number == page:
            shown = text[start:end]
        start = end
    if page > number:
        return f"There is no page {page}: this has {number} pages."
    more = f"page={page + 1} for more" if page < number else "the last one"
    return f"{shown}\n(page {page} of {number}; {more})"


def printed(show: Callable[[Console], None]) -> str:
    """What is printed to a console without colours, as a text."""
    out = io.StringIO()
    show(Console(file=out, width=_WIDTH, color_system=None, force_terminal=False, highlight=False, markup=False))
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n")).strip("\n")
