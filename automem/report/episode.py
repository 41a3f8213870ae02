"""An episode as the report holds it: everything of its replay in small compressed parts, and curves for charts.

Parts are opened one by one, when a reader comes to their steps. Each begins with the memory folder as it was
before its first step; within it only changes are kept.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from automem.errors import UserError
from automem.memory import Memory
from automem.records import Executed, StepRecord, Turn, from_json
from automem.report import edits
from automem.report.pictures import Pictures
from automem.trace import EpisodeTrace, folder

PART_STEPS = 400
"""Steps of a part at most."""

PART_BYTES = 128 * 1024
"""Bytes of a part, uncompressed, from which on it ends; or twice the memory folder's, if that is more."""

POINTS = 160
"""Points of a curve at most."""

END = "end"


@dataclass(frozen=True, slots=True)
class Asked:
    """An episode that goes into the report.

    Attributes:
        folder: the episode's.
        run: name of its run.
        task, seed, steps: the episode and its step limit.
        pictures: whether the game is played again to draw it.
        replay: whether its steps go into the report, or only its curves.
    """

    folder: Path
    run: str
    task: str
    seed: int
    steps: int
    pictures: bool = True
    replay: bool = True


@dataclass(frozen=True, slots=True)
class Packed:
    """An episode for the page.

    Attributes:
        steps: how many it has; the replay shows one more, what the last action led to.
        head: what is needed before any step is shown, compressed like the parts; empty without a replay.
        parts: base64 of gzip of JSON, one after the other.
        progression: (step, value in [0, 1]), wherever it changed, and at the end.
        memory: file -> (step, bytes, lines), wherever it changed, thinned to `POINTS`.
        tokens: (step, prompt tokens, completion tokens), means over so many steps as leave `POINTS` points.
        notes: what a reader should know: pictures that could not be drawn, memory that could not be rebuilt.
    """

    steps: int
    head: str
    parts: tuple[str, ...]
    progression: tuple[tuple[int, float], ...]
    memory: dict[str, tuple[tuple[int, int, int], ...]]
    tokens: tuple[tuple[int, float, float], ...]
    notes: tuple[str, ...]


def pack(asked: Asked) -> Packed:
    """Read an episode, play it again for its pictures, and pack it. Raises `UserError` when it cannot be read."""
    trace = EpisodeTrace(asked.folder)
    final = _final_observation(trace)
    pictures = Pictures(asked.task, asked.seed, asked.steps) if asked.pictures and asked.replay else None
    packing = _Packing(_Folder(trace), pictures)
    try:
        for data in trace.raw():
            packing.add(from_json(data), data)
        packing.end(final)
    finally:
        if pictures is not None:
            pictures.close()
    notes = [*packing.notes(), *([str(trace.damage)] if trace.damage is not None else [])]
    return packing.packed(asked.replay, notes)


Answer = tuple[Packed | None, tuple[str, ...]]
"""What is known of an episode, if it could be read, and what a reader should know."""


def attempt(asked: Asked) -> Answer:
    """`pack`, whose errors are something that the reader of the report should know."""
    try:
        packed = pack(asked)
    except UserError as error:
        return None, (str(error),)
    return packed, packed.notes


def _final_observation(trace: EpisodeTrace) -> str | None:
    with suppress(UserError):
        if trace.result is not None:
            return trace.result.final_observation
    return None


class _Folder:
    """The memory folder step by step."""

    def __init__(self, trace: EpisodeTrace) -> None:
        self.note = ""
        self.files: dict[str, str] = {}
        self._memory: Memory | None = None
        try:
            self._memory = folder.fresh(trace.scaffold)
            self.files = self._memory.snapshot()
        except UserError as error:
            self.note = f"The memory folder cannot be shown: {error}"

    def step(self, data: Mapping[str, Any], step: int) -> dict[str, Any]:
        """What a step changed before PLAN, given its record as it stands in the trace."""
        if self._memory is None:
            return {}
        ops = list(folder.operations(data))
        if not ops:
            return {}
        try:
            folder.carry_out(self._memory, ops, step)
        except UserError as error:
            self.note = f"The memory folder is not shown from step {step} on: {error}"
            self._memory = None
            return {}
        before, self.files = self.files, self._memory.snapshot()
        return edits.between(before, self.files)


