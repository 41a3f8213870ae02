"""What may become a training example: a LOG phase, or the consulting part of a PLAN phase, as the model wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from automem.models.protocol import Message
from automem.records import Phase, StepRecord, Turn, messages
from automem.trace.episode import EpisodeTrace


@dataclass(frozen=True, slots=True)
class Place:
    """Where in which trace a candidate stands.

    Attributes:
        run: the run's name, relative to the folder of runs.
        task, seed: the episode.
        step: from 0.
        phase: "log" or "plan".
    """

    run: str
    task: str
    seed: int
    step: int
    phase: Phase

    @property
    def episode(self) -> tuple[str, str, int]:
        """What it shares with all candidates of its episode."""
        return self.run, self.task, self.seed

    @property
    def within(self) -> str:
        """Where it stands, whatever the run is called."""
        return f"{self.task}/seed-{self.seed}/{self.step}/{self.phase}"

    def __str__(self) -> str:
        return f"{self.run}/{self.within}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One phase's memory work, verbatim.

    Attributes:
        place: where it stands.
        turns: the turns of the phase; those of a PLAN phase only as far as memory was consulted: the last one
            may commit an action beside its reads, which `specialist.clean` takes away.
        record: the step that it belongs to.
        system: the episode's system message.
        last_action: the action of the step before; None at step 0.
    """

    place: Place
    turns: tuple[Turn, ...]
    record: StepRecord
    system: str
    last_action: str | None

    def messages(self, turn: int) -> list[Message]:
        """What the model was sent before it wrote this turn, to the character."""
        return messages(self.record, self.system, self.place.phase, turn, self.last_action)


def candidates(run: str, episode: EpisodeTrace) -> Iterator[Candidate]:
    """All candidates of an episode, in the order in which they were written."""
    system, last_action = "", None
    for record in episode.steps():
        system = record.system or system
        yield from _of_step(run, episode, record, system, last_action)
        last_action = record.action


def candidates_of(run: str, episode: EpisodeTrace, step: int) -> Iterator[Candidate]:
    """The candidates of one step, without reading the others. Raises `automem.trace.episode.NoSuchStep`."""
    record = episode.step(step)
    system = record.system or episode.step(0).system or ""
    yield from _of_step(run, episode, record, system, episode.step(step - 1).action if step else None)


def _of_step(
    run: str, episode: EpisodeTrace, record: StepRecord, system: str, last_action: str | None
) -> Iterator[Candidate]:
    def of(phase: Phase, turns: tuple[Turn, ...]) -> Candidate:
        return Candidate(Place(run, episode.task, episode.seed, record.step, phase), turns, record, system, last_action)

    if record.log:
        yield of("log", record.log)
    consulting = consulted(record.plan)
    if consulting:
        yield of("plan", consulting)


def consulted(plan: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """The turns of a PLAN phase up to the last one that ran an operation; empty when none did."""
    last = max((i for i, turn in enumerate(plan) if any(not op.by for op in turn.ops)), default=-1)
    return plan[: last + 1]


def as_json(candidate: Candidate) -> dict[str, Any]:
    """What a person or a judge is shown of it: its place, messages and turns."""
    return {
        "place": str(candidate.place),
        "messages": candidate.messages(0),
        "turns": [{"text": turn.text, "errors": list(turn.errors)} for turn in candidate.turns],
    }
