"""What an episode's behaviour adds up to, counted the same way live and from its trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

from automem.duplicates import Duplicates
from automem.records import Executed, StepRecord

WRITES = frozenset({"APPEND", "WRITE", "UPSERT", "UPSERT_MAP"})
"""Operations that put content into the memory folder."""

SEARCHES = frozenset({"SEARCH"})


@dataclass
class Counts:
    """Sums over the steps of one episode.

    Attributes:
        steps: steps played.
        stuck: steps whose action left the observation as it was.
        invalid: actions written that the game does not have.
        fallback: steps at which the model committed no action.
        turns: calls of a model.
        errors: lines of error that the model was told.
        writes, duplicate_writes: write operations of the model that were carried out; those that wrote the same
            content into the same file again, exactly or but for step numbers and white space (`Duplicates`).
        searches, empty_searches: searches that were carried out; those that found no line.
        refused: operations that the memory folder refused; they count as nothing else.
        truncated_reads: results that were cut to the scaffold's limit.
        added_bytes: growth of the memory folder.
        prompt_tokens, completion_tokens, cached_tokens: as the server counted them.
        cost: USD, of the calls whose price is known.
        model_seconds: summed latency of calls.
        hook_ops: memory operations that hooks asked for; of the counts above they are in `refused`,
            `added_bytes` and `operations` only.
        hook_errors: calls of hooks that failed, or answered what could not be used.
        repaired, doubted: actions that a hook changed; that it asked the model to think of again.
        operations: how often each operation was run.
    """

    steps: int = 0
    stuck: int = 0
    invalid: int = 0
    fallback: int = 0
    turns: int = 0
    errors: int = 0
    writes: int = 0
    duplicate_writes: int = 0
    searches: int = 0
    empty_searches: int = 0
    refused: int = 0
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

    def add(self, record: StepRecord, next_observation: str, duplicates: Duplicates) -> None:
        """Count one step.

        Args:
            record: the step.
            next_observation: what its action led to.
            duplicates: the episode's, told of every step in order.
        """
        self.steps += 1
        self.stuck += record.observation == next_observation
        self.invalid += record.invalid
        self.fallback += record.fallback
        for turn in (*record.log, *record.plan):
            self.turns += 1
            self.errors += len(turn.errors)
            self.prompt_tokens += turn.prompt_tokens
            self.completion_tokens += turn.completion_tokens
            self.cached_tokens += turn.cached_tokens
            self.cost += turn.cost or 0.0
            self.model_seconds += turn.seconds
            for op in turn.ops:
                self._add_operation(op, duplicates)
        for op in record.maintained:
            self._add_operation(op, duplicates)
        for event in record.hooks:
            self.hook_errors += event.kind in ("error", "lost", "off")
            self.repaired += event.kind == "repaired"
            self.doubted += event.kind == "again"

    def _add_operation(self, op: Executed, duplicates: Duplicates) -> None:
        self.operations[op.name] = self.operations.get(op.name, 0) + 1
        self.hook_ops += bool(op.by)
        if not op.ok:
            self.refused += 1
            return
        self.added_bytes += op.added
        if op.by:
            return
        self.truncated_reads += op.truncated
        if op.name in WRITES:
            self.writes += 1
            self.duplicate_writes += duplicates.seen(op)
        elif op.name == "DELETE":
            duplicates.seen(op)
        elif op.name in SEARCHES:
            self.searches += 1
            self.empty_searches += op.found == 0

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


def counts_from(data: Mapping) -> Counts:
    """The counts that `Counts.as_dict` gave."""
    return Counts(**data)


def rates(counts: Counts) -> dict[str, float | None]:
    """What people compare: shares in [0, 1] and means per step. None where there is nothing to divide by."""

    def share(part: float, whole: float) -> float | None:
        return round(part / whole, 6) if whole else None

    return {
        "stuck_share": share(counts.stuck, counts.steps),
        "invalid_per_step": share(counts.invalid, counts.steps),
        "fallback_share": share(counts.fallback, counts.steps),
        "duplicate_write_share": share(counts.duplicate_writes, counts.writes),
        "empty_search_share": share(counts.empty_searches, counts.searches),
        "added_bytes_per_step": share(counts.added_bytes, counts.steps),
        "turns_per_step": share(counts.turns, counts.steps),
        "prompt_tokens_per_step": share(counts.prompt_tokens, counts.steps),
        "completion_tokens_per_step": share(counts.completion_tokens, counts.steps),
        "cached_share": share(counts.cached_tokens, counts.prompt_tokens),
    }