@dataclass
class _Packing:
    memory: _Folder
    pictures: Pictures | None
    steps: int = 0
    parts: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    system: str = ""
    models: list[str] = field(default_factory=list)
    reached: dict[str, int] = field(default_factory=dict)
    changed: list[int] = field(default_factory=list)
    trouble: list[int] = field(default_factory=list)
    curves: dict[str, list[Any]] = field(default_factory=lambda: {"progression": [], "tokens": []})
    sizes: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)
    _part: list[bytes] = field(default_factory=list)
    _begun: dict[str, str] = field(default_factory=dict)
    _bytes: int = 0
    _achievements: Any = None

    def add(self, record: StepRecord, data: Mapping[str, Any]) -> None:
        """One more step, as a record and as it stands in the trace."""
        if not self._part:
            self._begin()
        changes = self.memory.step(data, record.step)
        step = self._step(record)
        if changes:
            step["memory"] = changes
        picture = None if self.pictures is None else self.pictures.draw(record.step, record.observation)
        if picture is not None:
            step["picture"] = picture
        self._keep(step)
        self._note(record, changes)
        self.steps = record.step + 1
        if self.pictures is not None:
            self.pictures.play(record.action, record.step)
        if self._bytes > max(PART_BYTES, 2 * sum(map(len, self._begun.values()))) or len(self._part) >= PART_STEPS:
            self._close()

    def end(self, observation: str | None) -> None:
        """What the last action led to: as it is recorded, else as the game shows it when played again."""
        if not self.steps:
            return
        if not self._part:
            self._begin()
        step: dict[str, Any] = {END: True}
        picture = None if self.pictures is None else self.pictures.draw(self.steps, observation)
        if picture is not None:
            step["picture"] = picture
        if observation is not None:
            step["observation"] = observation
        self._keep(step)
        self._close()

    def notes(self) -> list[str]:
        """What went wrong on the way."""
        return [note for note in (self.memory.note, "" if self.pictures is None else self.pictures.note) if note]

    def packed(self, replay: bool, notes: list[str]) -> Packed:
        """All of it."""
        head = {
            "starts": self.starts,
            "steps": self.steps,
            "system": self.system,
            "models": self.models,
            "reached": sorted(([step, name] for name, step in self.reached.items())),
            "changed": _gaps(self.changed),
            "trouble": _gaps(self.trouble),
            "kind": "" if self.pictures is None else self.pictures.kind,
            "legend": {} if self.pictures is None else self.pictures.legend(),
            "notes": notes,
        }
        return Packed(
            steps=self.steps,
            head=_compressed([orjson.dumps(head)]) if replay and self.steps else "",
            parts=tuple(self.parts) if replay else (),
            progression=tuple(self.curves["progression"]),
            memory={name: _thinned(points) for name, points in self.sizes.items()},
            tokens=tuple(_means(self.curves["tokens"])),
            notes=tuple(notes),
        )

    def _begin(self) -> None:
        self.starts.append(self.steps)
        self._begun = self.memory.files
        self._bytes = 0
        self._achievements = None
        if self.pictures is not None:
            self.pictures.restart()

    def _keep(self, step: dict[str, Any]) -> None:
        data = orjson.dumps(step)
        self._part.append(data)
        self._bytes += len(data)

    def _close(self) -> None:
        parts = [b'{"memory":', orjson.dumps(self._begun), b',"steps":[', b",".join(self._part), b"]}"]
        self.parts.append(_compressed(parts))
        self._part = []

    def _step(self, record: StepRecord) -> dict[str, Any]:
        """What a reader is shown of a record; empty values are left out."""
        achievements = dict(record.achievements)
        new = achievements != self._achievements
        self._achievements = achievements
        values = {
            "observation": record.observation,
            "log": [self._turn(turn) for turn in record.log],
            "maintained": [_op(op) for op in record.maintained],
            "plan": [self._turn(turn) for turn in record.plan],
            "hooks": [[event.method, event.kind, event.text] for event in record.hooks],
            "warnings": record.warnings,
            "raw": record.raw_action,
            "action": record.action,
            "invalid": record.invalid,
            "fallback": record.fallback,
            "reward": round(record.reward, 6),
            "progression": round(record.progression, 6),
            "terminated": record.terminated,
            "truncated": record.truncated,
        }
        kept = {name: value for name, value in values.items() if value}
        return kept | {"achievements": achievements} if new else kept

    def _turn(self, turn: Turn) -> dict[str, Any]:
        if turn.model not in self.models:
            self.models.append(turn.model)
        values = {
            "model": self.models.index(turn.model),
            "prompt": [turn.prompt.before, turn.prompt.block, turn.prompt.after],
            "text": turn.text,
            "ops": [_op(op, turn.text) for op in turn.ops],
            "errors": turn.errors,
            "tokens": [turn.prompt_tokens, turn.completion_tokens, turn.cached_tokens],
            "seconds": round(turn.seconds, 3),
            "cost": turn.cost,
        }
        return {name: value for name, value in values.items() if value or name == "text"}

    def _note(self, record: StepRecord, changes: dict[str, Any]) -> None:
        step, turns = record.step, (*record.log, *record.plan)
        self.system = record.system or self.system
        for name, count in record.achievements.items():
            if count:
                self.reached.setdefault(name, step)
        if changes:
            self.changed.append(step)
            for name in changes:
                text = self.memory.files.get(name, "")
                self.sizes.setdefault(name, []).append((step, len(text.encode()), text.count("\n")))
        ops = [op for turn in turns for op in turn.ops] + list(record.maintained)
        failed = any(event.kind in ("error", "lost", "off") for event in record.hooks)
        if record.invalid or record.fallback or failed or any(t.errors for t in turns) or not all(op.ok for op in ops):
            self.trouble.append(step)
        curve = self.curves["progression"]
        if not curve or curve[-1][1] != record.progression:
            curve.append((step, record.progression))
        tokens = sum(t.prompt_tokens for t in turns), sum(t.completion_tokens for t in turns)
        self.curves["tokens"].append(tokens)


