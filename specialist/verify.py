"""Proof that a dataset is what it says: no target breaks a rule, and every text stands so in the traces."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from automem import runs as played
from automem.errors import UserError
from automem.models.protocol import Message
from automem.runs import Run
from automem.trace import RunTrace
from automem.trace.episode import EpisodeTrace, NoSuchStep
from specialist.candidate import Candidate, candidates_of
from specialist.clean import joined, violations
from specialist.example import Dataset, Source

SHOWN = 5
"""Examples that an error names."""


def check_rules(dataset: Dataset) -> None:
    """Raise `UserError` that names examples whose target `specialist.clean` would not let through.

    Training begins with this, whoever made the dataset.
    """
    operations = dataset.facts.operations
    broken = [
        f"{example.source}: {line}"
        for example in dataset
        for line in violations(example.target, example.source.phase, operations.get(example.source.phase))[:1]
    ]
    _refuse(dataset, broken, "cannot be learnt from; prepare the dataset again")


def check_verbatim(dataset: Dataset, runs: Path | None = None) -> None:
    """Raise `UserError` that names examples whose target or prompt is not what the trace holds.

    Args:
        dataset: every example of it is checked.
        runs: the folder that the names of its runs are relative to; `automem.runs.runs_folder` when not given.
    """
    wanted: dict[tuple[str, str, int], list[_Claim]] = defaultdict(list)
    for example in dataset:
        source = example.source
        wanted[source.run, source.task, source.seed].append(_Claim(source, example.target, _digest(example.prompt)))
    opened: dict[str, RunTrace] = {}
    wrong: list[str] = []
    for (run, task, seed), claims in wanted.items():
        if run not in opened:
            opened[run] = RunTrace(run_of(runs, run))
        (episode,) = opened[run].select(task, seed)
        wrong += [f"{claim.source}: {said}" for claim in claims for said in claim.wrong(_candidate(claim, episode))]
    _refuse(dataset, wrong, "not as the traces have it; prepare the dataset again")


def run_of(runs: Path | None, name: str) -> Run:
    """The run of this name in a folder of runs, or in the usual one. Raises `UserError`."""
    return played.load(name if runs is None else str((runs / name).absolute()))


@dataclass(frozen=True, slots=True)
class _Claim:
    source: Source
    target: str
    prompt: bytes

    def wrong(self, candidate: Candidate | None) -> Iterator[str]:
        if candidate is None or self.source.turn >= len(candidate.turns):
            yield "there is no such turn"
            return
        if joined(candidate.turns[self.source.turn].text, self.source.kept) != self.target:
            yield "the target was not written there"
        if _digest(tuple(candidate.messages(self.source.turn))) != self.prompt:
            yield "the prompt is not what the model was sent"


def _candidate(claim: _Claim, episode: EpisodeTrace) -> Candidate | None:
    source = claim.source
    try:
        of_step = list(candidates_of(source.run, episode, source.step))
    except NoSuchStep:
        return None
    return next((candidate for candidate in of_step if candidate.place.phase == source.phase), None)


def _digest(prompt: tuple[Message, ...]) -> bytes:
    return hashlib.sha256(orjson.dumps([[message["role"], message["content"]] for message in prompt])).digest()


def _refuse(dataset: Dataset, wrong: list[str], what: str) -> None:
    if not wrong:
        return
    more = [f"and {len(wrong) - SHOWN} more"] if len(wrong) > SHOWN else []
    listed = "\n".join(f"  {line}" for line in [*wrong[:SHOWN], *more])
    raise UserError(f"{dataset.folder}: {len(wrong)} problem(s), {what}:\n{listed}")
