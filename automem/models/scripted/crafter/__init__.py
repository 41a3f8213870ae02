"""The scripted player of Crafter."""

from __future__ import annotations

from automem.models.scripted.crafter.notes import write_notes
from automem.models.scripted.crafter.plan import choose
from automem.models.scripted.crafter.recall import read_memory
from automem.models.scripted.crafter.recollect import believe
from automem.models.scripted.crafter.shelves import shelves
from automem.models.scripted.reading import Call, write_ops

DONE = "<|DONE|><|END|>"


def play(call: Call) -> str:
    """The reply to one call: reads that are still wanted, else what is written down or the action."""
    memory, wanted = read_memory(call)
    if wanted:
        return write_ops(wanted)
    if call.phase == "plan":
        return f"<|ACTION|>{choose(believe(call, memory))}<|END|>"
    reckoned = any(shelf.reckoned for shelf in shelves(call.briefing))
    operations = write_notes(call, memory, believe(call, memory) if reckoned else None)
    return "\n".join(filter(None, [write_ops(operations), DONE]))
