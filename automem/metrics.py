"""What an episode's behaviour adds up to, counted the same way as it is played and from its trace.

`Behaviour` looks at the steps of one episode in order; `Counts` are its sums, which can be added up over
episodes; `rates` are what people compare.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from itertools import islice
from typing import Any

from automem.duplicates import Change, Duplicates, forgotten, written
from automem.ops import OPERATIONS
from automem.records import Executed, StepRecord, Turn

WRITES = frozenset({"APPEND", "WRITE", "UPSERT", "UPSERT_MAP"})
"""Operations that put content into the memory folder."""

SEARCHES = frozenset({"SEARCH"})

RECENT = 8
"""States that the agent is said to oscillate between when it returns to one of them and leaves it again."""

_CLOCK = re.compile(r"\bT:\d+")
"""NetHack's turn counter: it goes on whatever happens."""


@dataclass
class Counts:
    """Sums over the steps of one episode, or of several.

    Let o(t) be the observation before the action of step t, without the game's clock.

    Attributes:
        steps: steps played.
        stuck: steps that changed nothing: o(t+1) = o(t).
        oscillating: steps that left a state to which the agent had just returned: o(t+1) != o(t), and
            o(t) = o(s) for some s in [t - RECENT, t - 2] with o(t) != o(t - 1).
        invalid: actions written that the game does not have.
        fallback: steps at which the model committed no action.
        turns: calls of a model; `log_turns` of them in LOG, `plan_turns` in PLAN.
        errors: lines of error that the model was told.
        memory_turns, valid_memory_turns: turns that were to use memory: those of LOG, and those of PLAN that wrote
            operations (with a specialist: its turns); those of them that wrote at least one operation, of which every
            one was carried out. DONE counts as one in LOG.
        writes, duplicate_writes: write operations of the model that were carried out; those that wrote the same
            content into the same file again, exactly or but for step numbers and white space (`Duplicates`).
        added_entries, updated_entries, deleted_entries: entries of memory files that such operations made (APPEND,
            a new key, a WRITE to a file to which nothing was written yet), replaced (a key or a file that was), or
            removed (DELETE).
        written_chars: characters of content in those writes.
        searches, empty_searches: searches that were carried out; those that found no line.
        refused: operations that the memory folder refused; they count as nothing else. `refused_writes` of them would
            have changed it.
        truncated_reads: results that were cut to the scaffold's limit: what was cut off, no later turn could use.
        added_bytes: growth of the memory folder.
        prompt_tokens, completion_tokens, cached_tokens: as the server counted them.
        cost: USD, of the calls whose price is known.
        model_seconds: summed latency of calls.
        hook_ops: memory operations that hooks asked for; of the counts above they are in `refused`, `refused_writes`,
            `added_bytes` and `operations` only.
        hook_errors: calls of hooks that failed, or answered what could not be used.
        repaired, doubted: actions that a hook changed; that it asked the model to think of again.
        operations: how often each operation was run.
    """

    steps: int = 0
    stuck: int = 0
    oscillating: int = 0
    invalid: int = 0
    fallback: int = 0
    turns: int = 0
    log_turns: int = 0
    plan_turns: int = 0
    errors: int = 0
    memory_turns: int = 0
    valid_memory_turns: int = 0
    writes: int = 0
    duplicate_writes: int = 0
    added_entries: int = 0
    updated_entries: int = 0
    deleted_entries: int = 0
    written_chars: int = 0
    searches: int = 0
    empty_searches: int = 0
    refused: int = 0
    refused_writes: int = 0
    truncated_reads: int = 0
    added_bytes: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    model_seconds: float = 0.0
    hook_ops: int = 0
    hook_errors: int = 0
    repaired: int = 0
    doubted: int = 0
    operations: dict[str, int] = field(default_factory=dict)

    def merged(self, other: Counts) -> Counts:
        """The sum of two."""
        total = Counts()
        for name in (f.name for f in fields(Counts) if f.name != "operations"):
            setattr(total, name, getattr(self, name) + getattr(other, name))
        names = sorted({*self.operations, *other.operations})
        total.operations = {n: self.operations.get(n, 0) + other.operations.get(n, 0) for n in names}
        return total

    def as_dict(self) -> dict:
        """Plain values, operations in name order."""
        return asdict(self) | {"operations": dict(sorted(self.operations.items()))}


