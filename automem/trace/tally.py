"""What the steps of an episode come to, summed up as it is played, or again from its trace or the trace's index."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson
import zstandard

from automem.duplicates import Change
from automem.metrics import Behaviour
from automem.records import StepRecord

_LARGEST = 1 << 26
"""Bytes that a packed tally may unpack to."""


@dataclass
class Tally:
    """Sums over steps, told in order.

    Attributes:
        behaviour: how the agent behaved.
        reached_at: achievement -> step whose action reached it.
        reward: sum of rewards.
        model: that made the first call; empty before it.
    """

    behaviour: Behaviour = field(default_factory=Behaviour)
    reached_at: dict[str, int] = field(default_factory=dict)
    reward: float = 0.0
    model: str = ""
    _packed: int = 0
    """Steps of which `changes` of the behaviour have been packed."""

    @property
    def steps(self) -> int:
        """How many were told."""
        return self.behaviour.counts.steps

    def add(self, record: StepRecord, next_observation: str) -> None:
        """Take in one step; `next_observation` is what its action led to."""
        self.behaviour.add(record, next_observation)
        self.reward += record.reward
        for name, count in record.achievements.items():
            if count:
                self.reached_at.setdefault(name, record.step)
        if not self.model:
            self.model = next((turn.model for turn in (*record.log, *record.plan)), "")

    def pack(self, since: int) -> bytes:
        """All that is needed to go on from here, but for what came before step `since`, which was packed before.

        What is told here is forgotten here: it cannot be packed again.
        """
        said = {
            "since": max(since, self._packed),
            "steps": self.steps,
            "behaviour": self.behaviour.state(),
            "reached_at": self.reached_at,
            "reward": self.reward,
            "model": self.model,
            "changes": [list(change) for step, change in self.behaviour.changes if step >= since],
        }
        self.behaviour.changes.clear()
        self._packed = self.steps
        return zstandard.ZstdCompressor(level=3).compress(orjson.dumps(said))


def unpacked(packed: Iterable[bytes]) -> Tally:
    """The tally that was packed piece by piece, as far as the pieces are whole and continue each other."""
    steps, state = 0, None
    changes: list[Change] = []
    try:
        for data in packed:
            if zstandard.frame_content_size(data) > _LARGEST:
                break
            said = orjson.loads(zstandard.ZstdDecompressor().decompress(data))
            if said["since"] != steps:
                break
            changes += [Change(*change) for change in said["changes"]]
            steps, state = said["steps"], said
        if state is None:
            return Tally()
        behaviour = Behaviour.restored(state["behaviour"], changes)
        return Tally(behaviour, state["reached_at"], state["reward"], state["model"], steps)
    except (zstandard.ZstdError, ValueError, KeyError, TypeError):
        return Tally()
