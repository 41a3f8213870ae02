"""One pass over an episode: what every phase did, and what the rest of the trace says of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from automem.duplicates import Duplicates
from automem.metrics import WRITES
from automem.records import Executed, Phase, StepRecord, Turn
from specialist.candidate import consulted
from specialist.select.entries import Entries, Layout, Note
from specialist.select.facts import Facts, is_read, said, shows


def timeline(records: Sequence[StepRecord], layout: Layout, horizon: int) -> dict[tuple[int, Phase], Facts]:
    """Facts of every phase that ran an operation or wrote a turn of LOG, by step and phase.

    Args:
        records: of one episode, all of them, in order.
        layout: what its scaffold says of files.
        horizon: progress counts for a read when it is made by the action of the same step, or of the `horizon` - 1
            steps after it; an entry that is written again within as many steps was not outdated.
    """
    return _Pass(records, layout, horizon).read()


def progress(records: Iterable[StepRecord]) -> Iterator[int]:
    """Steps whose action raised progression or reached an achievement for the first time."""
    best, reached = 0.0, set[str]()
    for record in records:
        new = {name for name, count in record.achievements.items() if count > 0} - reached
        if new or record.progression > best:
            yield record.step
        reached |= new
        best = max(best, record.progression)


class _Pass:
    def __init__(self, records: Sequence[StepRecord], layout: Layout, horizon: int) -> None:
        self._records = records
        self._layout = layout
        self._horizon = horizon
        self._entries = Entries(layout)
        self._duplicates = Duplicates()
        self._found: dict[tuple[int, Phase], Facts] = {}
        self._removed: dict[tuple[str, str], tuple[int, Facts]] = {}
        """File and line -> when it was removed, and by which phase, until it is written again."""
        self._written: dict[tuple[str, str], int] = {}
        """File and line -> step at which it was last written."""
        self._progress = list(progress(records))

    def read(self) -> dict[tuple[int, Phase], Facts]:
        last_action = None
        for record in self._records:
            if record.log:
                self._phase(record, "log", record.log, last_action)
            for op in record.maintained:
                self._by_hook(op, record.step)
            if consulting := consulted(record.plan):
                self._phase(record, "plan", consulting, last_action)
            last_action = record.action
        return self._found

    def _soon(self, step: int) -> int | None:
        """The first step within the horizon of this one that makes progress."""
        at = bisect_left(self._progress, step)
        first = self._progress[at] if at < len(self._progress) else None
        return first if first is not None and first < step + self._horizon else None

    def _phase(self, record: StepRecord, phase: Phase, turns: tuple[Turn, ...], last_action: str | None) -> None:
        facts = Facts(record.step, phase)
        facts.turned = last_action is not None and record.action != last_action
        facts.progress = self._soon(record.step)
        facts.left = self._records[-1].step - record.step
        said(facts, turns, self._layout.operations)
        self._found[record.step, phase] = facts
        for turn in turns:
            for op in turn.ops:
                if op.by:
                    self._by_hook(op, record.step)
                elif op.ok:
                    self._done(op, facts)

    def _by_hook(self, op: Executed, step: int) -> None:
        """What a hook asked for changes files, and is nobody's merit."""
        if not op.ok:
            return
        if op.name in WRITES:
            self._entries.write(op, None, step)
        elif op.name == "DELETE":
            self._entries.delete(op, step)
        if op.name in ("DELETE", "WRITE"):
            self._duplicates.forget(op, step)

    def _done(self, op: Executed, facts: Facts) -> None:
        if op.name in WRITES:
            self._wrote(op, facts)
        elif op.name == "DELETE":
            self._deleted(op, facts)
        elif is_read(op) and shows(op):
            for note in self._entries.shown(op):
                if (note.step, note.phase) != (facts.step, facts.phase):
                    note.read = facts.step if note.read is None else note.read
                    note.helped = note.helped or facts.progress is not None

    def _wrote(self, op: Executed, facts: Facts) -> None:
        replaces = op.name != "APPEND" and self._entries.holds(op)
        note = None
        if self._duplicates.seen(op, facts.step):
            facts.duplicates += 1
        else:
            facts.updates += replaces
            note = Note(facts.step, facts.phase, self._layout.is_pinned(op.file))
            facts.notes.append(note)
        for line in self._entries.write(op, note, facts.step):
            self._written[op.file, line] = facts.step
            then, by = self._removed.pop((op.file, line), (0, None))
            if by is not None and facts.step - then < self._horizon:
                by.deletions -= 1

    def _deleted(self, op: Executed, facts: Facts) -> None:
        lines = self._entries.named(op)
        if any(self._written.get((op.file, line), -1) < facts.step for line in lines):
            facts.deletions += 1
            self._removed[op.file, lines[0]] = (facts.step, facts)
        self._entries.delete(op, facts.step)
        self._duplicates.forget(op, facts.step)