class Behaviour:
    """Counts the steps of one episode, told of them in order.

    Attributes:
        counts: the sums.
        changes: how many steps had been counted before, and the change, for every write and removal since this list
            was last emptied. With `state`, they say all that is needed to go on counting somewhere else.
    """

    def __init__(self) -> None:
        self.counts = Counts()
        self.changes: list[tuple[int, Change]] = []
        self._duplicates = Duplicates()
        self._states: deque[str] = deque(maxlen=RECENT)
        self._shown = ("", "")
        self._entries: dict[str, set[int]] = {}

    def state(self) -> dict[str, Any]:
        """The counts, and what else there is but for the changes, as plain values. Does not grow with the episode."""
        return {"counts": self.counts.as_dict(), "recent": list(self._states)}

    @classmethod
    def restored(cls, state: Mapping[str, Any], changes: Iterable[Change]) -> Behaviour:
        """As it was, from its state and all changes until then. Raises KeyError or TypeError."""
        behaviour = cls()
        behaviour.counts = counts_from(state["counts"])
        behaviour._states.extend(state["recent"])
        for change in changes:
            behaviour._duplicates.take(change)
            behaviour._enter(change)
        return behaviour

    def add(self, record: StepRecord, next_observation: str) -> None:
        """Count one step; `next_observation` is what its action led to."""
        counts = self.counts
        self._moved(record.observation, next_observation)
        counts.invalid += record.invalid
        counts.fallback += record.fallback
        counts.log_turns += len(record.log)
        counts.plan_turns += len(record.plan)
        for turn in record.log:
            self._add_turn(turn, record.step)
            self._add_memory_turn(turn, turn.ops or not turn.errors)
        for turn in record.plan:
            self._add_turn(turn, record.step)
        for turn in _consulting(record.plan):
            self._add_memory_turn(turn, turn.ops)
        for op in record.maintained:
            self._add_operation(op, record.step)
        for event in record.hooks:
            counts.hook_errors += event.kind in ("error", "lost", "off")
            counts.repaired += event.kind == "repaired"
            counts.doubted += event.kind == "again"
        counts.steps += 1

    def _moved(self, before: str, after: str) -> None:
        shown, without_clock = self._shown
        now = without_clock if before == shown else _timeless(before)
        then = _timeless(after)
        self._shown = (after, then)
        if now == then:
            self.counts.stuck += 1
        elif self._states and self._states[-1] != now:
            self.counts.oscillating += now in islice(self._states, max(len(self._states) - 1, 0))
        self._states.append(now)

    def _add_turn(self, turn: Turn, step: int) -> None:
        counts = self.counts
        counts.turns += 1
        counts.errors += len(turn.errors)
        counts.prompt_tokens += turn.prompt_tokens
        counts.completion_tokens += turn.completion_tokens
        counts.cached_tokens += turn.cached_tokens
        counts.cost += turn.cost or 0.0
        counts.model_seconds += turn.seconds
        for op in turn.ops:
            self._add_operation(op, step)

    def _add_memory_turn(self, turn: Turn, written: object) -> None:
        """Count a turn that was to use memory; `written` is true when it wrote operations."""
        self.counts.memory_turns += 1
        valid = not turn.errors and all(op.ok for op in turn.ops)
        self.counts.valid_memory_turns += bool(written) and valid

    def _add_operation(self, op: Executed, step: int) -> None:
        counts = self.counts
        counts.operations[op.name] = counts.operations.get(op.name, 0) + 1
        counts.hook_ops += bool(op.by)
        if not op.ok:
            counts.refused += 1
            counts.refused_writes += op.name in OPERATIONS and OPERATIONS[op.name].effect == "write"
            return
        counts.added_bytes += op.added
        if op.by:
            if op.name in ("DELETE", "WRITE"):
                self._take(forgotten(op, step))
            return
        counts.truncated_reads += op.truncated
        if op.name in WRITES:
            self._add_write(op, step)
        elif op.name == "DELETE":
            counts.deleted_entries += 1
            self._take(forgotten(op, step))
        elif op.name in SEARCHES:
            counts.searches += 1
            counts.empty_searches += op.found == 0

    def _add_write(self, op: Executed, step: int) -> None:
        counts = self.counts
        counts.writes += 1
        counts.written_chars += len(op.args[-1])
        duplicate, known = self._take(written(op, step))
        counts.duplicate_writes += duplicate or op.duplicate
        counts.updated_entries += known
        counts.added_entries += not known

    def _take(self, change: Change) -> tuple[bool, bool]:
        """Remember a change. Whether it is a duplicate, and whether the entry was there before."""
        self.changes.append((self.counts.steps, change))
        return self._duplicates.take(change), self._enter(change)

    def _enter(self, change: Change) -> bool:
        """Remember which entries there are now. Whether the changed one was there before."""
        kind, file, key, _ = change
        if kind == "FORGET":
            self._entries.pop(file, None)
            return False
        if kind == "DELETE":
            self._entries.get(file, set()).discard(key)
            return False
        keys = self._entries.setdefault(file, set())
        known = key in keys if key else kind == "WRITE" and bool(keys)
        if kind == "WRITE":
            keys.clear()
        keys.add(key)
        return known