def _op(op: Executed, text: str | None = None) -> dict[str, Any]:
    values = {
        "name": op.name,
        "args": () if text is not None and not op.by else op.args,  # else they stand in the reply
        "label": op.label,
        "result": op.result,
        "refused": not op.ok,
        "found": op.found,
        "added": op.added,
        "duplicate": op.duplicate,
        "truncated": op.truncated,
        "by": op.by,
    }
    kept = {name: value for name, value in values.items() if value or (name == "found" and value is not None)}
    if text is not None and not op.by:
        kept["span"] = [_utf16(text, op.span[0]), _utf16(text, op.span[1])]
    return kept


def _utf16(text: str, position: int) -> int:
    """The same place counted as browsers count, which take some characters for two."""
    return position if text.isascii() else len(text[:position].encode("utf-16-le")) // 2


def _compressed(parts: list[bytes]) -> str:
    return base64.b64encode(gzip.compress(b"".join(parts), compresslevel=9, mtime=0)).decode()


def _gaps(steps: list[int]) -> list[int]:
    """Ascending numbers as differences."""
    return [step - before for before, step in zip([0, *steps], steps, strict=False)]


def _thinned(points: list[tuple[int, int, int]]) -> tuple[tuple[int, int, int], ...]:
    every = -(-len(points) // POINTS)
    kept = points[::every] if every else []
    return (*kept, points[-1]) if kept and kept[-1] != points[-1] else tuple(kept)


def _means(tokens: list[tuple[int, int]]) -> Iterator[tuple[int, float, float]]:
    width = max(1, -(-len(tokens) // POINTS))
    for first in range(0, len(tokens), width):
        group = tokens[first : first + width]
        prompt, completion = (sum(values) / len(group) for values in zip(*group, strict=True))
        yield first + len(group) // 2, round(prompt, 1), round(completion, 1)
