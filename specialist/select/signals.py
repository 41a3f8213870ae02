"""What counts for a candidate and against it: a row each, with a formula over its `Facts`.

Weights are in ``weights.toml``. The amount of a signal is at least 0; that it counts against is said by a
negative weight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from specialist.select.facts import Facts
from specialist.select.weights import Limits

Signal = Callable[[Facts, Limits], float]


def read_back(facts: Facts, limits: Limits) -> float:
    """Notes that a later phase read back / notes that somebody would have to read. 0 without such notes."""
    notes = [note for note in facts.notes if note.read is not None or not note.pinned]
    return sum(note.read is not None for note in notes) / len(notes) if notes else 0.0


def read_before_progress(facts: Facts, limits: Limits) -> float:
    """Notes that a later phase read back, with progress within the horizon / notes as in `read_back`."""
    notes = [note for note in facts.notes if note.read is not None or not note.pinned]
    return sum(note.helped for note in notes) / len(notes) if notes else 0.0


def pinned_before_progress(facts: Facts, limits: Limits) -> float:
    """Notes in pinned files that stood, and so were shown, when progress was made within the horizon / such notes.

    Nobody chose to read them, so this is less than a read.
    """
    made = facts.progress
    notes = [note for note in facts.notes if note.pinned]
    stood = [made is not None and (note.ended is None or note.ended > made) for note in notes]
    return sum(stood) / len(notes) if notes else 0.0


def never_read(facts: Facts, limits: Limits) -> float:
    """Notes that nobody read back or is shown in every prompt / notes.

    A note counts when it was replaced or removed, or when at least `patience` steps were played after it.
    """
    wasted = [
        note.read is None and not note.pinned and _had_its_time(note.ended, facts, limits) for note in facts.notes
    ]
    return sum(wasted) / len(wasted) if wasted else 0.0


def _had_its_time(ended: int | None, facts: Facts, limits: Limits) -> bool:
    return ended is not None or facts.left >= limits.patience


def updates(facts: Facts, limits: Limits) -> float:
    """Entries replaced with another value: the number."""
    return facts.updates


def outdated_removed(facts: Facts, limits: Limits) -> float:
    """Entries of earlier steps removed and not written again within the horizon: the number."""
    return facts.deletions


def search_changed_plan(facts: Facts, limits: Limits) -> float:
    """1 when a search of PLAN found something and another action was played than in the step before."""
    return float(facts.phase == "plan" and facts.finding > 0 and facts.turned)


def reads_before_progress(facts: Facts, limits: Limits) -> float:
    """1 when reads of PLAN showed something, with progress within the horizon."""
    return float(facts.phase == "plan" and facts.shown > 0 and facts.progress is not None)


def valid(facts: Facts, limits: Limits) -> float:
    """1 when operations were run and nothing was refused or not understood."""
    return float(facts.operations > 0 and not facts.errors and not facts.refused)


def concise(facts: Facts, limits: Limits) -> float:
    """1 - characters outside operations / `talk`, at least 0, in tenths."""
    return max(0.0, round(1 - facts.talk / limits.talk, 1))


def done(facts: Facts, limits: Limits) -> float:
    """1 when LOG was ended with DONE."""
    return float(facts.done)


def errors(facts: Facts, limits: Limits) -> float:
    """Lines of error: the number."""
    return facts.errors


def refused(facts: Facts, limits: Limits) -> float:
    """Refused operations: the number."""
    return facts.refused


def duplicates(facts: Facts, limits: Limits) -> float:
    """Writes that said again what the file was told before: the number."""
    return facts.duplicates


def empty_searches(facts: Facts, limits: Limits) -> float:
    """Searches that found no line: the number."""
    return facts.empty


def repeated_reads(facts: Facts, limits: Limits) -> float:
    """Reads asked in the same phase before: the number."""
    return facts.repeated


def made_up(facts: Facts, limits: Limits) -> float:
    """1 when a reply imitates results or an observation."""
    return float(facts.imitated)


def idle(facts: Facts, limits: Limits) -> float:
    """1 when no operation was run: there is nothing to learn."""
    return float(facts.operations == 0)


SIGNALS: Mapping[str, Signal] = {
    signal.__name__: signal
    for signal in (
        read_back,
        read_before_progress,
        pinned_before_progress,
        updates,
        outdated_removed,
        search_changed_plan,
        reads_before_progress,
        valid,
        concise,
        done,
        errors,
        refused,
        duplicates,
        empty_searches,
        repeated_reads,
        never_read,
        made_up,
        idle,
    )
}
"""Code -> formula. ``weights.toml`` has a weight for each of them, and for nothing else."""
