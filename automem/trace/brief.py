"""A record without its long texts: what most questions in SQL need, at a tenth of the size.

The index of a trace carries the brief records beside the offsets, so that such questions do not unpack
what the model read and wrote. A field is called as in the record; one that is left out is empty, false or
zero there, or is a long text (`automem.trace.views` knows which).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from automem.records import Executed, StepRecord, Turn

LONG = 80
"""Characters of arguments beyond which they are left out."""


def line(record: StepRecord) -> bytes:
    """The brief record as a line of JSON."""
    said: dict[str, Any] = {
        "step": record.step,
        "action": record.action,
        "raw_action": record.raw_action,
        "invalid": record.invalid,
        "fallback": record.fallback,
        "reward": record.reward,
        "progression": record.progression,
        "achievements": record.achievements,
        "terminated": record.terminated,
        "truncated": record.truncated,
        "log": [_turn(turn) for turn in record.log],
        "plan": [_turn(turn) for turn in record.plan],
    }
    if record.warnings:
        said["warnings"] = record.warnings
    if record.maintained:
        said["maintained"] = _ops(record.maintained)
    if record.hooks:
        said["hooks"] = record.hooks
    return orjson.dumps(said, option=orjson.OPT_APPEND_NEWLINE)


def _turn(turn: Turn) -> dict[str, Any]:
    said: dict[str, Any] = {
        "model": turn.model,
        "ops": _ops(turn.ops),
        "prompt_tokens": turn.prompt_tokens,
        "completion_tokens": turn.completion_tokens,
        "cached_tokens": turn.cached_tokens,
        "seconds": turn.seconds,
    }
    if turn.errors:
        said["errors"] = turn.errors
    if turn.cost is not None:
        said["cost"] = turn.cost
    return said


def _ops(ops: Iterable[Executed]) -> list[dict[str, Any]]:
    found = []
    for op in ops:
        said: dict[str, Any] = {"name": op.name, "args": op.args, "span": op.span, "ok": op.ok}
        if sum(map(len, op.args)) > LONG:
            said["args"] = op.args[:1] if len(op.args[0]) <= LONG else ()
            said["cut"] = True
        if op.found is not None:
            said["found"] = op.found
        if op.added:
            said["added"] = op.added
        if op.duplicate:
            said["duplicate"] = True
        if op.truncated:
            said["truncated"] = True
        if op.by:
            said["by"] = op.by
        found.append(said)
    return found
