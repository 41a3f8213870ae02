"""When two candidates teach the same: near-duplicates.

A candidate teaches that in this situation these operations are written. So what is compared is the observation
and, apart from it, the operations with their arguments; two candidates are as alike as the less alike of the two.
That is measured in words, numbers included, not in characters: lines of a log share their form, and "12 north" and
"13 north" are two of three words apart from each other only where little else is said. Step numbers do not count
(`automem.duplicates.bare`), nor the tags and what is said around operations, which all candidates share.

    alike(a, b) = 1 - (words to remove from one + words to remove from the other) / (words of both)

which is the normalised Indel similarity of their words in order.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist

from automem.duplicates import bare
from specialist.candidate import Candidate
from specialist.select.facts import own

_WORD = re.compile(r"-?\d+|[^\W\d_]+")
_FIRST, _SIGNS = 0x100, 0xD000 - 0x100
_ROUNDING = 1e-9


class Lesson(NamedTuple):
    """What a candidate teaches, a sign a word: short enough to keep for every candidate, and fast to compare.

    Attributes:
        operations: words of the operations.
        observation: words of the observation.
    """

    operations: str
    observation: str


def lesson(candidate: Candidate) -> Lesson:
    """What this candidate teaches. The same in every process."""
    step = candidate.place.step
    parts = [part for turn in candidate.turns for op in own(turn) for part in (op.name, *op.args)]
    return Lesson(_signs(bare("\n".join(parts), step)), _seen(candidate.record.observation, step))


@lru_cache(maxsize=2)
def _seen(observation: str, step: int) -> str:
    """Signs of an observation; LOG and PLAN of a step have the same."""
    return _signs(bare(observation, step))


def _signs(text: str) -> str:
    return "".join([_sign(word) for word in _WORD.findall(text)])


@lru_cache(maxsize=1 << 16)
def _sign(word: str) -> str:
    """A sign for a word. Two words in some 50,000 share theirs, which makes texts more alike by a word at most."""
    return chr(_FIRST + zlib.crc32(word.lower().encode(errors="surrogatepass")) % _SIGNS)


class Taken:
    """The lessons that were taken, each with who teaches it."""

    def __init__(self, similar: float) -> None:
        """Args: similar: lessons at least this alike, in (0, 1], are near-duplicates."""
        self._similar = similar - _ROUNDING
        self._who: dict[Lesson, str] = {}
        self._operations: list[str] = []
        self._observations: list[str] = []

    def twin(self, new: Lesson) -> str | None:
        """Who teaches the same already, or most nearly so; of several the first. None when nobody does."""
        if new in self._who:
            return self._who[new]
        if not self._who or self._similar >= 1 - 2 * _ROUNDING:
            return None
        alike = np.minimum(
            self._alike(new.operations, self._operations), self._alike(new.observation, self._observations)
        )
        most = int(alike.argmax())
        return list(self._who.values())[most] if alike[most] >= self._similar else None

    def add(self, new: Lesson, who: str) -> None:
        """Take a lesson that has no twin."""
        self._who[new] = who
        self._operations.append(new.operations)
        self._observations.append(new.observation)

    def _alike(self, text: str, others: list[str]) -> np.ndarray:
        return cdist([text], others, scorer=Indel.normalized_similarity, score_cutoff=self._similar, dtype=np.float64)[
            0
        ]
