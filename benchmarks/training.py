"""How little of training is wasted: ``python -m benchmarks.training``.

Trains the embedded model on examples of a real game of `scripted`, the same ones in three ways: random batches that
are filled up to their longest example, batches of about one length, and passes that compute what their examples share
once, which is how a specialist is trained. All three are one trainer with other batches, and learn the same from the
same tokens. Prints tokens of examples, prompts and targets, that each trains in a second.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from automem.models.cores import multiply_bfloat16
from automem.trace.episode import EpisodeTrace
from specialist import base_model, recipe
from specialist.candidate import Candidate, candidates
from specialist.example import Example, Source
from specialist.train import curve
from specialist.train.schedule import Pass, Schedule, cost, shapes_of, together
from specialist.train.spec import Setup
from specialist.train.tokens import Tokenised, Tokens
from specialist.train.work import Material, Work

SCAFFOLDS = ("crafter/v0",)
STEPS = 40
BATCH, PASSES = 3, 2


@dataclass(frozen=True)
class Way:
    """One way to put examples together."""

    name: str
    passes: Sequence[Pass]
    sharing: bool


def played(folder: Path, scaffold: str) -> list[Example]:
    """Examples of one short game: the last turn of every phase in which memory was worked on."""
    command = [sys.executable, "-m", "automem.cli", "eval", "crafter", "--model", "scripted", "--scaffold", scaffold]
    subprocess.run(
        [*command, "--seeds", "901", "--steps", str(STEPS), "--run", "one"],
        env=os.environ | {"AUTOMEM_RUNS": str(folder)},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (episode,) = folder.glob("one/episodes/*/*/")
    return [_example(candidate) for candidate in candidates("one", EpisodeTrace(episode))]


def _example(candidate: Candidate) -> Example:
    place, turn = candidate.place, len(candidate.turns) - 1
    text = candidate.turns[turn].text
    source = Source(
        run=place.run,
        task=place.task,
        seed=place.seed,
        step=place.step,
        phase=place.phase,
        turn=turn,
        kept=((0, len(text)),),
    )
    return Example(prompt=tuple(candidate.messages(turn)), target=text, source=source)


def ways(examples: Sequence[Tokenised]) -> list[Way]:
    """The three ways to put these examples together."""
    order = list(range(len(examples)))
    random.Random(0).shuffle(order)
    mixed = [tuple(order[start : start + BATCH]) for start in range(0, len(order), BATCH)]
    return [
        Way("random, filled up to the longest", mixed, sharing=False),
        Way("of one length", together(order, shapes_of(examples, sharing=False), BATCH), sharing=False),
        Way("what is shared once, as we train", together(order, shapes_of(examples), BATCH), sharing=True),
    ]


def tokens_per_second(base: Path, given: Material, setup: Setup, way: Way) -> float:
    """Train on every example once, in this way."""
    from specialist.train.trainer import SpecialistTrainer

    chosen = recipe.load("crafter-cpu")
    shapes = shapes_of(given.train.examples, way.sharing)
    tokens = tuple(sum(shapes[i].tokens for i in one) for one in way.passes)
    costs = tuple(cost([shapes[i] for i in one]) for one in way.passes)
    steps = tuple((one,) for one in way.passes)
    schedule = Schedule(steps, 1, tuple(map(len, way.passes)), tokens, costs, max(costs))
    planned = Work(given, way.sharing, (), schedule, measured=(), measure_after=(), save_after=())
    with tempfile.TemporaryDirectory() as folder:
        SpecialistTrainer(Path(folder), base, chosen, setup, planned, resuming=False).train()
        last = curve.rows(Path(folder))[-1]
    return last.tokens / last.seconds


def main() -> None:
    """Measure and print the table."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    base = base_model.folder("smollm2")
    tokens = Tokens(base)
    dtype: Literal["float32", "bfloat16"] = "bfloat16" if multiply_bfloat16() else "float32"
    setup = Setup(device="cpu", processes=1, dtype=dtype, batch=BATCH, checkpointing=False)
    for scaffold in SCAFFOLDS:
        with tempfile.TemporaryDirectory() as folder:
            found = random.Random(0).sample(played(Path(folder), scaffold), BATCH * PASSES)
        given = Material(tokens.padding, True, tokens.select(found, 1 << 14), tokens.select([], 1 << 14))
        lengths = [len(one) for one in given.train.examples]
        print(
            f"{scaffold}: {len(lengths)} examples of {min(lengths)} to {max(lengths)} tokens, {BATCH} a pass, {dtype}"
        )
        first = None
        for way in ways(given.train.examples):
            speed = tokens_per_second(base, given, setup, way)
            first = first or speed
            print(f"  {way.name:34} {speed:8,.0f} tokens/s {speed / first:6.2f} times", flush=True)


if __name__ == "__main__":
    main()
