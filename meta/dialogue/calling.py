"""From what a model wrote as a call to the answer of a tool. Whatever it wrote, it gets a line that helps."""

from __future__ import annotations

import asyncio
import difflib
import inspect
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from automem.errors import UserError
from automem.models.protocol import ToolCall
from automem.storable import storable
from automem.vocabulary import one_line
from meta.dialogue.tool import PAGE, Arguments, Tool

LONGEST = 1_000_000
"""Characters of the arguments of one call."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a call.

    Attributes:
        text: for the model; can be stored as UTF-8.
        understood: the call was one of a tool, with arguments that it takes.
    """

    text: str
    understood: bool = True


class Malformed(Exception):
    """A call that is none; the text tells the model why, in one line."""


async def answer(tools: Mapping[str, Tool], room: Any, call: ToolCall, cut: bool = False) -> Answered:
    """Carry out a call.

    Args:
        tools: by name.
        room: what they work on.
        call: as the model wrote it.
        cut: its reply ended at a limit, so that this may be half a call.
    """
    try:
        tool, arguments = understood(tools, call)
    except Malformed as wrong:
        more = " Your reply was cut off at its limit of tokens: write less at a time." if cut else ""
        return Answered(storable(f"{wrong}{more}"), understood=False)
    try:
        if inspect.iscoroutinefunction(tool.answer):
            text = await tool.answer(room, arguments)
        else:
            text = await asyncio.to_thread(tool.answer, room, arguments)
    except UserError as refused:
        text = str(refused)
    except Exception as error:  # a dialogue costs money: a defect of one tool must not end it
        _log.exception("the tool %s failed", tool.name)
        text = f"the tool failed: {type(error).__name__}: {one_line(str(error), 300)}"
    return Answered(storable(_bounded(text)))


def understood(tools: Mapping[str, Tool], call: ToolCall) -> tuple[Tool, Arguments]:
    """The tool and its arguments. Raises `Malformed`."""
    name = call.name.strip()
    tool = tools.get(name)
    if tool is None:
        near = difflib.get_close_matches(name[:100], tools, n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise Malformed(f"there is no tool {one_line(name, 60)!r}{hint} The tools are: {', '.join(tools)}.")
    given = arguments_of(call)
    try:
        return tool, tool.arguments.model_validate(given)
    except ValidationError as error:
        raise Malformed(f"{name}: {_wrong(error)}") from None


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call as plain values. Raises `Malformed`."""
    if len(call.arguments) > LONGEST:
        raise Malformed(f"{call.name}: the arguments have {len(call.arguments)} characters, at most {LONGEST} are read")
    try:
        given = json.loads(call.arguments or "{}", strict=False)
    except RecursionError:
        raise Malformed(f"{call.name}: the arguments are nested too deeply") from None
    except ValueError as error:
        raise Malformed(f"{call.name}: the arguments are not valid JSON: {one_line(str(error), 200)}") from None
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise Malformed(f"{call.name}: the arguments have to be one JSON object, such as {{}}")
    return given


def _wrong(error: ValidationError) -> str:
    """What is wrong with arguments, in one line."""
    told = []
    for problem in error.errors(include_url=False)[:5]:
        field = one_line(".".join(map(str, problem["loc"])), 60)
        if problem["type"] == "missing":
            told.append(f"the argument {field} is missing")
        elif problem["type"] == "extra_forbidden":
            told.append(f"it takes no argument {field}")
        else:
            told.append(f"{field}: {one_line(problem['msg'], 200)}")
    return "; ".join(told)


def _bounded(text: str) -> str:
    """What was not paged, cut where nobody would read on."""
    most = 2 * PAGE
    return text if len(text) <= most else f"{text[:most]}\n(cut: {len(text) - most} more characters)"
