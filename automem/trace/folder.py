"""The memory folder as it was at a step, rebuilt from what the trace says was done to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from automem.errors import UserError
from automem.memory import Memory
from automem.memory.store import FileSpec
from automem.records import StepRecord
from automem.scaffold import Scaffold
from automem.vocabulary import OPERATIONS, Op

WRITES = frozenset(name for name, operation in OPERATIONS.items() if operation.effect == "write")
"""Operations that change the folder."""

ONE_EMPTY_LINE = "\n"


class Diverged(UserError):
    """The recorded operations do not do what the trace says they did."""


def operations(record: Mapping[str, Any]) -> Iterable[Op]:
    """What a record, as it stands in the trace, says was done to the folder before PLAN began.

    Those are the operations of LOG, with what an own operation of the scaffold asked for, and those of
    `maintain`. An own operation itself does nothing to the folder, and one that was refused changed nothing.
    """
    for op in (*(op for turn in record["log"] for op in turn["ops"]), *record.get("maintained", ())):
        if op["ok"] and op["name"] in WRITES:
            yield Op(op["name"], tuple(op["args"]))


def done(record: StepRecord) -> Iterable[Op]:
    """The same of a record that has been read."""
    for op in (*(op for turn in record.log for op in turn.ops), *record.maintained):
        if op.ok and op.name in WRITES:
            yield Op(op.name, op.args)


def fresh(scaffold: Scaffold, texts: Mapping[str, str] | None = None) -> Memory:
    """A memory folder that holds these texts, or what the scaffold begins an episode with."""
    files = [file.spec() for file in scaffold.schema.files]
    memory = Memory(
        None, files, scaffold.schema.limits.for_memory(), initial=scaffold.initial if texts is None else texts
    )
    for name, text in (texts or {}).items():
        # A file of one empty line reads like an empty file that is written.
        if text == ONE_EMPTY_LINE:
            memory.run(Op("APPEND", (name, ONE_EMPTY_LINE)))
    return memory


def carry_out(memory: Memory, ops: Iterable[Op], step: int) -> None:
    """Run operations that were carried out in a step. Raises `Diverged` when one is refused now."""
    for op in ops:
        result = memory.run(op)
        if not result.ok:
            raise Diverged(
                f"step {step}: {op.label} was carried out then and is refused now ({result.text}). The trace was made "
                "with another scaffold or another version of AutoMem; memory cannot be rebuilt"
            )


class Since:
    """The folder some steps after a checkpoint.

    Only files that the operations since then depend on are taken from the checkpoint and built up line by
    line; to any other the new lines are added as text. So the time does not grow with the folder.
    """

    def __init__(self, scaffold: Scaffold, ops: list[tuple[int, Op]], held: Iterable[str]) -> None:
        """
        Args:
            scaffold: the scaffold that was played.
            ops: step and operation, in order.
            held: files of the checkpoint.
        """
        self._scaffold = scaffold
        self._ops = ops
        self._held = set(held)

    def texts(self, text: Callable[[str, str], str]) -> dict[str, str]:
        """Name -> text, sorted; `text` gives a file of the checkpoint with more after it. Raises `Diverged`."""
        specs = [file.spec() for file in self._scaffold.schema.files]
        grown = {name for name in self._appended(specs) if name in self._held}
        built = {name for name in self._touched(specs) if name in self._held} - grown
        memory = fresh(self._scaffold, {name: text(name, "") for name in built})
        for step, op in self._ops:
            carry_out(memory, [op], step)
        made = memory.snapshot()
        for name in grown:
            made[name] = text(name, made[name])
        for name in self._held - grown - built:
            made[name] = text(name, "")
        return dict(sorted(made.items()))

    def _touched(self, specs: list[FileSpec]) -> set[str]:
        """Files that the operations may read or write."""
        maps = [spec.pattern for spec in specs if spec.by_coordinate][:1]
        found = set()
        for _, op in self._ops:
            if op.name == "UPSERT_MAP":
                found |= {name for name in self._held for pattern in maps if pattern.fullmatch(name)}
            else:
                found.add(op.args[0])
        return found

    def _appended(self, specs: list[FileSpec]) -> set[str]:
        """Files that lines were added to and nothing else happened to, whose older lines do not matter for that."""
        others = {op.args[0] for _, op in self._ops if op.name != "APPEND"}
        names = {op.args[0] for _, op in self._ops if op.name == "APPEND"} - others
        return {name for name in names if not _older_lines_matter(name, specs)}


def _older_lines_matter(name: str, specs: list[FileSpec]) -> bool:
    """Whether what is added to a file depends on what it holds."""
    spec = next((spec for spec in specs if spec.pattern.fullmatch(name)), None)
    return spec is not None and (spec.max_lines is not None or spec.changes)