def _consulting(plan: tuple[Turn, ...]) -> list[Turn]:
    """The turns of PLAN that were to use memory: a specialist's; without one, those that wrote operations."""
    told = [turn for turn in plan if turn.specialist]
    return told or [turn for turn in plan if turn.ops or any(not line.startswith("ACTION ") for line in turn.errors)]


def _timeless(observation: str) -> str:
    return _CLOCK.sub("", observation) if "T:" in observation else observation


def counts_from(data: Mapping) -> Counts:
    """The counts that `Counts.as_dict` gave."""
    return Counts(**data)


def rates(counts: Counts) -> dict[str, float | None]:
    """What people compare: shares in [0, 1] and means per step. None where there is nothing to divide by."""

    def share(part: float, whole: float) -> float | None:
        return round(part / whole, 6) if whole else None

    entries = counts.added_entries + counts.updated_entries + counts.deleted_entries
    return {
        "stuck_share": share(counts.stuck, counts.steps),
        "oscillating_share": share(counts.oscillating, counts.steps),
        "invalid_per_step": share(counts.invalid, counts.steps),
        "fallback_share": share(counts.fallback, counts.steps),
        "duplicate_write_share": share(counts.duplicate_writes, counts.writes),
        "empty_search_share": share(counts.empty_searches, counts.searches),
        "valid_turn_share": share(counts.valid_memory_turns, counts.memory_turns),
        "refused_per_step": share(counts.refused, counts.steps),
        "refused_writes_per_step": share(counts.refused_writes, counts.steps),
        "truncated_reads_per_step": share(counts.truncated_reads, counts.steps),
        "written_chars_per_step": share(counts.written_chars, counts.steps),
        "added_bytes_per_step": share(counts.added_bytes, counts.steps),
        "updated_share": share(counts.updated_entries + counts.deleted_entries, entries),
        "log_turns_per_step": share(counts.log_turns, counts.steps),
        "plan_turns_per_step": share(counts.plan_turns, counts.steps),
        "turns_per_step": share(counts.turns, counts.steps),
        "prompt_tokens_per_step": share(counts.prompt_tokens, counts.steps),
        "completion_tokens_per_step": share(counts.completion_tokens, counts.steps),
        "cached_share": share(counts.cached_tokens, counts.prompt_tokens),
        "seconds_per_step": share(counts.model_seconds, counts.steps),
    }
