"""Which examples are learned in which forward pass of which step: all of it known before the first.

Nearly all of a prompt is its system message, and that is the same in most examples. So a pass takes examples of one
system message and about one length: what they share is computed once (`specialist.train.shared`), and little is
filled up. A step is made of passes drawn at random.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from specialist.train.tokens import Tokenised

Pass = tuple[int, ...]
"""Indexes of the examples of one forward pass on one device; not empty."""

LEAST_SHARED = 32
"""Tokens that examples must share for a pass to compute them apart."""

WINDOW = 4
"""Steps' worth of examples that are sorted by length together."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What of an example decides which others it goes well with.

    Attributes:
        family: the same for examples that share their beginning.
        shared: tokens of that beginning; 0 when computing it apart is not worth while.
        tokens: in all.
    """

    family: int
    shared: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """A training run's passes.

    Attributes:
        steps: of each step its passes, those of the devices side by side: slot by slot, device by device.
        devices: how many take part.
        examples: of each step, how many.
        tokens: of each step, tokens of its examples, prompt and target.
        computed: of each step, tokens that its passes compute, filling included.
        largest: the most tokens that a pass computes.
    """

    steps: tuple[tuple[Pass, ...], ...]
    devices: int
    examples: tuple[int, ...]
    tokens: tuple[int, ...]
    computed: tuple[int, ...]
    largest: int

    @property
    def slots(self) -> int:
        """Passes of one step on one device."""
        return len(self.steps[0]) // self.devices


def schedule(
    examples: Sequence[Tokenised],
    *,
    epochs: float,
    batch: int,
    slots: int,
    devices: int,
    seed: int,
    sharing: bool = True,
) -> Schedule:
    """Divide examples into passes.

    Args:
        examples: all of them; at least one.
        epochs: how often each is seen; the last step is filled up with some more.
        batch: examples of a pass; fewer where no more are left.
        slots: passes of one step on one device.
        devices: how many share a step.
        seed: decides the order.
        sharing: whether passes compute what their examples share once.
    """
    shapes = shapes_of(examples, sharing)
    width = slots * devices
    drawn: list[Pass] = []
    rng = random.Random(seed)
    epoch = _epoch(shapes, batch, width, rng)
    count = max(1, math.ceil(epochs * len(epoch) / width - 1e-9))
    while len(drawn) < count * width:
        drawn += epoch
        epoch = _epoch(shapes, batch, width, rng)
    costs = {one: cost([shapes[i] for i in one]) for one in drawn}
    # Devices side by side should have about the same to do.
    steps = tuple(
        tuple(sorted(drawn[start : start + width], key=lambda one: (-costs[one], one)))
        for start in range(0, count * width, width)
    )
    return Schedule(
        steps,
        devices,
        examples=tuple(sum(map(len, step)) for step in steps),
        tokens=tuple(sum(shapes[i].tokens for one in step for i in one) for step in steps),
        computed=tuple(sum(costs[one] for one in step) for step in steps),
        largest=max(costs[one] for step in steps for one in step),
    )


def shapes_of(examples: Sequence[Tokenised], sharing: bool = True) -> list[Shape]:
    """The shapes of examples; examples of one system message are a family."""
    if not sharing:
        return [Shape(0, 0, len(example)) for example in examples]
    families: dict[str, list[Tokenised]] = defaultdict(list)
    for example in examples:
        families[example.system].append(example)
    begins = {system: common([example.prompt for example in members]) for system, members in families.items()}
    number = {system: i for i, system in enumerate(families)}
    return [Shape(number[example.system], begins[example.system], len(example)) for example in examples]


def common(prompts: Sequence[tuple[int, ...]]) -> int:
    """How many tokens prompts have in common at their beginning, if it is worth while; else 0.

    The last token of a prompt does not count: from it the first token of a target is learned.
    """
    first, last = min(prompts), max(prompts)
    same = next((i for i, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    same = min(same, min(map(len, prompts)) - 1)
    return same if same >= LEAST_SHARED else 0


def cost(shapes: Sequence[Shape]) -> int:
    """Tokens that a pass of these computes: what they share once, and the rest of each as long as the longest one."""
    alike = len(shapes) > 1 and len({shape.family for shape in shapes}) == 1
    shared = shapes[0].shared if alike else 0
    return shared + len(shapes) * (max(shape.tokens for shape in shapes) - shared)


def together(chosen: Sequence[int], shapes: Sequence[Shape], batch: int) -> list[Pass]:
    """Divide examples into passes of `batch`, of one family and about one length where that can be.

    The families' remainders make up the last passes.
    """
    members: dict[int, list[int]] = defaultdict(list)
    for i in sorted(chosen, key=lambda i: (shapes[i].tokens, i)):
        members[shapes[i].family].append(i)
    passes: list[Pass] = []
    rest: list[int] = []
    for family in members.values():
        whole = len(family) - len(family) % batch
        passes += [tuple(family[start : start + batch]) for start in range(0, whole, batch)]
        rest += family[whole:]
    return passes + [tuple(rest[start : start + batch]) for start in range(0, len(rest), batch)]


def _epoch(shapes: Sequence[Shape], batch: int, width: int, rng: random.Random) -> list[Pass]:
    """Passes that see every example once, in random order."""
    members: dict[int, list[int]] = defaultdict(list)
    for i in rng.sample(range(len(shapes)), len(shapes)):
        members[shapes[i].family].append(i)
    # Sorted by length within windows only: which examples meet in a pass differs from epoch to epoch.
    window = WINDOW * batch * width
    passes: list[Pass] = []
    rest: list[int] = []
    for family in members.values():
        whole = len(family) - len(family) % batch
        for start in range(0, whole, window):
            passes += together(family[start : min(start + window, whole)], shapes, batch)
        rest += family[whole:]
    passes += together(rest, shapes, batch)
    return rng.sample(passes, len(passes))
